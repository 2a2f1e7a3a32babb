import { OMNIBUS_INDEX, TANK_SUB_ACCOUNT, traitsOf, type DecodedTransaction, type Network } from '@custody/chains'
import { Refusal } from '../../errors.ts'
import { decodedOn, networkOf, verdictOf, type Context } from '../context.ts'
import { charge, costOfFuel, sweepCharges } from '../budget.ts'
import type { Asked } from '../callers.ts'
import { assertFuels } from '../fuel.ts'
import type { Fuel, Order, Subject, Sweep, Verdict } from '../order.ts'
import { assertOnlyPath } from '../paths.ts'
import { canceller } from './cancel.ts'
import { forwarder } from './forward.ts'
import { payer } from './pay.ts'
import { staker } from './stake.ts'
import { sweepName, sweepNetwork } from './sweep.ts'

/** For whom a tank pays: `step` names the fuel, `rate` is the most per unit that the caller allows. */
interface Fuelled { asked: Asked & Partial<Verdict>; subAccount: number; asset: string; rate: string | null; step: readonly string[] }

/** Rule 11: native coin from the gas tank to the source address of one intent or one token sweep. */
export async function fuel(context: Context, order: Order, purpose: Fuel): Promise<Verdict> {
  if (purpose.for.kind === 'sweep') return sweepFuel(context, order, purpose, purpose.for)
  const { asked, subAccount, asset, rate, step } = await fuelled(context, order, purpose.for)
  const network = networkOf(context, asset)
  if (traitsOf(network).feesFrom !== 'tank') throw new Refusal('FUEL_WITHOUT_INTENT', `${network.code} pays its own fees`)
  const subject = await fromTank(context, order, network)
  assertFuels(subject, purpose, [subAccount, network.chain_index, OMNIBUS_INDEX], rate)
  const charges = [charge(subject, subAccount, costOfFuel(subject), context.budgetFeeCaps)]
  return verdictOf(subject, { ...asked, step: JSON.stringify(['fuel', ...step]), repeatable: false, charges })
}

async function fuelled(context: Context, order: Order, purpose: Exclude<Fuel['for'], Sweep>): Promise<Fuelled> {
  switch (purpose.kind) {
    case 'forward': {
      const { proven, want, step, ...asked } = await forwarder(context, order, purpose)
      return { asked, subAccount: proven.enrolment.sub_account, asset: want.asset, rate: null, step: [step] }
    }
    case 'stake': {
      const { proven, want, ...asked } = await staker(context, order, purpose)
      return { asked, subAccount: proven.enrolment.sub_account, asset: want.asset, rate: null, step: [want.key] }
    }
    case 'pay':
    case 'cancel': {
      const by = purpose.kind === 'cancel' ? await canceller(context, order, purpose) : await payer(context, order, purpose)
      const { proven, want, amend, name, step: _step, ...asked } = by
      const step = amend === null ? [name] : [name, amend.key]
      return { asked, subAccount: proven.enrolment.sub_account, asset: want.asset, rate: want.fee_rate, step }
    }
  }
}

function fromTank(context: Context, order: Order, network: Network): Promise<Subject> {
  assertOnlyPath(order, [TANK_SUB_ACCOUNT, network.chain_index, 0])
  return decodedOn(context, order, network)
}

async function sweepFuel(context: Context, order: Order, purpose: Fuel, sweep: Sweep): Promise<Verdict> {
  const network = sweepNetwork(context, order.workspace, sweep)
  const subject = await fromTank(context, order, network)
  if (sweep.asset === network.native_asset) throw new Refusal('FUEL_WITHOUT_INTENT', `A sweep of ${sweep.asset} pays for itself`)
  const most = assertFuels(subject, purpose, [sweep.sub_account, network.chain_index, sweep.address_index], null)
  const [{ address, amount }] = subject.decoded.payments as [DecodedTransaction['payments'][number]]
  // Deposits come again and again to one address, so its fuel does too, within the budget and what is left of the last.
  return verdictOf(subject, {
    step: JSON.stringify(['fuel', ...sweepName(order.workspace, sweep)]),
    repeatable: true,
    charges: sweepCharges(subject, sweep.sub_account, costOfFuel(subject), context.budgetFeeCaps),
    leftover: { address, amount, most },
    fuelled: { kind: 'fuel', address, amount },
  })
}
