import {
  decode,
  evm as evmBuild,
  formatAmount,
  RpcReverted,
  type Asset,
  type DecodedTransaction,
} from '@custody/chains'
import {
  fail,
  type FuelShortfall,
  type Fail,
  type Prepared,
  type Replaceable,
  type Waiting,
  type RequestedReplacement,
} from '../../engine/chain.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import { feeRateInteger } from '../../engine/fee-rate.ts'
import { sourcePath } from '../source-path.ts'
import type { Evm } from './context.ts'
import { expectedPrice } from './estimate.ts'
import { fuelGasOf, gasLimitOf, paymentGasOf } from './gas.ts'
import { l1FeeOf } from './l1-fee.ts'
import { fuelOf, planOf, type OwnPlan } from './plan.ts'

/**
 * Minimum increase of a replacement's price, as a fraction: nodes replace a pending transaction
 * only by one that pays at least 10 % more, including the tip.
 */
const BUMP_NUMERATOR = 11n
const BUMP_DENOMINATOR = 10n
const bumped = (price: bigint): bigint =>
  (price * BUMP_NUMERATOR + BUMP_DENOMINATOR - 1n) / BUMP_DENOMINATOR

export const replaceableOf = (evm: Evm): Replaceable => ({
  async leastRate(row, waiting) {
    return bumped(await highestOf(evm, row, waiting))
  },
  async marketPaysMore(row, newest) {
    return (await evm.feeRates()).medium.maxFeePerGas > (await highestOf(evm, row, [newest]))
  },
  async lacksGas(row, asset, newest) {
    const has = await gasOf(evm, row, newest)
    return evmBuild.estimateOf(await limitNow(evm, row, asset, has)) > has
  },
  prepare: (row, asset, wanted, waiting, fuelled) =>
    prepareReplacement(evm, { row, asset, wanted, waiting, fuelled }),
})

/** Returns the gas limit of a signed transaction. */
async function gasOf(
  { keys, registry, network }: Evm,
  row: TransactionRow,
  { unsigned }: Waiting,
): Promise<bigint> {
  const key = await keys.get(row.workspace_id, network.curve)
  return decode(registry, unsigned, key.at).gas_limit ?? 0n
}

/**
 * Returns the currently estimated gas limit of a transfer, fuel transaction or drain; if it would
 * revert now, its existing limit.
 * @param before existing gas limit
 */
async function limitNow(
  evm: Evm,
  row: TransactionRow,
  asset: Asset,
  before: bigint,
): Promise<bigint> {
  const [from, to] = [row.source_id as string, row.destination_id as string]
  try {
    const isOfTank = row.source_type === 'GAS_TANK'
    return await (isOfTank
      ? paymentGasOf(evm, from, to)
      : gasLimitOf(evm, { asset, from, to, amount: BigInt(row.amount) }))
  } catch (error) {
    if (error instanceof RpcReverted) return before
    throw error
  }
}

/**
 * Returns the gas limit, or the limit without its margin if the reservation does not cover the
 * margin at the market price.
 */
async function affordable(evm: Evm, before: OwnPlan, limit: bigint): Promise<bigint> {
  const price = expectedPrice((await evm.feeRates()).medium)
  return limit * price + before.l1Fee <= before.need ? limit : evmBuild.estimateOf(limit)
}

/** Returns the gas limit of a payment of 0 from the account to itself. */
async function cancellationGasOf(evm: Evm, account: string): Promise<bigint> {
  try {
    return await gasLimitOf(evm, { asset: evm.native, from: account, to: account, amount: 0n })
  } catch (error) {
    if (error instanceof RpcReverted) return evmBuild.NATIVE_GAS
    throw error
  }
}

async function highestOf(
  { keys, registry, network }: Evm,
  row: TransactionRow,
  waiting: readonly Waiting[],
): Promise<bigint> {
  const key = await keys.get(row.workspace_id, network.curve)
  return waiting
    .map(({ unsigned }): DecodedTransaction => decode(registry, unsigned, key.at))
    .reduce((most, { max_fee_per_gas: price }) => ((price ?? 0n) > most ? (price ?? 0n) : most), 0n)
}

/**
 * A replacement to prepare. `waiting`: the pending attempts, newest first. `fuelled`: whether the
 * fuel for it is already at the address.
 */
interface ReplacementRequest {
  row: TransactionRow
  asset: Asset
  wanted: RequestedReplacement
  waiting: readonly Waiting[]
  fuelled: boolean
}

/**
 * Returns the gas limit of a replacement. `lacksGas`: the pending transaction has too little gas to
 * be mined.
 */
async function gasOfReplacement(
  evm: Evm,
  { row, asset, wanted }: ReplacementRequest,
  before: OwnPlan,
): Promise<{ gas: bigint; lacksGas: boolean }> {
  const cancel = wanted.kind === 'CANCEL'
  const needed = cancel
    ? await cancellationGasOf(evm, row.source_id as string)
    : await limitNow(evm, row, asset, before.gas)
  const lacksGas = !cancel && evmBuild.estimateOf(needed) > before.gas
  // A new gas margin is only added if the caller pays for it again. An automatic bump stays within
  // the balance at the address and keeps its gas limit while that is sufficient.
  const isWithinNeed = wanted.kind === 'AUTO' && !isFuel(row)
  const raised = lacksGas && isWithinNeed ? await affordable(evm, before, needed) : needed
  const gas = cancel || lacksGas || (needed > before.gas && !isWithinNeed) ? raised : before.gas
  return { gas, lacksGas }
}

/** Returns the additional fuel that a replacement with this fee requires. */
async function dearerOf(
  evm: Evm,
  row: TransactionRow,
  before: OwnPlan,
  { gas, fee, l1Fee, cost }: { gas: bigint; fee: evmBuild.EvmFee; l1Fee: bigint; cost: bigint },
): Promise<FuelShortfall> {
  const { native } = evm
  const show = (wei: bigint) => `${formatAmount(wei, native.decimals)} ${native.asset_name}`
  const market = (await evm.feeRates()).medium
  const need = evmBuild.fuelFor(gas, fee.maxFeePerGas, l1Fee) - before.need
  const fuelGas = isFuel(row) ? gas : await fuelGasOf(evm, row, row.source_id as string)
  return {
    kind: 'dearer',
    worst: cost,
    price: fee.maxFeePerGas,
    more: cost - before.need,
    need,
    short: `the fuel at the address covers ${show(before.need)}, but ${show(cost)} would be required`,
    fuel: fuelOf({
      gas,
      fee,
      fuelGas,
      fuelFee: market.maxFeePerGas > fee.maxFeePerGas ? market : fee,
      l1Fee,
      need,
    }),
  }
}

/**
 * Prepares a replacement: the same account and nonce with higher fees. A cancellation is a payment
 * of 0 to the sender itself.
 */
async function prepareReplacement(
  evm: Evm,
  request: ReplacementRequest,
): Promise<Prepared | FuelShortfall | Fail> {
  const { network, native } = evm
  const { row, asset, wanted, waiting, fuelled } = request
  const before = planOf(row)
  const first = waiting.at(-1)
  if (!first) throw new Error('no waiting transaction can be replaced')
  const cancel = wanted.kind === 'CANCEL'
  const account = row.source_id as string
  const { gas, lacksGas } = await gasOfReplacement(evm, request, before)
  const fee = await feeOfReplacement(evm, request, before, { gas, lacksGas })
  if (typeof fee === 'string') return fail(fee)
  const payment = cancel
    ? { asset: native, to: account, amount: 0n }
    : {
        asset,
        to: row.destination_id as string,
        amount: BigInt(row.amount),
      }
  const l1Fee =
    gas > before.gas ? await l1FeeOf(evm, payment.asset, { ...payment, gas, fee }) : before.l1Fee
  const cost = gas * fee.maxFeePerGas + l1Fee
  if (cost > before.need && !fuelled) return dearerOf(evm, row, before, { gas, fee, l1Fee, cost })
  const path = await sourcePath(evm.database, row, network)
  const nonce = BigInt(first.nonce as string)
  return {
    kind: 'prepared',
    lock: 'account',
    build: async () => ({
      kind: 'built',
      account,
      nonce,
      worst: cost,
      fee: cost,
      unsigned: evmBuild.buildTransfer(network, { ...payment, nonce, gas, fee, path }),
      plan: {
        max_fee_per_gas: fee.maxFeePerGas.toString(),
        max_priority_fee_per_gas: fee.maxPriorityFeePerGas.toString(),
        ...(cancel ? {} : { gas: gas.toString(), l1_fee: l1Fee.toString() }),
      },
    }),
  }
}

/**
 * Returns a fee at least 10 % above all pending attempts, at the market's or the caller's price; or
 * the reason why no such fee is possible.
 * @param o.lacksGas the pending transaction has too little gas to be mined; nodes have dropped it,
 *   so an increase of less than 10 % may be sufficient
 */
async function feeOfReplacement(
  evm: Evm,
  { row, wanted, waiting }: ReplacementRequest,
  before: OwnPlan,
  { gas, lacksGas }: { gas: bigint; lacksGas: boolean },
): Promise<evmBuild.EvmFee | string> {
  const highest = await highestOf(evm, row, waiting)
  const least = wanted.refused ? highest : bumped(highest)
  const market = (await evm.feeRates())[
    wanted.level ?? (wanted.kind === 'AUTO' ? 'medium' : 'high')
  ]
  const tip = before.fee.legacy ? 0n : bumped(before.fee.maxPriorityFeePerGas)
  const dearerTip = market.maxPriorityFeePerGas > tip ? market.maxPriorityFeePerGas : tip
  if (wanted.feeRate !== null) {
    const price = feeRateInteger(evm.network, wanted.feeRate)
    if (price < least)
      return 'its fee_rate is no longer high enough to replace the waiting transaction'
    return withTip(before, price, dearerTip)
  }
  const wished = market.maxFeePerGas > least ? market.maxFeePerGas : least
  let most = wished
  if (wanted.kind === 'AUTO' && !isFuel(row)) {
    const limit = limitOfAuto(evm, row, before, gas)
    const isNowhere = lacksGas || wanted.refused
    if (limit.most < least && !(isNowhere && limit.most >= expectedPrice(market)))
      return `${limit.by} allows no higher fee`
    most = limit.most
  }
  const fee = withTip(before, wished < most ? wished : most, dearerTip)
  const isSame =
    fee.maxFeePerGas <= highest && fee.maxPriorityFeePerGas <= before.fee.maxPriorityFeePerGas
  return wanted.refused && isSame ? 'neither the market nor the node names a higher fee' : fee
}

/**
 * Returns the highest price of an automatic replacement, and what limits it. No more fuel is sent
 * without the caller's request, so the balance at the address and the caller's own rate are the limits.
 */
function limitOfAuto(
  evm: Evm,
  row: TransactionRow,
  before: OwnPlan,
  gas: bigint,
): { most: bigint; by: string } {
  const fuelled = (before.need - before.l1Fee) / gas
  const own = row.fee_rate === null ? null : feeRateInteger(evm.network, row.fee_rate)
  return own !== null && own <= fuelled
    ? { most: own, by: 'the fee_rate of the transfer' }
    : { most: fuelled, by: 'the fuel at the address' }
}

/** Whether the gas tank itself pays and may pay more. A drain already uses its full balance. */
const isFuel = (row: TransactionRow): boolean => row.kind === 'FUEL'

function withTip(before: OwnPlan, price: bigint, tip: bigint): evmBuild.EvmFee {
  if (before.fee.legacy) return { maxFeePerGas: price, maxPriorityFeePerGas: price, legacy: true }
  return { maxFeePerGas: price, maxPriorityFeePerGas: tip < price ? tip : price, legacy: false }
}
