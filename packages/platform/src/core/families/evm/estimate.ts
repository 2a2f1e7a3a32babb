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

/** Gas of a token transfer if the chain cannot be queried. */
const TOKEN_GAS = 65_000n
/**
 * Address without a known key that is used as a placeholder in estimates: the first twenty bytes of
 * SHA-256("custody").
 */
const UNUSED_ADDRESS = '0x21a7f61c15cef4ddedae076d6b7393f1d3d4a9b5'

/**
 * Where the gas includes publishing, a token transfer publishes about 1.5 times as many bytes as a
 * native transfer.
 */
const TOKEN_BYTES_NUMERATOR = 3n
const TOKEN_BYTES_DENOMINATOR = 2n

/**
 * Returns the gas of a payment of 0 from an address to itself: 21,000 plus any network-specific
 * surcharge.
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
 * Returns the expected price per gas (base fee plus tip), not the maximum that the transaction
 * allows.
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
    withL1Fee(
      evm,
      { asset, amount: amount ?? whole, gas: await usualGas(evm, asset), rate },
      'typical',
    )
  const omnibus = await evm.addresses.omnibus(evm.network, owner)
  if (asset.type === 'native') {
    if (to === null) return usual()
    // The amount does not affect the gas, but whether the recipient exists may (EIP-8037), and so
    // may its contract code.
    const gas = await evm.client
      .gasUsed({ asset, from: omnibus, to, amount: 1n })
      .catch((error: unknown) => {
        if (error instanceof ChainError) return null
        throw error
      })
    return gas === null
      ? usual()
      : withL1Fee(evm, { asset, amount: amount ?? whole, gas, rate }, 'typical')
  }
  const balance = await spendableOf(evm.database, owner, asset)
  if (balance === null) return usual()
  try {
    // If the recipient is not known, a recipient without tokens is assumed: the more expensive and
    // usual case of a first payment.
    const moved = amount !== null && amount < balance ? amount : balance
    const gas = await evm.client.gasUsed({
      asset,
      from: omnibus,
      to: to ?? UNUSED_ADDRESS,
      amount: moved,
    })
    return await withL1Fee(evm, { asset, amount: moved, gas, rate }, 'wallet')
  } catch (error) {
    if (!(error instanceof ChainError)) throw error
    return usual()
  }
}

/**
 * Adds the L1 fee that rollups charge for publishing the transaction. If it cannot be queried, the
 * quote contains only the rest.
 */
async function withL1Fee(
  evm: Evm,
  { asset, amount, gas, rate }: { asset: Asset; amount: bigint; gas: bigint; rate: bigint },
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
