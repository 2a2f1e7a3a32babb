import { addressAt, OMNIBUS_INDEX } from '@custody/chains'
import { Refusal } from '../../errors.ts'
import type { Proven } from '../../intent/request.ts'
import type { StakeIntent } from '../../intent/stake.ts'
import { decodedOn, networkOf, verdictOf, type Context } from '../context.ts'
import { actsOf, requestedStake } from '../governed/acts.ts'
import { ageOf, assertWorkspace, seenOf, understand, type CallerContext } from '../callers.ts'
import { voidNameOfRequest } from '../identity.ts'
import type { Order, Stake, Verdict } from '../order.ts'
import { assertOnlyPath } from '../paths.ts'
import { assertStakes } from '../stake.ts'

/** Returns the caller who requested a stake, an unstake or a release. */
export async function staker(
  context: Context,
  order: Order,
  purpose: Stake,
): Promise<CallerContext & { proven: Proven; want: StakeIntent }> {
  const { proven, want } = await understand(context, purpose.request)
  if (want.action !== 'stake' && want.action !== 'unstake' && want.action !== 'release') {
    throw new Refusal('ACTION_NOT_ALLOWED', 'The signed request is not for staking')
  }
  assertWorkspace(proven, order)
  return {
    proven,
    want,
    intent: { key: want.key, content: want.content, transaction_id: proven.transaction_id },
    seen: [seenOf(context, proven, want)],
    callers: [proven.enrolment.api_key],
    assertAge: ageOf(context, proven, want.content, purpose.receipts),
    voidNames: [want.key, voidNameOfRequest(proven.enrolment.api_key, proven.nonce)],
  }
}

/**
 * Permits one step of a stake. Each step is a separate transaction, and only the omnibus address
 * may send it.
 */
export async function stake(context: Context, order: Order, purpose: Stake): Promise<Verdict> {
  const { proven, want, ...request } = await staker(context, order, purpose)
  const network = networkOf(context, want.asset)
  const path = [proven.enrolment.sub_account, network.chain_index, OMNIBUS_INDEX]
  assertOnlyPath(order, path)
  const subject = await decodedOn(context, order, network)
  const own = addressAt(network, subject.key, path)
  assertStakes(subject, want, purpose.step, own, proven.enrolment.sub_account)
  return verdictOf(subject, {
    ...request,
    step: JSON.stringify([purpose.step, want.key]),
    repeatable: false,
    acts: () => actsOf(context, subject, requestedStake({ proven, want }), 'act'),
    // A window counts a stake once, by its first transaction. The delegation that may follow is judged
    // too, and moves no coin.
    isAct: purpose.step === 'freeze',
    serves: [proven.enrolment.sub_account],
  })
}
