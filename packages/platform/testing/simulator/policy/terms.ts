import { formatAmount } from '@custody/chains'
import type { SeededRandom } from '../seeded-random.ts'
import { ADMINS, personOf, REQUESTER, TREASURY, written, type WrittenDocument } from './people.ts'

/** Sub-account whose transfers the rules `small` and `large` judge. The other one is not limited. */
export const LIMITED = 'sub-1'
export const HOURS = 1

/**
 * What a document allows for transfers of {@link LIMITED}, as the oracle reads it. Amounts are
 * multiples of a tenth of the network's base amount.
 */
export interface Terms {
  /** Transfers up to this amount need no approvals, within the windows. */
  smallMax: bigint
  /** Number of such transfers in {@link HOURS}; null: not limited. */
  count: number | null
  /** Sum of such transfers in {@link HOURS}; null: not limited. */
  sum: bigint | null
  /** Transfers from this amount on need approvals of `k` people; null: from any amount on. */
  largeMin: bigint | null
  k: number
  /** Seconds for which an approval counts. */
  approvalS: number
  /** Transfers from this amount on are denied. */
  denyMin: bigint
  /** Seconds from the proposal to the effect of the next document. */
  delayS: number
  /** Key of each member of the treasury. */
  keys: Readonly<Record<string, string>>
}

export interface Asset {
  code: string
  decimals: number
  /** Base amount of a payment in smallest units. */
  unit: bigint
}

export function drawTerms(random: SeededRandom, keys: Terms['keys']): Terms {
  const isCounted = random.below(2) === 0
  return {
    smallMax: BigInt(random.of([15, 25])),
    count: isCounted ? 1 + random.below(2) : null,
    sum: isCounted && random.below(2) === 0 ? null : BigInt(random.of([35, 55])),
    largeMin: random.below(2) === 0 ? null : 15n,
    k: random.of([2, 2, 1]),
    approvalS: random.of([900, 86_400]),
    denyMin: BigInt(random.of([35, 45])),
    delayS: random.of([600, 3600]),
    keys,
  }
}

export const FIRST_KEYS: Terms['keys'] = Object.fromEntries(TREASURY.map((id) => [id, 'k1']))

/** Returns an amount of terms in smallest units. */
export const unitsOf = ({ unit }: Asset, tenths: bigint): bigint => (unit * tenths) / 10n

interface Place {
  nodes: string
  previous: WrittenDocument | null
  /** API keys of the requester. */
  apiKeys: readonly string[]
  assets: readonly Asset[]
}

/** Returns the document of terms. */
export function documentOf(
  terms: Terms,
  { nodes, previous, apiKeys, assets }: Place,
): WrittenDocument {
  const amounts = (tenths: bigint) =>
    Object.fromEntries(
      assets.map((asset) => [asset.code, formatAmount(unitsOf(asset, tenths), asset.decimals)]),
    )
  const codes = assets.map(({ code }) => code)
  const match = { action: ['transfer'], assets: codes, sub_accounts: [LIMITED], to: 'any' }
  const { count, sum, largeMin } = terms
  return written({
    kind: 'custody-policy',
    v: 1,
    mode: 'local',
    workspace: 'acme',
    number: (previous?.document.number ?? 0) + 1,
    // The oracle adds up what payments move. Fees that a gas tank pays are more than its windows.
    fees: 'wallet',
    previous: previous?.hash ?? '0'.repeat(64),
    nodes,
    people: [
      ...ADMINS.map((id) => personOf(id, 'k1')),
      ...TREASURY.map((id) =>
        personOf(id, terms.keys[id] as string, id === REQUESTER ? apiKeys : []),
      ),
    ],
    groups: { admins: [...ADMINS], treasury: [...TREASURY] },
    change: {
      approvals: [{ group: 'admins', k: 2 }],
      delay_s: terms.delayS,
      veto: 'admins',
    },
    stop: { group: 'admins' },
    resume: { approvals: [{ group: 'admins', k: 2 }] },
    rules: [
      {
        id: 'others',
        effect: 'allow',
        match: { action: ['transfer'], assets: 'any', sub_accounts: ['sub-2'], to: 'any' },
      },
      {
        id: 'standing',
        effect: 'allow',
        match: { action: ['refund', 'forward', 'stake'], assets: 'any', to: 'any' },
      },
      {
        id: 'small',
        effect: 'allow',
        match,
        amount: { max: amounts(terms.smallMax) },
        windows: [
          {
            name: 'hour',
            hours: HOURS,
            per: 'sub_account',
            ...(count === null ? {} : { count }),
            ...(sum === null ? {} : { max: amounts(sum) }),
          },
        ],
      },
      {
        id: 'large',
        effect: 'allow',
        match,
        ...(largeMin === null ? {} : { amount: { min: amounts(largeMin) } }),
        approvals: [{ group: 'treasury', k: terms.k }],
        approval_s: terms.approvalS,
      },
      { id: 'most', effect: 'deny', match, amount: { min: amounts(terms.denyMin) } },
    ],
  })
}
