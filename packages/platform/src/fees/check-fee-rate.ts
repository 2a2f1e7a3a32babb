import type { Network } from '@custody/chains'
import { ApiError } from '../errors.ts'
import { traitsOf } from '../networks/traits.ts'
import { feeRateInteger } from '../transactions/estimate.ts'

/**
 * A caller's fee_rate as the chain's own integer.
 * @throws ApiError `INVALID_REQUEST` where the network would not relay it or the nodes would not sign it
 */
export function checkedFeeRate(text: string, network: Network): bigint {
  const { feeRateDecimals, leastRate, leastFee } = traitsOf(network)
  let rate: bigint
  try {
    rate = feeRateInteger(network, text)
  } catch {
    throw new ApiError('INVALID_REQUEST', `fee_rate: must be a decimal in ${network.fee_rate_unit} with at most ${feeRateDecimals} decimals`, { field: 'fee_rate' })
  }
  if (rate < leastRate(network)) throw new ApiError('INVALID_REQUEST', `fee_rate: is below the minimum that ${network.name} relays`, { field: 'fee_rate' })
  // A rate whose smallest fee passes the nodes' cap can never be signed.
  if (leastFee(rate) > BigInt(network.fee_cap)) throw new ApiError('INVALID_REQUEST', `fee_rate: exceeds the fee cap of the signer nodes for ${network.name}`, { field: 'fee_rate' })
  return rate
}
