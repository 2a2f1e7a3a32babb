import type { Network } from '@custody/chains'
import type { Owner } from '../chain.ts'

/** Finds and creates the platform's own addresses. */
export interface Addresses {
  /**
   * Return the omnibus address and the change address of a sub-account, as stored when its wallet
   * was created. Must not be called inside database transactions.
   */
  omnibus(network: Network, owner: Owner): Promise<string>
  change(network: Network, owner: Owner): Promise<string>
  /**
   * Commits the height at which the scan of a network starts, once, before an address on it is
   * stored.
   * @throws ApiError `NETWORK_UNAVAILABLE` if the chain cannot be queried, because an address would
   *   be assigned that no scan covers
   */
  startScan(network: Network): Promise<void>
}
