import { traitsOf, type DecodedTransaction } from '@custody/chains'
import type { KeyObject } from 'node:crypto'
import { Refusal } from '../errors.ts'
import type { ForwardIntent } from '../intent/forward.ts'
import type { Proven } from '../intent/request.ts'
import type { StandingRule, State } from '../store/state.ts'
import { isTimely, isVouchedFor } from './age.ts'
import { assertCovered } from './gate/effects.ts'
import type { Charge, Covered, Receipt, Subject } from './order.ts'

/** Rule 13: exactly one payment of the rule's asset to its destination; a charge limits its amount. */
export function assertForwards(subject: Subject, rule: ForwardIntent): asserts subject is Covered {
  const { asset, destination: address, tag, sub_account: payer } = rule
  assertCovered(subject, {
    payer,
    does: { asset, address, payee: 'the destination of the rule', tag, amount: null },
  })
}

/**
 * Rule 13: checks the rule's minimum amount, and returns the charge to its daily cap: the payment,
 * plus its network fee if it is in the same coin, no matter who pays it. Otherwise many small forwards
 * would spend fees that no cap limits.
 */
export function chargeOfForward({ decoded, network }: Covered, rule: ForwardIntent): Charge {
  const [payment] = decoded.payments as [DecodedTransaction['payments'][number]]
  const native = decoded.asset === network.native_asset
  const leaves =
    payment.amount + (native && traitsOf(network).feesFrom === 'wallet' ? decoded.fee_max : 0n)
  if (payment.amount <= 0n || leaves < rule.min_amount) {
    throw new Refusal(
      'FORWARD_TOO_SMALL',
      `The forward moves ${leaves}, but the rule's minimum is ${rule.min_amount}`,
    )
  }
  return {
    budget: JSON.stringify(['forward', rule.rule_id]),
    amount: payment.amount + (native ? decoded.fee_max : 0n),
    limit: rule.daily_cap,
    largest: true,
    rule: true,
  }
}

/** A standing rule whose validity is checked, and the data that the check needs. */
interface CheckedRule {
  state: State
  /** Public identity keys of the nodes, by which receipts are verified. */
  identities: ReadonlyMap<number, KeyObject>
  proven: Proven
  rule: ForwardIntent
  receipts: readonly Receipt[]
  /** Unix time in seconds. */
  now: number
}

/**
 * Checks that a rule is valid: from the time at which this node saw its request before the
 * request's expiry, until the rule expires, whatever the age of the request. A peer's receipt
 * replaces this node's own observation; at a restored node only for rules that were created
 * afterwards.
 * @throws Refusal RULE_EXPIRED, INTENT_CONFLICT or RULE_UNKNOWN
 */
export function assertStands({
  state,
  identities,
  proven,
  rule,
  receipts,
  now,
}: CheckedRule): void {
  if (now > rule.expires_at) throw new Refusal('RULE_EXPIRED', 'The rule has expired')
  const existing = state.rules.get(rule.rule_id)
  if (existing) {
    if (existing.content !== rule.content)
      throw new Refusal(
        'INTENT_CONFLICT',
        'The record of this node contains another rule with this id',
      )
    return
  }
  if (
    proven.iat * 1000 >= state.notBefore &&
    (isTimely(proven.exp, now) || isVouchedFor(identities, proven, rule.content, receipts))
  ) {
    return
  }
  throw new Refusal(
    'RULE_UNKNOWN',
    'This node did not receive the rule before its request expired, and no peer reports that it did',
  )
}

/** Returns a rule in the form in which it is recorded. */
export function standingRule(proven: Proven, rule: ForwardIntent): StandingRule {
  return {
    rule: rule.rule_id,
    api_key: proven.enrolment.api_key,
    nonce: proven.nonce,
    content: rule.content,
    workspace: rule.workspace,
    sub_account: rule.sub_account,
    asset: rule.asset,
    destination: rule.destination,
    tag: rule.tag,
    min_amount: rule.min_amount.toString(),
    daily_cap: rule.daily_cap.toString(),
    expires_at: rule.expires_at,
  }
}
