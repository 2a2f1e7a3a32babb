import { Refusal } from '../../errors.ts'
import { chargeOnce } from '../budget.ts'
import { ageOf, assertWorkspace, seenOf, understand } from '../callers.ts'
import { assertConsolidates } from '../consolidate.ts'
import { decodedOn, networkNamed, networkOf, verdictOf, type Context } from '../context.ts'
import { voidNameOfRequest } from '../identity.ts'
import type { Consolidate, Order, Verdict } from '../order.ts'
import { assertWalletPaths } from '../paths.ts'

/**
 * Rule 18: merges coins of one wallet into one coin of the same wallet, by the caller's own request.
 * Nothing leaves the wallet except the fee, so it is no act that a policy judges; the fee is charged
 * to the sub-account's budget for fees, and stops apply.
 */
export async function consolidate(
  context: Context,
  order: Order,
  purpose: Consolidate,
): Promise<Verdict> {
  const { proven, want } = await understand(context, purpose.request)
  if (want.action !== 'consolidate')
    throw new Refusal('ACTION_NOT_ALLOWED', 'The signed request is not for a consolidation')
  assertWorkspace(proven, order)
  const { api_key, sub_account } = proven.enrolment
  const network =
    want.asset === null
      ? networkNamed(context, order.unsigned.network)
      : networkOf(context, want.asset)
  assertWalletPaths(order, network, sub_account)
  const subject = await decodedOn(context, order, network)
  assertConsolidates(subject, want)
  return verdictOf(subject, {
    step: JSON.stringify(['consolidate', want.key]),
    repeatable: false,
    intent: { key: want.key, content: want.content, transaction_id: proven.transaction_id },
    seen: [seenOf(context, proven, want)],
    callers: [api_key],
    assertAge: ageOf(context, proven, want.content, purpose.receipts),
    voidNames: [want.key, voidNameOfRequest(api_key, proven.nonce)],
    // Replacements of the transaction exclude each other, so only the largest fee counts.
    charges: [chargeOnce(subject, sub_account, subject.decoded.fee_max, context.budgetFeeCaps)],
    serves: [sub_account],
  })
}
