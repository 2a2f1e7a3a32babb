import { canonicalText, checkDocument, type Person, type Statement } from '@custody/policy'
import { documentWith, keyOf } from '../../../../../policy/testing/documents.ts'
import { possessionsOf } from '../../../../../policy/testing/governance.ts'
import { signWith } from '../../../../../policy/testing/statements.ts'
import type { SeededRandom } from '../../seeded-random.ts'
import { CLOCK_MS } from './ledgers.ts'

/** Networks of which a run draws one. */
const NETWORKS = ['BTC', 'ETH', 'XRP', 'TRX', 'XLM', 'SOL', 'ADA'] as const
/** Tokens that half of the runs of a network move besides the native coin. */
const TOKENS: Readonly<Record<string, string>> = {
  ETH: 'USDT_ETH',
  TRX: 'USDT_TRX',
  SOL: 'USDC_SOL',
}

/**
 * `none`: the workspace has no policy. `deny`: a rule denies everything. `stop`: a person has stopped
 * the workspace. `window`: a sub-account may move and burn a sum a day. `own`: own addresses of other
 * sub-accounts are denied.
 */
const MODES = ['none', 'deny', 'stop', 'window', 'own'] as const
export type Mode = (typeof MODES)[number]

/** What a run tests. */
export interface Scenario {
  code: (typeof NETWORKS)[number]
  /** Ticker of a token that is moved too; null: only the native coin is. */
  token: string | null
  mode: Mode
  /** Node 1 is hostile too: it leads sessions without judging its orders. */
  isLeaderHostile: boolean
  /** Whether the stop begins after some payments were signed. */
  isStoppedLate: boolean
}

export function drawScenario(random: SeededRandom): Scenario {
  const mode = random.of(MODES)
  const code = random.of(NETWORKS)
  const token = TOKENS[code] ?? null
  return {
    code,
    token: token !== null && random.below(2) === 0 ? token : null,
    mode,
    isLeaderHostile: mode !== 'none' && random.below(3) === 0,
    isStoppedLate: mode === 'stop' && random.below(2) === 0,
  }
}

const ALL = {
  id: 'all',
  effect: 'allow',
  match: { action: ['transfer', 'refund', 'forward', 'stake'], assets: 'any' },
}

/** @param window greatest sum of a day, in coins */
function rulesOf(mode: Mode, asset: string, window: string): unknown[] {
  switch (mode) {
    case 'deny':
      return [ALL, { id: 'nothing', effect: 'deny', match: {} }]
    case 'window':
      return [
        {
          ...ALL,
          windows: [{ name: 'day', hours: 24, per: 'sub_account', max: { [asset]: window } }],
        },
      ]
    case 'own':
      return [ALL, { id: 'no-crossing', effect: 'deny', match: { to: { own: 'workspace' } } }]
    default:
      return [ALL]
  }
}

interface Place {
  workspace: string
  nodes: string
  apiKeys: readonly string[]
}

/** Returns the first document of a scenario, as an operator enters it. */
export function firstDocument(
  mode: Mode,
  { asset, window }: { asset: string; window: string },
  { workspace, nodes, apiKeys }: Place,
): { workspace: string; document: string; possessions: string[] } {
  const people = (documentWith().people as Person[]).map((person) =>
    person.id === 'frank' ? { ...person, api_keys: [...apiKeys] } : person,
  )
  const document = checkDocument(
    documentWith(rulesOf(mode, asset, window), { mode: 'local', workspace, nodes, people }),
  )
  return {
    workspace,
    document: canonicalText(document),
    possessions: possessionsOf(document).map((proof) => JSON.stringify(proof)),
  }
}

/** Returns a person's signed stop of the whole workspace. */
export function stopOf({ workspace, nodes }: Pick<Place, 'workspace' | 'nodes'>): string {
  const at = Math.floor(CLOCK_MS / 1000)
  const common = { v: 1, mode: 'local', workspace, nodes, by: 'carol', key: 'k1', at }
  return JSON.stringify(
    signWith(keyOf('carol'), {
      ...common,
      expires: at + 3600,
      kind: 'stop',
      sub_account: null,
      reason: 'A key was stolen',
    } as Statement),
  )
}
