import { OMNIBUS_INDEX, TANK_SUB_ACCOUNT, traitsOf, type Network } from '@custody/chains'
import { Refusal } from '../../errors.ts'
import { decodedOn, networkOf, verdictOf, type Context } from '../context.ts'
import { actsOf, requestedForward, requestedPay, type Requested } from '../governed/acts.ts'
import { charge, sweepCharges } from '../budget.ts'
import type { CallerContext } from '../callers.ts'
import type { Charge, Forward, Lend, Order, Pay, Verdict } from '../order.ts'
import { assertOnlyPath } from '../paths.ts'
import { assertLends } from '../tank.ts'
import { forwarder } from './forward.ts'
import { payer } from './pay.ts'
import { sweepName, sweepNetwork } from './sweep.ts'

/**
 * The transaction that a tank lends energy for. `asked` is null for a sweep, which has no request.
 */
interface Borrower {
  context: CallerContext | null
  network: Network
  source: [number, number, number]
  name: string
  /** What a policy judges; empty for a sweep. */
  requested: readonly Requested[]
}

async function borrower(
  context: Context,
  order: Order,
  { for: purpose, step }: Lend,
): Promise<Borrower> {
  if (purpose.kind === 'sweep') {
    const network = sweepNetwork(context, order.workspace, purpose)
    const name = JSON.stringify(sweepName(order.workspace, purpose))
    return {
      context: null,
      network,
      source: [purpose.sub_account, network.chain_index, purpose.address_index],
      name,
      requested: [],
    }
  }
  const returns = step === 'undelegate'
  const by =
    purpose.kind === 'forward'
      ? await forwardBorrower(context, order, purpose, returns)
      : await payBorrower(context, order, purpose, returns)
  const { intent, seen, callers, assertAge, voidNames } = by.request
  const { proven, asset } = by.requested
  const network = networkOf(context, asset)
  const source: Borrower['source'] = [
    proven.enrolment.sub_account,
    network.chain_index,
    OMNIBUS_INDEX,
  ]
  return {
    context: { intent, seen, callers, assertAge, voidNames },
    network,
    source,
    name: by.name,
    requested: [by.requested],
  }
}

/** The caller's context, the name and the request of a transaction that the tank lends energy for. */
interface Requester {
  request: CallerContext
  requested: Requested
  name: string
}

async function payBorrower(
  context: Context,
  order: Order,
  purpose: Pay,
  revokedToo: boolean,
): Promise<Requester> {
  const request = await payer(context, order, purpose, revokedToo)
  return { request, requested: requestedPay(request), name: request.name }
}

async function forwardBorrower(
  context: Context,
  order: Order,
  purpose: Forward,
  revokedToo: boolean,
): Promise<Requester> {
  const request = await forwarder(context, order, purpose, revokedToo)
  return { request, requested: requestedForward(request), name: request.step }
}

/**
 * Energy is lent once for an intent, within the budget; it may be reclaimed any number of times,
 * also after the intent's end.
 */
export async function lend(context: Context, order: Order, purpose: Lend): Promise<Verdict> {
  const {
    context: request,
    network,
    source,
    name,
    requested,
  } = await borrower(context, order, purpose)
  if (!traitsOf(network).staking)
    throw new Refusal(
      'FUEL_WITHOUT_INTENT',
      `The network ${network.code} has no energy that can be lent`,
    )
  assertOnlyPath(order, [TANK_SUB_ACCOUNT, network.chain_index, 0])
  const subject = await decodedOn(context, order, network)
  assertLends(subject, purpose, source)
  const [subAccount] = source
  const fee = subject.decoded.fee_max
  const charges: [Charge, ...Charge[]] =
    request === null
      ? sweepCharges(subject, subAccount, fee, context.budgetFeeCaps)
      : [charge(subject, subAccount, fee, context.budgetFeeCaps)]
  // No policy applies to the return of energy: it moves no funds of the caller, and must be possible
  // after the policy no longer allows the transfer.
  if (purpose.step === 'undelegate')
    return verdictOf(subject, {
      step: JSON.stringify(['undelegate', name]),
      repeatable: true,
      charges,
      serves: [subAccount],
    })
  return verdictOf(subject, {
    ...request,
    step: JSON.stringify(['lend', name]),
    repeatable: request === null,
    charges,
    acts: () => actsOf(context, subject, requested, 'support'),
    serves: [subAccount],
  })
}
