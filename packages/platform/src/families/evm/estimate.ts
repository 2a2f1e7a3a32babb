import { ChainError, evm as evmBuild, type Asset, type EvmClient } from '@custody/chains'
import {
  DEFAULT_LEVEL,
  type Estimate,
  type Question,
  type Quote,
  type QuoteQuestion,
} from '../../engine/chain.ts'
import { feeRateInteger } from '../../engine/fee-rate.ts'
import { spendableOf } from '../spendable.ts'
import type { Evm } from './context.ts'
import { l1FeeOf } from './l1-fee.ts'

/** Gas of a token transfer where the chain cannot be asked. */
const TOKEN_GAS = 65_000n
/**
 * An address without a known key, as an estimate's stand-in: the first twenty bytes of
 * SHA-256("custody").
 */
const UNUSED_ADDRESS = '0x21a7f61c15cef4ddedae076d6b7393f1d3d4a9b5'

/**
 * Where publishing is part of the gas, a token's transfer publishes about half as many bytes again.
 */
const TOKEN_BYTES_NUMERATOR = 3n
const TOKEN_BYTES_DENOMINATOR = 2n

/**
 * What a payment of nothing to an address itself uses: 21,000, or what comes on top at this
 * network.
 */
export const usualNativeGas = (client: EvmClient, native: Asset): Promise<bigint> =>
  client.gasUsed({ asset: native, from: UNUSED_ADDRESS, to: UNUSED_ADDRESS, amount: 0n })

async function usualGas({ nativeGas }: Evm, { type }: Asset): Promise<bigint> {
  const native = await nativeGas().catch(() => evmBuild.NATIVE_GAS)
  if (type === 'native') return native
  const more = native > evmBuild.NATIVE_GAS ? native - evmBuild.NATIVE_GAS : 0n
  return TOKEN_GAS + (more * TOKEN_BYTES_NUMERATOR) / TOKEN_BYTES_DENOMINATOR
}

const exactly = (price: bigint) => ({ maxFeePerGas: price, maxPriorityFeePerGas: price })

/**
 * What a transaction is expected to pay per gas, base fee and tip, not the maximum that it allows.
 */
export const expectedPrice = (fee: evmBuild.EvmFee): bigint =>
  fee.legacy ? fee.maxFeePerGas : (fee.maxFeePerGas + fee.maxPriorityFeePerGas) / 2n

export async function estimate(
  evm: Evm,
  { asset, amount, to, feeRate, level }: Question,
): Promise<Estimate> {
  const gas = await usualGas(evm, asset)
  const price =
    feeRate !== null
      ? feeRateInteger(evm.network, feeRate)
      : await evm.feeRates().then(
          (rates) => expectedPrice(rates[level ?? DEFAULT_LEVEL]),
          () => 0n,
        )
  const l1Fee = await l1FeeOf(evm, asset, { to, amount, gas, fee: exactly(price) }, false).catch(
    () => 0n,
  )
  return { fee: gas * price + l1Fee, reserve: 0n }
}

export async function quote(
  evm: Evm,
  { owner, asset, rate, amount, to }: QuoteQuestion,
): Promise<Quote> {
  const whole = 10n ** BigInt(asset.decimals)
  const usual = async () =>
    withL1Fee(evm, asset, amount ?? whole, await usualGas(evm, asset), rate, 'typical')
  const omnibus = await evm.addresses.omnibus(evm.network, owner)
  if (asset.type === 'native') {
    if (to === null) return usual()
    // The amount does not matter, but whether the receiver exists may (EIP-8037), and its
    // contract's code.
    const gas = await evm.client
      .gasUsed({ asset, from: omnibus, to, amount: 1n })
      .catch((error: unknown) => {
        if (error instanceof ChainError) return null
        throw error
      })
    return gas === null ? usual() : withL1Fee(evm, asset, amount ?? whole, gas, rate, 'typical')
  }
  const balance = await spendableOf(evm.database, owner, asset)
  if (balance === null) return usual()
  try {
    // Where the receiver is not known, one that holds none: the dearer and usual case of a first
    // payment.
    const moved = amount !== null && amount < balance ? amount : balance
    const gas = await evm.client.gasUsed({
      asset,
      from: omnibus,
      to: to ?? UNUSED_ADDRESS,
      amount: moved,
    })
    return await withL1Fee(evm, asset, moved, gas, rate, 'wallet')
  } catch (error) {
    if (!(error instanceof ChainError)) throw error
    return usual()
  }
}

/**
 * Roll-ups also charge for publishing the transaction; where that cannot be asked, the quote says
 * only the rest.
 */
async function withL1Fee(
  evm: Evm,
  asset: Asset,
  amount: bigint,
  gas: bigint,
  rate: bigint,
  basis: Quote['basis'],
): Promise<Quote> {
  const l1Fee = await l1FeeOf(
    evm,
    asset,
    { to: UNUSED_ADDRESS, amount, gas, fee: exactly(rate) },
    false,
  ).catch(() => 0n)
  return { fee: gas * rate + l1Fee, basis, ...(l1Fee > 0n ? { l1Fee } : {}) }
}
