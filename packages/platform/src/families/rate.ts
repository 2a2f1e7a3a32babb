import { parseAmount, type Network } from '@custody/chains'
import { traitsOf } from '../engine/traits.ts'

/** A caller's fee rate in the chain's own integer. @throws ChainError on surplus decimals */
export const feeRateInteger = (network: Network, text: string): bigint => parseAmount(text, traitsOf(network).feeRateDecimals)
