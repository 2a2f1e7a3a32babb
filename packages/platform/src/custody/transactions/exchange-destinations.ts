import type { Asset, Network } from '@custody/chains'
import type { TransferBody } from '@custody/request-auth/bodies'
import type { Caller } from '../../core/http/endpoint.ts'

/** A transfer to an exchange account, to be stored in the transaction that creates the transfer. */
export interface ExchangeDestination {
  /** Columns of the new row in `exchange_transfers`. */
  row: object
  /** JSON text of the row, as the API returns it. */
  shown: string
}

/**
 * Checks the destination of transfers to exchange accounts. Exchanges are not a part of custody:
 * the server provides this check.
 */
export interface ExchangeDestinations {
  /**
   * @returns null for a transfer to another destination
   * @throws ApiError if the caller has not signed the account's current deposit address
   */
  check(
    caller: Caller,
    body: TransferBody,
    payment: { asset: Asset; network: Network; amount: bigint },
  ): Promise<ExchangeDestination | null>
}
