import { formatAmount, traitsOf, type Network, type Registry } from '@custody/chains'
import { ApiError } from '../errors.ts'
import { feeRateInteger } from './fee-rate.ts'

/**
 * Converts a caller's fee rate to the chain's integer unit.
 * @param field name of the field in the caller's request
 * @throws ApiError `INVALID_REQUEST` if the network would not relay it or the signer nodes would
 *   not sign it
 */
export function checkedFeeRate(
  text: string,
  network: Network,
  registry: Registry,
  field = 'fee_rate',
): bigint {
  const { feeRateDecimals, leastRate, leastFee } = traitsOf(network)
  let rate: bigint
  try {
    rate = feeRateInteger(network, text)
  } catch {
    throw new ApiError(
      'INVALID_REQUEST',
      `${field}: must be a decimal in ${network.fee_rate_unit} with at most ${feeRateDecimals} decimals`,
      { field },
    )
  }
  const least = leastRate(network)
  if (rate < least)
    throw new ApiError(
      'INVALID_REQUEST',
      `${field}: must be at least ${formatAmount(least, feeRateDecimals)} ${network.fee_rate_unit}, the minimum that ${network.name} relays`,
      { field },
    )
  // If even the smallest transaction at this rate exceeds the signer nodes' cap, it can never be
  // signed.
  const [cost, cap] = [leastFee(rate), BigInt(network.fee_cap)]
  if (cost > cap) {
    const show = (value: bigint) =>
      `${formatAmount(value, registry.asset(network.native_asset)?.decimals ?? 0)} ${network.native_asset}`
    throw new ApiError(
      'INVALID_REQUEST',
      `${field}: the smallest transaction would cost ${show(cost)}; the signer nodes' maximum for one transaction is ${show(cap)}`,
      { field },
    )
  }
  return rate
}
