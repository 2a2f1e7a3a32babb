import { formatAmount, solana, type EvmFeeRates, type Asset, type LevelRates, type Network, type UtxoFeeRates } from '@custody/chains'
import { ApiError } from '../errors.ts'
import { traitsOf } from '../engine/traits.ts'
import type { Services } from '../engine/services.ts'
import { priceOf } from '../families/tron/price.ts'

export interface QuotedRates { low: string; medium: string; high: string }

/**
 * Current fee rates in the unit of the network's family. EVM: what a transaction is expected to pay per gas,
 * base fee and tip, not the maximum that it allows. Tron: of a point of bandwidth (TRX) or energy (tokens).
 * @throws ApiError `NETWORK_UNAVAILABLE` that names the network
 */
export async function quotedRates(services: Services, network: Network, asset: Asset): Promise<QuotedRates> {
  const { feeRateDecimals, deposits } = traitsOf(network)
  const show = (rate: bigint) => formatAmount(rate, feeRateDecimals)
  try {
    if (network.family === 'utxo') {
      const rates: UtxoFeeRates = await services.networks.utxoFeeRates(network.code)
      return { low: show(rates.low), medium: show(rates.medium), high: show(rates.high) }
    }
    if (network.family === 'solana') {
      const prices: LevelRates = await services.networks.solanaUnitPrices(network.code)
      const fee = (price: bigint) => show(solana.feeOf(solana.unitsOf(false), price))
      return { low: fee(prices.low), medium: fee(prices.medium), high: fee(prices.high) }
    }
    if (network.family === 'tron') {
      const price = show(priceOf(asset, await services.networks.tronParameters(network.code)))
      return { low: price, medium: price, high: price }
    }
    if (network.family === 'cardano') {
      const rates: LevelRates = await services.networks.cardanoFeeRates(network.code)
      return { low: show(rates.low), medium: show(rates.medium), high: show(rates.high) }
    }
    if (deposits === 'tagged') {
      const rates: LevelRates = await services.networks.taggedFeeRates(network.code)
      return { low: show(rates.low), medium: show(rates.medium), high: show(rates.high) }
    }
    const rates: EvmFeeRates = await services.networks.evmFeeRates(network.code)
    const expected = (level: keyof EvmFeeRates) => (rates[level].legacy ? rates[level].maxFeePerGas : (rates[level].maxFeePerGas + rates[level].maxPriorityFeePerGas) / 2n)
    return { low: show(expected('low')), medium: show(expected('medium')), high: show(expected('high')) }
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw new ApiError('NETWORK_UNAVAILABLE', `${network.name} (${network.code}) cannot be reached now; its fee rates are not known`)
  }
}
