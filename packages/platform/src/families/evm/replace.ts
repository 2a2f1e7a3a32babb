import { decode, evm as evmBuild, formatAmount, type Asset, type DecodedTransaction } from '@custody/chains'
import { fail, type Dearer, type Fail, type Prepared, type Replaceable, type Waiting, type Wanted } from '../../engine/chain.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import { feeRateInteger } from '../../engine/fee-rate.ts'
import { sourcePath } from '../source-path.ts'
import type { Evm } from './context.ts'
import { fuelOf, planOf, type GasPlan } from './plan.ts'

/** Nodes replace a waiting transaction by one that pays a tenth more, tip included. */
const BUMP_NUMERATOR = 11n
const BUMP_DENOMINATOR = 10n
const bumped = (price: bigint): bigint => (price * BUMP_NUMERATOR + BUMP_DENOMINATOR - 1n) / BUMP_DENOMINATOR

export const replaceableOf = (evm: Evm): Replaceable => ({
  async leastRate(row, waiting) {
    return bumped(await highestOf(evm, row, waiting))
  },
  async marketPaysMore(row, newest) {
    return (await evm.feeRates()).medium.maxFeePerGas > await highestOf(evm, row, [newest])
  },
  prepare: (row, asset, wanted, waiting, fuelled) => prepareReplacement(evm, row, asset, wanted, waiting, fuelled),
})

async function highestOf({ keys, registry, network }: Evm, row: TransactionRow, waiting: readonly Waiting[]): Promise<bigint> {
  const key = await keys.get(row.workspace_id, network.curve)
  return waiting.map(({ unsigned }): DecodedTransaction => decode(registry, unsigned, key.at))
    .reduce((most, { max_fee_per_gas: price }) => ((price ?? 0n) > most ? price ?? 0n : most), 0n)
}

/** The same account and nonce again with higher fees; a cancellation pays the sender itself nothing. */
async function prepareReplacement(
  evm: Evm, row: TransactionRow, asset: Asset, wanted: Wanted, waiting: readonly Waiting[], fuelled: boolean,
): Promise<Prepared | Dearer | Fail> {
  const { network, native } = evm
  const before = planOf(row)
  const first = waiting.at(-1)
  if (!first) throw new Error('nothing waits that could be replaced')
  const cancel = wanted.kind === 'CANCEL'
  const gas = cancel ? evmBuild.NATIVE_GAS : before.gas
  const fee = await feeOfReplacement(evm, row, wanted, before, waiting, gas)
  if (typeof fee === 'string') return fail(fee)
  const cost = gas * fee.maxFeePerGas + before.l1Fee
  if (cost > before.need && !fuelled) {
    const show = (wei: bigint) => `${formatAmount(wei, native.decimals)} ${native.asset_name}`
    const market = (await evm.feeRates()).medium
    const by = evmBuild.fuelFor(gas, fee.maxFeePerGas, before.l1Fee) - before.need
    return {
      kind: 'dearer', worst: cost, more: cost - before.need, need: by,
      short: `the fuel at the address covers ${show(before.need)}, and ${show(cost)} would be needed`,
      fuel: fuelOf({ ...before, gas, fee, fuelFee: market.maxFeePerGas > fee.maxFeePerGas ? market : fee, need: by }),
    }
  }
  const path = await sourcePath(evm.database, row, network)
  const account = row.source_id as string
  const nonce = BigInt(first.nonce as string)
  const payment = cancel ? { asset: native, to: account, amount: 0n } : {
    asset, to: row.destination_id as string, amount: BigInt(row.amount),
  }
  return {
    kind: 'prepared', lock: 'account',
    build: async () => ({
      kind: 'built', account, nonce, worst: cost, fee: cost,
      unsigned: evmBuild.buildTransfer(network, { ...payment, nonce, gas, fee, path }),
      plan: { max_fee_per_gas: fee.maxFeePerGas.toString(), max_priority_fee_per_gas: fee.maxPriorityFeePerGas.toString() },
    }),
  }
}

/** A tenth above all that waits, and the market's price or the caller's. Answers why not, where that cannot be. */
async function feeOfReplacement(
  evm: Evm, row: TransactionRow, wanted: Wanted, before: GasPlan, waiting: readonly Waiting[], gas: bigint,
): Promise<evmBuild.EvmFee | string> {
  const least = bumped(await highestOf(evm, row, waiting))
  const market = (await evm.feeRates())[wanted.level ?? (wanted.kind === 'AUTO' ? 'medium' : 'high')]
  const tip = before.fee.legacy ? 0n : bumped(before.fee.maxPriorityFeePerGas)
  const dearerTip = market.maxPriorityFeePerGas > tip ? market.maxPriorityFeePerGas : tip
  if (wanted.feeRate !== null) {
    const price = feeRateInteger(evm.network, wanted.feeRate)
    if (price < least) return 'its fee_rate is no longer high enough to take the place of what waits'
    return withTip(before, price, dearerTip)
  }
  let price = market.maxFeePerGas > least ? market.maxFeePerGas : least
  if (wanted.kind === 'AUTO' && row.source_type !== 'GAS_TANK') {
    // Without the caller's word no more fuel comes: what lies at the address is the limit, and so is the caller's own rate.
    const own = row.fee_rate === null ? null : feeRateInteger(evm.network, row.fee_rate)
    const most = [(before.need - before.l1Fee) / gas, ...(own === null ? [] : [own])].reduce((a, b) => (a < b ? a : b))
    if (most < least) {
      return own !== null
        && most === own ? 'the fee_rate of the transfer allows no higher fee' : 'the fuel at the address allows no higher fee'
    }
    price = price < most ? price : most
  }
  return withTip(before, price, dearerTip)
}

function withTip(before: GasPlan, price: bigint, tip: bigint): evmBuild.EvmFee {
  if (before.fee.legacy) return { maxFeePerGas: price, maxPriorityFeePerGas: price, legacy: true }
  return { maxFeePerGas: price, maxPriorityFeePerGas: tip < price ? tip : price, legacy: false }
}
