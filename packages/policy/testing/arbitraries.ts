import * as fc from '../../../testing/property.ts'
import type { Act } from '../src/act.ts'
import type { Rule } from '../src/document/rules.ts'
import type { Approval } from '../src/evaluation/approvals.ts'
import type { Use } from '../src/evaluation/windows.ts'
import { actWith, NOW } from './documents.ts'
import { registry } from './registry.ts'

/** Small sets of values, so that rules and acts often meet. */
const ASSETS = ['BTC', 'XRP', 'XLM', 'ETH', 'USDT_ETH', 'USDC_SOL', 'ADA']
const ACTIONS = ['transfer', 'refund', 'stake'] as const
const SUB_ACCOUNTS = ['main', 'cust-1', 'cust-2']
const API_KEYS = ['api-alice', 'api-bob', 'api-dan', 'unlisted']
const PEOPLE = ['alice', 'bob', 'dan', 'erin']
const GROUPS = ['admins', 'treasury', 'compliance', 'mixed']
const ADDRESSES = ['baseA', 'entA', 'rB', 'rC']
const TAGS = ['1', '2']

/** Groups that the generated rules name; people are in several of them. */
export const MIXED_GROUPS = {
  admins: ['alice', 'bob', 'carol'],
  treasury: ['dan', 'erin', 'frank'],
  compliance: ['compliance'],
  mixed: ['alice', 'dan', 'compliance'],
}

const some = <T>(values: readonly T[]) =>
  fc.subarray([...values], { minLength: 1, maxLength: values.length })
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 })
const network = (asset: string): string => registry.asset(asset)?.network ?? ''
const decimal = fc.constantFrom('0', '0.5', '1', '1.25', '2', '3.000001', '10')
const amounts = fc
  .dictionary(fc.constantFrom(...ASSETS, 'SOL'), decimal, { minKeys: 1, maxKeys: 4 })
  .map((value) => ({ ...value }))
const range = fc
  .record({ min: maybe(amounts), max: maybe(amounts) })
  .filter(({ min, max }) => min !== undefined || max !== undefined)
const subAccounts = fc.oneof(
  some(SUB_ACCOUNTS),
  fc.constantFrom({ prefix: 'cust-' }, { prefix: 'm' }),
)
const listed = fc
  .record({
    network: fc.constantFrom('XRP', 'ADA', 'XLM'),
    address: fc.constantFrom(...ADDRESSES),
    tag: maybe(fc.constantFrom(...TAGS)),
    any_tag: maybe(fc.constant(true as const)),
  })
  .map(({ any_tag, tag, ...entry }) =>
    tag === undefined || entry.network === 'ADA' ? { ...entry, any_tag } : { ...entry, tag },
  )
const to = fc.oneof(
  fc.constant('any' as const),
  fc
    .record({
      addresses: maybe(fc.array(listed, { minLength: 1, maxLength: 3 })),
      own: maybe(fc.constantFrom('sub_account' as const, 'workspace' as const)),
    })
    .filter(({ addresses, own }) => addresses !== undefined || own !== undefined),
)
const restrictions = {
  networks: maybe(some(['BTC', 'XRP', 'ETH', 'SOL', 'ADA'])),
  api_keys: maybe(some(API_KEYS)),
  people: maybe(some(PEOPLE)),
  sub_accounts: maybe(subAccounts),
  sub_accounts_not: maybe(subAccounts),
  to: maybe(to),
}
const assets = fc.oneof(fc.constant('any' as const), some(ASSETS))
const action = some(ACTIONS)
const allowMatch = fc.record({ action, assets, ...restrictions })
const match = fc.record({ action: maybe(action), assets: maybe(assets), ...restrictions })

const window = fc
  .record({
    name: fc.constantFrom('day', 'week', 'hour'),
    hours: fc.constantFrom(1, 24, 168),
    per: fc.constantFrom('workspace', 'sub_account', 'api_key', 'destination'),
    max: maybe(amounts),
    count: maybe(fc.integer({ min: 1, max: 5 })),
    share: maybe(fc.constantFrom('1', '0.5', '0.25', '0.3333')),
  })
  .map(({ share, ...value }) => ({
    ...value,
    share: value.per === 'workspace' ? share : undefined,
  }))
  .filter(({ max, count }) => max !== undefined || count !== undefined)
const windows = fc.uniqueArray(window, { minLength: 1, maxLength: 2, selector: ({ name }) => name })
const quorum = fc.record({
  approvals: fc.uniqueArray(
    fc.record({ group: fc.constantFrom(...GROUPS), k: fc.integer({ min: 1, max: 2 }) }),
    { minLength: 1, maxLength: 3, selector: ({ group }) => group },
  ),
  approval_s: maybe(fc.constantFrom(60, 600, 86_400)),
  initiator: maybe(fc.boolean()),
})
const id = fc.stringMatching(/^[a-z]{4,8}$/)

export const allowRule = fc
  .record({
    id,
    effect: fc.constant('allow'),
    match: allowMatch,
    amount: maybe(range),
    fee_max: maybe(amounts),
    windows: maybe(windows),
    quorum: maybe(quorum),
  })
  .map(({ quorum, ...rule }) => ({ ...rule, ...quorum }) as unknown as Rule)
export const requireRule = fc
  .record({ id, effect: fc.constant('require'), match, amount: maybe(range), quorum })
  .map(({ quorum, ...rule }) => ({ ...rule, ...quorum }) as unknown as Rule)
export const denyRule = fc
  .record({ id, effect: fc.constant('deny'), match, amount: maybe(range) })
  .map((rule) => rule as unknown as Rule)
export const limitRule = fc
  .record({
    id,
    effect: fc.constant('limit'),
    match,
    windows,
    above: fc.oneof(fc.constant('deny'), quorum),
  })
  .map((rule) => rule as unknown as Rule)

/** Rules of a document: mostly allows, without two of one ID. */
export const ruleList = fc.uniqueArray(
  fc.oneof(
    { weight: 6, arbitrary: allowRule },
    { weight: 1, arbitrary: requireRule },
    { weight: 1, arbitrary: denyRule },
    { weight: 1, arbitrary: limitRule },
  ),
  { maxLength: 7, selector: ({ id }) => id },
)

/** Acts that the generated rules often match. */
export const act: fc.Arbitrary<Act> = fc
  .record({
    action: fc.constantFrom(...ACTIONS),
    asset: fc.constantFrom(...ASSETS),
    sub_account: fc.constantFrom(...SUB_ACCOUNTS),
    api_key: fc.constantFrom(...API_KEYS),
    person: fc.constantFrom(undefined, undefined, 'alice', 'dan', 'stranger'),
    units: fc.constantFrom(0n, 1n, 5n, 10n, 20n, 31n),
    extra: fc.constantFrom(0n, 1n),
    fee: fc.constantFrom(0n, 1n, 500_000n, 5_000_000n),
    address: fc.constantFrom(...ADDRESSES, 'M1xrB', 'M2xrC'),
    tag: fc.option(fc.constantFrom(...TAGS)),
    own: fc.constantFrom(
      null,
      null,
      'sub_account' as const,
      'workspace' as const,
      'unknown' as const,
    ),
    issued: fc.constantFrom(10, 518_000, 518_400),
  })
  .map(({ units, extra, fee, address, tag, own, issued, ...fields }) => {
    const scale = 10n ** BigInt((registry.asset(fields.asset)?.decimals ?? 1) - 1)
    return actWith({
      ...fields,
      network: network(fields.asset),
      amount: units * scale + extra,
      to: { address, tag, own },
      fee: { max: fee, limit: fee },
      issued_at: NOW - issued,
      resource: fields.action === 'stake' ? 'ENERGY' : null,
    })
  })

/** Approvals by keys of the document, some expired, some by keys that are not in it. */
export const approvalList: fc.Arbitrary<Approval[]> = fc.array(
  fc.record({
    by: fc.constantFrom('alice', 'bob', 'carol', 'dan', 'erin', 'frank', 'compliance', 'stranger'),
    key: fc.constantFrom('k1', 'k1', 'k1', 'k2'),
    at: fc.constantFrom(NOW - 5, NOW - 60, NOW - 600, NOW + 60, NOW + 61),
    expires: fc.constantFrom(NOW + 3_600, NOW + 1, NOW),
  }),
  { maxLength: 6 },
)

/** What counts in a sum. The steps include that of the act. */
export const useList: fc.Arbitrary<Use[]> = fc
  .array(
    fc.record({
      step: fc.constantFrom('step-1', 'step-2', 'step-3', 'step-4'),
      age_s: fc.constantFrom(0, 60, 3_600, 3_720, 3_721, 86_520, 86_521, 604_920, 604_921),
      amounts: fc.uniqueArray(
        fc.tuple(fc.constantFrom(...ASSETS, 'SOL'), fc.bigInt({ min: 0n, max: 300_000_000n })),
        { maxLength: 3, selector: ([asset]) => asset },
      ),
    }),
    { maxLength: 6 },
  )
  .map((uses) => uses.map((use) => ({ ...use, amounts: new Map(use.amounts) })))

/** Suspended keys. */
export const suspended = fc
  .subarray(['alice/k1', 'dan/k1', 'erin/k1'])
  .map((keys): ReadonlySet<string> => new Set(keys))
