import { evm as evmBuild, formatAmount, RpcReverted } from '@custody/chains'
import {
  fail,
  wait,
  type Fail,
  type Fuelled,
  type Priced,
  type Task,
  type Wait,
} from '../../engine/chain.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import { wouldRevert } from '../reverts.ts'
import type { Evm } from './context.ts'
import { fuelGasOf, lostFuel, paymentGasOf } from './gas.ts'
import { l1FeeOf } from './l1-fee.ts'
import { fuelOf, planFields, planGas, planOf, worstOf, type GasPlan } from './plan.ts'

const PRICE_RETRY_MS = 10_000
/** Maximum time in milliseconds that a transfer waits for a gas price that its gas tank pays. */
const PRICE_WAIT_MS = 3_600_000
const GWEI_DECIMALS = 9

/** Plans gas and price of a transfer, and its fuel. A sweep of the native coin pays for itself. */
export async function price(
  evm: Evm,
  task: Task,
  maxGasPrice: bigint | null,
): Promise<Priced | Wait | Fail> {
  const { row, asset } = task
  const planned = await planGas(evm, task)
  if ('reverts' in planned) return wouldRevert(row, planned.reverts)
  const plan = maxGasPrice === null ? planned.plan : belowPrice(planned.plan, maxGasPrice)
  if (plan === null) return tooDear(evm, task, maxGasPrice as bigint)
  const own = task.sweeps && asset.type === 'native'
  return {
    kind: 'priced',
    need: plan.need,
    worst: own ? plan.need : worstOf(plan),
    own,
    plan: { ...planFields(plan), ...(own ? { own: '1' } : {}) },
    fuel: fuelOf(plan, task.sweeps && !own ? await lostFuel(evm, row) : 0n),
  }
}

function tooDear({ network, environment }: Evm, { row }: Task, most: bigint): Wait | Fail {
  const shown = `${formatAmount(most, GWEI_DECIMALS)} ${network.fee_rate_unit}`
  return environment.now() - row.created_at.getTime() < PRICE_WAIT_MS
    ? wait(
        'NETWORK_FEES',
        `it waits for a gas price of at most ${shown}, the maximum that the gas tank pays`,
        PRICE_RETRY_MS,
      )
    : fail(`the gas price stayed above ${shown}, the maximum that the gas tank pays, for an hour`)
}

/**
 * Limits the plan's prices to the highest price that the tank pays; null while the chain's current
 * price is above it.
 */
function belowPrice(plan: GasPlan, most: bigint): GasPlan | null {
  const capped = (fee: GasPlan['fee']): GasPlan['fee'] | null => {
    if (fee.maxFeePerGas <= most) return fee
    // The maximum is twice the base fee plus the tip; half of the sum of maximum and tip is the
    // current price.
    const expected = fee.legacy
      ? fee.maxFeePerGas
      : (fee.maxFeePerGas + fee.maxPriorityFeePerGas) / 2n
    return expected > most ? null : { ...fee, maxFeePerGas: most }
  }
  const [fee, fuelFee] = [capped(plan.fee), capped(plan.fuelFee)]
  return fee === null || fuelFee === null
    ? null
    : { ...plan, fee, fuelFee, need: evmBuild.fuelFor(plan.gas, fee.maxFeePerGas, plan.l1Fee) }
}

/**
 * Plans a failed fuel transaction again, with the currently estimated gas if that is higher than
 * before.
 */
export async function fuelAgain(
  evm: Evm,
  failed: TransactionRow<'FUEL'>,
): ReturnType<NonNullable<Fuelled['again']>> {
  const { need: _, ...before } = planOf(failed)
  const now = await fuelGasOf(evm, failed, failed.destination_id as string)
  const plan = { ...before, gas: now > before.gas ? now : before.gas }
  const cost = worstOf(plan)
  return { cost, plan: planFields({ ...plan, need: cost }) }
}

/**
 * Returns the cost of sending a tank's full balance. The tip equals the maximum price, so that the
 * price is exact and nothing is left over.
 */
export async function drain(
  evm: Evm,
  { from, to }: Parameters<Fuelled['drain']>[0],
): ReturnType<Fuelled['drain']> {
  const { native } = evm
  const { high } = await evm.feeRates()
  const fee = { ...high, maxPriorityFeePerGas: high.maxFeePerGas }
  let gas: bigint
  try {
    gas = await paymentGasOf(evm, from, to)
  } catch (error) {
    if (error instanceof RpcReverted) return fail(error.message)
    throw error
  }
  const l1Fee = await l1FeeOf(evm, native, { to, amount: 10n ** BigInt(native.decimals), gas, fee })
  const worst = worstOf({ gas, fee, l1Fee })
  return { kind: 'drain', worst, plan: planFields({ gas, fee, l1Fee, need: worst }) }
}
