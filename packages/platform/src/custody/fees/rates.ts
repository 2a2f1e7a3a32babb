import { formatAmount, NoFeeEstimate, traitsOf, type Asset } from '@custody/chains'
import type { Chain, FeeLevel } from '../../core/engine/chain.ts'
import { ApiError } from '../../core/errors.ts'

/**
 * Returns the current fee rates in the unit of the network. EVM: the expected price per gas (base
 * fee plus tip), not the maximum that a transaction allows. Tron: the price of a point of bandwidth
 * (TRX) or energy (tokens).
 * @throws ApiError `NETWORK_UNAVAILABLE`, which names the network and says if its node has no
 *   estimate
 */
export async function quotedRates(chain: Chain, asset: Asset): Promise<Record<FeeLevel, string>> {
  const { network } = chain
  try {
    const rates = await chain.rates(asset)
    const show = (level: FeeLevel) => formatAmount(rates[level], traitsOf(network).feeRateDecimals)
    return { low: show('low'), medium: show('medium'), high: show('high') }
  } catch (error) {
    if (error instanceof ApiError) throw error
    if (error instanceof NoFeeEstimate) throw new ApiError('NETWORK_UNAVAILABLE', error.message)
    throw new ApiError(
      'NETWORK_UNAVAILABLE',
      `${network.name} (${network.code}) cannot be reached now; its fee rates are unknown`,
    )
  }
}
