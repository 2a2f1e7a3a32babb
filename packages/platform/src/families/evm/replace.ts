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
  type Dearer,
  type Fail,
  type Prepared,
  type Replaceable,
  type Waiting,
  type Wanted,
} from '../../engine/chain.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import { feeRateInteger } from '../../engine/fee-rate.ts'
import { sourcePath } from '../source-path.ts'
import type { Evm } from './context.ts'
import { expectedPrice } from './estimate.ts'
import { fuelGasOf, gasLimitOf, paymentGasOf } from './gas.ts'
import { l1FeeOf } from './l1-fee.ts'
import { fuelOf, planOf, type OwnPlan } from './plan.ts'

/** Nodes replace a waiting transaction by one that pays a tenth more, tip included. */
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
  async lacksGas(row, asset, newest, reason) {
    if (!evmBuild.lacksGas(reason)) return false
    const has = await gasOf(evm, row, newest)
    return evmBuild.estimateOf(await limitNow(evm, row, asset, has)) > has
  },
  prepare: (row, asset, wanted, waiting, fuelled) =>
    prepareReplacement(evm, row, asset, wanted, waiting, fuelled),
})

/** The gas limit of a signed transaction. */
async function gasOf(
  { keys, registry, network }: Evm,
  row: TransactionRow,
  { unsigned }: Waiting,
): Promise<bigint> {
  const key = await keys.get(row.workspace_id, network.curve)
  return decode(registry, unsigned, key.at).gas_limit ?? 0n
}

/**
 * The gas limit that a transfer, fuel or drain would get now; where it would revert now, the one
 * that it has.
 * @param before the gas limit that it has
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
 * The gas limit, or without its head-room where what is held for the fee does not pay for that at
 * the market's price.
 */
async function affordable(evm: Evm, before: OwnPlan, limit: bigint): Promise<bigint> {
  const price = expectedPrice((await evm.feeRates()).medium)
  return limit * price + before.l1Fee <= before.need ? limit : evmBuild.estimateOf(limit)
}

/** Gas of a payment of nothing to the account itself. */
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
 * The same account and nonce again with higher fees; a cancellation pays the sender itself nothing.
 */
async function prepareReplacement(
  evm: Evm,
  row: TransactionRow,
  asset: Asset,
  wanted: Wanted,
  waiting: readonly Waiting[],
  fuelled: boolean,
): Promise<Prepared | Dearer | Fail> {
  const { network, native } = evm
  const before = planOf(row)
  const first = waiting.at(-1)
  if (!first) throw new Error('no waiting transaction can be replaced')
  const cancel = wanted.kind === 'CANCEL'
  const account = row.source_id as string
  const needed = cancel
    ? await cancellationGasOf(evm, account)
    : await limitNow(evm, row, asset, before.gas)
  const lacksGas = !cancel && evmBuild.estimateOf(needed) > before.gas
  // Only what is paid for once more may take new head-room; a bump within what lies at the address
  // keeps its gas while that suffices.
  const isWithinNeed = wanted.kind === 'AUTO' && !isFuel(row)
  const raised = lacksGas && isWithinNeed ? await affordable(evm, before, needed) : needed
  const gas = cancel || lacksGas || (needed > before.gas && !isWithinNeed) ? raised : before.gas
  const fee = await feeOfReplacement(evm, row, wanted, before, waiting, { gas, lacksGas })
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
  if (cost > before.need && !fuelled) {
    const show = (wei: bigint) => `${formatAmount(wei, native.decimals)} ${native.asset_name}`
    const market = (await evm.feeRates()).medium
    const by = evmBuild.fuelFor(gas, fee.maxFeePerGas, l1Fee) - before.need
    const fuelGas = isFuel(row) ? gas : await fuelGasOf(evm, row, account)
    return {
      kind: 'dearer',
      worst: cost,
      more: cost - before.need,
      need: by,
      short: `the fuel at the address covers ${show(before.need)}, and ${show(cost)} would be required`,
      fuel: fuelOf({
        gas,
        fee,
        fuelGas,
        fuelFee: market.maxFeePerGas > fee.maxFeePerGas ? market : fee,
        l1Fee,
        need: by,
      }),
    }
  }
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
 * A tenth above all that waits, and the market's price or the caller's. Answers why not, where that
 * cannot be.
 * @param o.lacksGas what waits has too little gas to be mined: nodes hold none of it, so that
 *   less than a tenth above it may do
 */
async function feeOfReplacement(
  evm: Evm,
  row: TransactionRow,
  wanted: Wanted,
  before: OwnPlan,
  waiting: readonly Waiting[],
  { gas, lacksGas }: { gas: bigint; lacksGas: boolean },
): Promise<evmBuild.EvmFee | string> {
  const least = bumped(await highestOf(evm, row, waiting))
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
  let price = market.maxFeePerGas > least ? market.maxFeePerGas : least
  if (wanted.kind === 'AUTO' && !isFuel(row)) {
    // Without the caller's word no more fuel comes: what lies at the address is the limit, and so
    // is the caller's own rate.
    const own = row.fee_rate === null ? null : feeRateInteger(evm.network, row.fee_rate)
    const most = [(before.need - before.l1Fee) / gas, ...(own === null ? [] : [own])].reduce(
      (a, b) => (a < b ? a : b),
    )
    if (most < least && !(lacksGas && most >= expectedPrice(market))) {
      return own !== null && most === own
        ? 'the fee_rate of the transfer allows no higher fee'
        : 'the fuel at the address allows no higher fee'
    }
    price = price < most ? price : most
  }
  return withTip(before, price, dearerTip)
}

/** What the tank pays by itself, where it holds more. A drain has all that it holds. */
const isFuel = (row: TransactionRow): boolean => row.kind === 'FUEL'

function withTip(before: OwnPlan, price: bigint, tip: bigint): evmBuild.EvmFee {
  if (before.fee.legacy) return { maxFeePerGas: price, maxPriorityFeePerGas: price, legacy: true }
  return { maxFeePerGas: price, maxPriorityFeePerGas: tip < price ? tip : price, legacy: false }
}
