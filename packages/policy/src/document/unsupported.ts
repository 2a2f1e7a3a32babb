import { LIMITS } from '../limits.ts'
import { PolicyError, pathOf } from '../error.ts'

/**
 * Fields that drafts of the language have and this version refuses. Each pattern is a path, in
 * which `*` stands for any name or index.
 */
const FIELDS: readonly (readonly [pattern: string, why: string])[] = [
  ['valuation', 'amounts in USD are not supported'],
  ['book', 'the address book is not supported'],
  ['panel_approvals', 'approvals with passkeys of the control panel are not supported'],
  ['people.*.panel_approvals', 'approvals with passkeys of the control panel are not supported'],
  ['rules.*.panel_approvals', 'approvals with passkeys of the control panel are not supported'],
  ['rules.*.when', 'conditions on the time of day are not supported'],
  ['rules.*.call', 'contract calls are not supported'],
  ['rules.*.message', 'signing of messages is not supported'],
  ['rules.*.travel_rule', 'the travel rule is not supported'],
  ['rules.*.fee_rate_max', 'limit the fee by fee_max, in units of the native coin'],
  ['rules.*.amount.usd_max', 'amounts in USD are not supported'],
  ['rules.*.amount.usd_from', 'amounts in USD are not supported'],
  ['rules.*.amount.total', 'batches are not supported'],
  ['rules.*.match.usd_from', 'amounts in USD are not supported'],
  ['rules.*.match.usd_max', 'amounts in USD are not supported'],
  ['rules.*.match.travel_rule', 'the travel rule is not supported'],
  ['rules.*.match.to.book', 'groups of the address book are not supported'],
  ['rules.*.match.to.book_not', 'groups of the address book are not supported'],
  ['rules.*.windows.*.usd', 'amounts in USD are not supported'],
]

/** Actions that are no act of a policy, or not yet. */
const NOT_ACTIONS: ReadonlyMap<string, string> = new Map([
  ['batch', 'batches are not supported'],
  ['call', 'contract calls are not supported'],
  ['allowance', 'token allowances are not supported'],
  ['message', 'signing of messages is not supported'],
  ['drain', 'the field orders of the document names the approvals of drains'],
  ['tank-stake', 'the field orders of the document names the approvals of gas tank stakes'],
  ['speed-up', 'a speed-up is judged as the payment that it belongs to'],
  ['cancel', 'cancellations are not subject to the policy'],
  ['sweep', 'sweeps are not subject to the policy'],
  ['fuel', 'fuel is judged with the payment that it is for'],
  ['consolidate', 'consolidations of coins are not subject to the policy'],
  ['unstake', 'unstaking is not subject to the policy'],
  ['release', 'the release of unstaked coins is not subject to the policy'],
])

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

/** Yields every value at a path pattern. */
function* valuesAt(
  value: unknown,
  pattern: readonly string[],
  path: readonly PropertyKey[] = [],
): Generator<{ value: unknown; path: readonly PropertyKey[] }> {
  const [next, ...rest] = pattern
  if (next === undefined) {
    yield { value, path }
    return
  }
  if (!isObject(value)) return
  if (next !== '*') {
    if (Object.hasOwn(value, next)) yield* valuesAt(value[next], rest, [...path, next])
    return
  }
  const entries = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  for (const [key, each] of entries) yield* valuesAt(each, rest, [...path, key])
}

/**
 * Refuses what this version of the language does not support, with the field and the reason.
 * Otherwise the error would only state that the field is unknown.
 * @throws PolicyError `UNSUPPORTED`
 */
export function refuseUnsupported(document: unknown): void {
  const refuse = (path: readonly PropertyKey[], why: string): never => {
    throw new PolicyError('UNSUPPORTED', pathOf(path), `is refused: ${why}`)
  }
  for (const [pattern, why] of FIELDS)
    for (const { path } of valuesAt(document, pattern.split('.'))) refuse(path, why)
  for (const { value, path } of valuesAt(document, ['rules', '*', 'match', 'action', '*'])) {
    const why = typeof value === 'string' ? NOT_ACTIONS.get(value) : undefined
    if (why !== undefined) refuse(path, `${String(value)}: ${why}`)
  }
  for (const { value, path } of valuesAt(document, ['rules', '*', 'windows', '*', 'hours']))
    if (typeof value === 'number' && value > LIMITS.windowHours)
      refuse(path, `windows of more than ${LIMITS.windowHours} hours are not supported`)
  for (const { value, path } of valuesAt(document, ['people', '*', 'keys', '*', 'alg']))
    if (value === 'RS256')
      refuse(path, 'RSA keys sign requests and never approvals; use Ed25519 or ES256')
}
