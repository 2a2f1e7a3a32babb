import { cardano, type CardanoClient, type Network } from '@custody/chains'
import { feeRateInteger } from '../../engine/fee-rate.ts'

/**
 * Returns the chain's protocol parameters for an estimate, or recorded ones if the chain is
 * unreachable. Transactions are always built with the chain's current parameters.
 */
export const parametersSoon = (client: CardanoClient): Promise<cardano.Parameters> =>
  client.parameters().catch(() => cardano.PARAMETERS)

/**
 * Returns the fee in lovelace per byte: the caller's, otherwise the ledger's, which is the same for
 * all users.
 */
export function rateOf(
  network: Network,
  parameters: cardano.Parameters,
  feeRate: string | null,
): bigint {
  return feeRate === null ? parameters.feePerByte : feeRateInteger(network, feeRate)
}
