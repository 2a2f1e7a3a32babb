import { cardano, type CardanoClient, type Network } from '@custody/chains'
import { feeRateInteger } from '../../engine/fee-rate.ts'

/**
 * The chain's prices for an estimate, or recorded ones where it is away; a transaction is always
 * built with the chain's.
 */
export const parametersSoon = (client: CardanoClient): Promise<cardano.Parameters> =>
  client.parameters().catch(() => cardano.PARAMETERS)

/** Lovelace per byte: the caller's, else the ledger's, which is everyone's. */
export function rateOf(
  network: Network,
  parameters: cardano.Parameters,
  feeRate: string | null,
): bigint {
  return feeRate === null ? parameters.feePerByte : feeRateInteger(network, feeRate)
}
