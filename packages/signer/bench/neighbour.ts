import { median, report } from '../../../testing/figures.ts'
import { TestPolicy } from '../testing/policy-cluster.ts'
import {
  ETH,
  eth,
  pay,
  SINK_ETH,
  transfer,
  Workspace,
  type SignerCluster,
} from '../testing/signer-cluster.ts'
import { ethPayments, good, PAIRS } from './flights.ts'

/** Charges of each window of the hostile workspace. They fill all of its windows. */
const CHARGES = 800
const RUN = 16
/** Windows that one act can be charged to by rules of the effect `limit`. */
const WINDOWS = 12
/**
 * Judgements a second that the platform requests for the waiting transfers of one workspace, at most
 * (`JudgePace`). Before it waited for the windows, 60 waiting transfers needed 12.
 */
const JUDGEMENTS_PER_SECOND = 12

/** Twelve windows that have room for all charges, and for nothing after them. */
const RULES: readonly unknown[] = [
  {
    id: 'pay',
    effect: 'allow',
    match: { action: ['transfer'], assets: ['ETH'] },
    amount: { max: { ETH: '10' } },
  },
  ...Array.from({ length: WINDOWS / 4 }, (_, rule) => ({
    id: `limit-${rule}`,
    effect: 'limit',
    match: { action: ['transfer'], assets: ['ETH'] },
    windows: Array.from({ length: 4 }, (_, at) => ({
      name: `window-${at}`,
      hours: 24 + at,
      per: 'sub_account',
      max: { ETH: '1000000' },
      count: CHARGES,
    })),
    above: 'deny',
  })),
]

/** Fills the windows of a workspace. @returns judges one more transfer at two nodes */
async function hostile(cluster: SignerCluster, workspace: Workspace): Promise<() => Promise<void>> {
  const caller = await workspace.caller()
  const request = () =>
    transfer(caller, { asset: 'ETH', amount: '1', destination_address: SINK_ETH })
  await new TestPolicy(cluster, workspace, RULES, caller.api_key).install()
  const [first, partner] = PAIRS[0]
  for (let from = 0; from < CHARGES; from += RUN) {
    const run = await Promise.all(
      Array.from({ length: RUN }, async (_, at) => ({
        purpose: pay(await request()),
        unsigned: eth([1, ETH.chain_index, 0], { value: 10n ** 18n, nonce: from + at }),
      })),
    )
    good(await cluster.post(first, '/sign-run', { workspace: workspace.name, partner, run }))
  }
  const waiting = await Promise.all(Array.from({ length: 60 }, request))
  let turn = 0
  return async () => {
    const body = { request: waiting[turn++ % waiting.length], decisions: [] }
    const answers = await Promise.all(
      PAIRS[0].map((node) => cluster.post(node, '/policy/judge', body)),
    )
    for (const answer of answers) {
      good(answer)
      if (answer.body.refusal?.code !== 'POLICY_WINDOW')
        throw new Error(`the windows are not full: ${JSON.stringify(answer.body.refusal)}`)
    }
  }
}

/** Calls a function at a rate, whether or not earlier calls have ended. @returns stops it */
function repeat(perSecond: number, call: () => Promise<void>): () => Promise<void> {
  const calls = new Set<Promise<void>>()
  let failure: unknown = null
  const timer = setInterval(() => {
    const each: Promise<void> = call()
      .catch((error: unknown) => (failure ??= error))
      .then(() => void calls.delete(each))
    calls.add(each)
  }, 1000 / perSecond)
  return async () => {
    clearInterval(timer)
    await Promise.all(calls)
    if (failure !== null) throw failure as Error
  }
}

/**
 * Measures a signature of one workspace, alone and while the waiting transfers of another one are
 * judged whose windows are full.
 * @param count signatures per round
 */
export async function measureNeighbour(
  cluster: SignerCluster,
  count: number,
  rounds: number,
): Promise<void> {
  const open = async (name: string) => {
    const key = await cluster.key(1, name, 'secp256k1')
    good(key)
    return new Workspace(cluster, name, key.body)
  }
  const judge = await hostile(cluster, await open('bench-hostile'))
  const workspace = await open('bench-neighbour')
  let next = 1
  const round = async (times: number[]): Promise<void> => {
    for (const { purpose, unsigned } of await ethPayments(await workspace.caller(next++), count)) {
      const begun = performance.now()
      good(await workspace.sign(purpose, unsigned, PAIRS[0]))
      times.push(performance.now() - begun)
    }
  }
  const [alone, beside]: [number[], number[]] = [[], []]
  await round([])
  for (let at = 0; at < rounds; at++) {
    await round(alone)
    const stop = repeat(JUDGEMENTS_PER_SECOND, judge)
    await round(beside)
    await stop()
  }
  report({
    name: `a signature beside ${WINDOWS} full windows of another workspace, p50`,
    unit: 'ms',
    value: median(beside),
    floor: median(alone),
    target: { atMost: 1.5 },
    note: `floor: alone; ${CHARGES} charges a window, ${JUDGEMENTS_PER_SECOND} judgements a second`,
  })
}
