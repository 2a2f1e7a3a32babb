import type { Network } from '@custody/chains'
import { addressKeys, spaceOf } from '../aml/address-key.ts'
import { findFrozen } from '../aml/frozen.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import type { Aml } from '../aml/aml.ts'

interface Services {
  database: Database
  aml: Aml
}

interface Owner {
  workspaceId: string
  subAccountId: string
}

/**
 * Returns why a resource must not be delegated to an address, or null. No funds go there and the
 * stake can be undelegated at any time, so the screening provider is not queried. Sanctioned
 * addresses and those that the sub-account has frozen are still refused.
 */
export async function receiverStops(
  services: Pick<Services, 'aml'>,
  database: Queryable,
  owner: Owner,
  network: Network,
  address: string,
): Promise<'sanctioned' | 'frozen' | null> {
  if (services.aml.sanctions.has(network, address)) return 'sanctioned'
  return (await findFrozen(database, owner, spaceOf(network), addressKeys(network, address)))
    ? 'frozen'
    : null
}

/**
 * Checks that a resource may be delegated to an address.
 * @throws ApiError `SANCTIONED`, `ADDRESS_FROZEN`
 */
export async function assertReceivable(
  services: Services,
  owner: Owner,
  network: Network,
  address: string,
): Promise<void> {
  const stops = await receiverStops(services, services.database, owner, network, address)
  if (stops === 'sanctioned') {
    throw new ApiError(
      'SANCTIONED',
      'address: is on a sanctions list; nothing can be staked for it',
      {
        field: 'address',
      },
    )
  }
  if (stops === 'frozen') {
    throw new ApiError(
      'ADDRESS_FROZEN',
      'address: is frozen; unfreeze it before you stake for it',
      { field: 'address' },
    )
  }
}
