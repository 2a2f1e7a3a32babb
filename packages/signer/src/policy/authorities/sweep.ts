import {
  OMNIBUS_INDEX,
  TANK_SUB_ACCOUNT,
  traitsOf,
  type DecodedTransaction,
  type Network,
} from '@custody/chains'
import { Refusal } from '../../errors.ts'
import { State } from '../../store/state.ts'
import { decodedOn, networkOf, verdictOf, type Context } from '../context.ts'
import { beyondShare, sweepCharges } from '../budget.ts'
import type { Order, Sweep, Verdict } from '../order.ts'
import { assertSweepPaths } from '../paths.ts'
import { assertSweeps } from '../sweep.ts'

/** Returns the name of all transactions about one asset of a deposit address. */
export const sweepName = (
  workspace: string,
  { sub_account, asset, address_index }: Sweep,
): readonly (string | number)[] => ['sweep', workspace, sub_account, asset, address_index]

/**
 * Returns the network of a permitted sweep.
 * @throws Refusal
 */
export function sweepNetwork(context: Context, workspace: string, sweep: Sweep): Network {
  const network = networkOf(context, sweep.asset)
  if (traitsOf(network).deposits !== 'swept')
    throw new Refusal('SWEEP_MISMATCH', `${network.code} requires no sweeps`)
  if (sweep.sub_account === TANK_SUB_ACCOUNT)
    throw new Refusal('FOREIGN_PATH', 'The gas tank must not be swept')
  // Budgets are divided among sub-accounts, so only sub-accounts that the operator has enrolled are
  // accepted.
  if (
    !context.store.state.subAccountNames.has(State.subAccountIndexKey(workspace, sweep.sub_account))
  ) {
    throw new Refusal('NOT_ENROLLED', `No sub-account has the index ${sweep.sub_account}`)
  }
  if (sweep.address_index === OMNIBUS_INDEX)
    throw new Refusal('SWEEP_MISMATCH', 'The omnibus address must not be swept')
  return network
}

/**
 * Rule 12: no caller has signed a sweep, so its only destination is the caller's own omnibus
 * address, within the budgets.
 */
export async function sweep(context: Context, order: Order, purpose: Sweep): Promise<Verdict> {
  const network = sweepNetwork(context, order.workspace, purpose)
  assertSweepPaths(order, network, purpose.sub_account, purpose.address_index)
  const subject = await decodedOn(context, order, network)
  assertSweeps(context, subject, purpose)
  const { decoded } = subject
  const [payment] = decoded.payments as [DecodedTransaction['payments'][number]]
  const native = purpose.asset === network.native_asset
  const counted = native ? beyondShare(decoded.fee_max, payment.amount) : decoded.fee_max
  const address = decoded.from[0]!
  return verdictOf(subject, {
    step: JSON.stringify(sweepName(order.workspace, purpose)),
    repeatable: true,
    serves: [purpose.sub_account],
    charges: sweepCharges(subject, purpose.sub_account, counted, context.budgetFeeCaps),
    ...(traitsOf(network).feesFrom === 'wallet'
      ? {}
      : native
        ? { leftover: { address, amount: payment.amount, least: true as const } }
        : { fuelled: { kind: 'fees' as const, address, amount: decoded.fee_max } }),
  })
}
