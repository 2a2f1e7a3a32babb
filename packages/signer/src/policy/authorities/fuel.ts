import { hashOfUnsigned } from '@custody/request-auth/orders'
import {
  OMNIBUS_INDEX,
  TANK_SUB_ACCOUNT,
  traitsOf,
  type DecodedTransaction,
  type Network,
} from '@custody/chains'
import { Refusal } from '../../errors.ts'
import { decodedOn, networkOf, verdictOf, type Context } from '../context.ts'
import {
  actsOf,
  requestedForward,
  requestedPay,
  requestedStake,
  type Requested,
} from '../governed/acts.ts'
import { charge, costOfFuel, sweepCharges } from '../budget.ts'
import type { CallerContext } from '../callers.ts'
import { feeOfReplacement, largestFee } from '../cancel.ts'
import { assertFuelAmount, assertFuels, costOf } from '../fuel.ts'
import {
  type Fuel,
  type NamedIntent,
  type Order,
  type Pay,
  type Subject,
  type Sweep,
  type Verdict,
} from '../order.ts'
import { assertOnlyPath } from '../paths.ts'
import { canceller, replacedBy } from './cancel.ts'
import { forwarder } from './forward.ts'
import { payer, type Payer } from './pay.ts'
import { staker } from './stake.ts'
import { sweepName, sweepNetwork } from './sweep.ts'

/**
 * The transaction that a tank pays for: `step` names the fuel, `rate` is the caller's limit per
 * unit.
 */
interface Fuelled {
  context: CallerContext & Partial<Verdict>
  subAccount: number
  asset: string
  rate: string | null
  step: readonly string[]
  /** What a policy judges; of a cancellation only if it costs much more than what it replaces. */
  requested: readonly Requested[]
  /** Of a cancellation: what it replaces. */
  replaced?: readonly DecodedTransaction[]
}

const stepOf = ({ step }: Fuelled): string => JSON.stringify(['fuel', ...step])

/**
 * Rule 11: permits a transfer of native coin from the gas tank to the source address of one intent,
 * of one token sweep, or of several payments. Each payment is fuelled only once, alone or together
 * with others.
 */
export async function fuel(context: Context, order: Order, purpose: Fuel): Promise<Verdict> {
  const { beside = [] } = purpose
  if (beside.length > 0 && !(purpose.for.kind === 'pay' && purpose.for.speed_up === undefined)) {
    throw new Refusal('SHAPE', 'Only payments can share a fuel transaction')
  }
  if (purpose.for.kind === 'sweep') return sweepFuel(context, order, purpose, purpose.for)
  const first = await fuelled(context, order, purpose.for)
  const { context: request, subAccount, asset } = first
  const network = networkOf(context, asset)
  if (traitsOf(network).feesFrom !== 'tank')
    throw new Refusal(
      'FUEL_WITHOUT_INTENT',
      `Transfers on ${network.code} pay their own network fees, so fuel is not allowed`,
    )
  const others: Fuelled[] = []
  for (const { for: of } of beside)
    others.push(await sharer(context, order, of, subAccount, network))
  const all = [first, ...others]
  if (new Set(all.map(stepOf)).size !== all.length)
    throw new Refusal('SHAPE', 'The fuel transaction is for the same payment twice')
  const subject = await fromTank(context, order, network)
  const parts = [purpose, ...beside]
  assertFuels(subject, [subAccount, network.chain_index, OMNIBUS_INDEX])
  assertFuelAmount(
    subject,
    all.map(({ rate, replaced = [] }, at) => ({
      part: parts[at] as Fuel,
      callerRate: rate,
      present: largestFee(replaced),
    })),
  )
  const isPaidFor =
    first.replaced !== undefined && costOf(purpose) <= feeOfReplacement(subject, first.replaced)
  return verdictOf(subject, {
    ...request,
    seen: all.flatMap((each) => each.context.seen),
    callers: all.flatMap((each) => each.context.callers),
    voidNames: all.flatMap((each) => each.context.voidNames),
    assertAge: () => {
      for (const each of all) each.context.assertAge()
    },
    step: stepOf(first),
    beside: others.map((each) => ({
      step: stepOf(each),
      intent: each.context.intent as NamedIntent,
    })),
    repeatable: false,
    charges: [charge(subject, subAccount, costOfFuel(subject), context.budgetFeeCaps)],
    acts: () =>
      actsOf(
        context,
        subject,
        isPaidFor ? [] : all.flatMap(({ requested }) => requested),
        'support',
      ),
    serves: isPaidFor ? null : [subAccount],
  })
}

/**
 * Returns a payment that shares a fuel transaction: of the same sub-account and network, as its
 * caller first signed it.
 */
async function sharer(
  context: Context,
  order: Order,
  of: Pay,
  subAccount: number,
  network: Network,
): Promise<Fuelled> {
  if (of.speed_up !== undefined)
    throw new Refusal('SHAPE', 'A payment that was sped up requires its own fuel transaction')
  const other = await fuelled(context, order, of)
  if (other.subAccount !== subAccount || networkOf(context, other.asset).code !== network.code) {
    throw new Refusal(
      'DESTINATION_MISMATCH',
      'Payments of several addresses cannot share a fuel transaction',
    )
  }
  return other
}

async function fuelled(
  context: Context,
  order: Order,
  purpose: Exclude<Fuel['for'], Sweep>,
): Promise<Fuelled> {
  switch (purpose.kind) {
    case 'forward': {
      const { proven, want, step, ...request } = await forwarder(context, order, purpose)
      return {
        context: request,
        subAccount: proven.enrolment.sub_account,
        asset: want.asset,
        rate: null,
        step: [step],
        requested: [requestedForward({ proven, want, step })],
      }
    }
    case 'stake': {
      const { proven, want, ...requested } = await staker(context, order, purpose)
      return {
        context: requested,
        subAccount: proven.enrolment.sub_account,
        asset: want.asset,
        rate: null,
        step: [want.key],
        requested: requestedStake({ proven, want }),
      }
    }
    case 'pay': {
      const by = await payer(context, order, purpose)
      return ofPayer(by, [requestedPay(by)])
    }
    case 'cancel': {
      const { requested, ...by } = await canceller(context, order, purpose)
      const replaced = await replacedBy(context, order, purpose, by)
      // All cancellations of a payment exclude each other, so they are fuelled once.
      return { ...ofPayer(by, [requested]), step: [by.name, 'cancel'], replaced }
    }
  }
}

/** Returns a payment, or its cancellation, as the transaction that a fuel is for. */
function ofPayer(by: Payer, requested: Fuelled['requested']): Fuelled {
  const { proven, want, amend, name, step: _step, ...caller } = by
  return {
    context: caller,
    subAccount: proven.enrolment.sub_account,
    asset: want.asset,
    rate: want.fee_rate,
    step: amend === null ? [name] : [name, amend.key],
    requested,
  }
}

function fromTank(context: Context, order: Order, network: Network): Promise<Subject> {
  assertOnlyPath(order, [TANK_SUB_ACCOUNT, network.chain_index, 0])
  return decodedOn(context, order, network)
}

async function sweepFuel(
  context: Context,
  order: Order,
  purpose: Fuel,
  sweep: Sweep,
): Promise<Verdict> {
  const network = sweepNetwork(context, order.workspace, sweep)
  const subject = await fromTank(context, order, network)
  if (sweep.asset === network.native_asset)
    throw new Refusal(
      'FUEL_WITHOUT_INTENT',
      `A sweep of ${sweep.asset} pays its own network fee, so fuel is not allowed`,
    )
  assertFuels(subject, [sweep.sub_account, network.chain_index, sweep.address_index])
  const most = assertFuelAmount(subject, [{ part: purpose, callerRate: null, present: 0n }])
  const [{ address, amount }] = subject.decoded.payments as [DecodedTransaction['payments'][number]]
  // An address may receive many deposits and therefore many fuel transactions, within the budget
  // and the remainder of earlier fuel.
  return verdictOf(subject, {
    step: JSON.stringify(['fuel', ...sweepName(order.workspace, sweep)]),
    repeatable: true,
    serves: [sweep.sub_account],
    charges: sweepCharges(subject, sweep.sub_account, costOfFuel(subject), context.budgetFeeCaps),
    leftover: {
      address,
      amount,
      most,
      place: subject.decoded.nonce?.toString() ?? hashOfUnsigned(subject.order.unsigned),
    },
    fuelled: { kind: 'fuel', address, amount },
  })
}
