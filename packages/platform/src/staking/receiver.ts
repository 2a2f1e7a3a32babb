import type { Network } from '@custody/chains'
import { addressKey, spaceOf } from '../aml/address-key.ts'
import type { Queryable } from '../database/pool.ts'
import { ApiError } from '../errors.ts'
import type { Services } from '../engine/services.ts'

/**
 * Whether a resource may be lent to an address. No value goes there and the stake can be taken back at any time, so no
 * provider is asked; sanctioned addresses and those that the sub-account has frozen get nothing all the same.
 */
export async function receiverStops(
  services: Services, database: Queryable, subAccountId: string, network: Network, address: string
): Promise<'sanctioned' | 'frozen' | null> {
  if (services.aml.sanctions.has(network, address)) return 'sanctioned'
  const frozen = await database.one(
    'select 1 from frozen_addresses where sub_account_id = $1 and space = $2 and address_key = $3 and unfrozen_at is null',
    [subAccountId, spaceOf(network), addressKey(network, address)]
  )
  return frozen ? 'frozen' : null
}

/** @throws ApiError `SANCTIONED`, `ADDRESS_FROZEN` */
export async function assertReceivable(services: Services, subAccountId: string, network: Network, address: string): Promise<void> {
  const stops = await receiverStops(services, services.database, subAccountId, network, address)
  if (stops === 'sanctioned') {
    throw new ApiError('SANCTIONED', 'address: is on a sanctions list; nothing is staked for it', { field: 'address' })
  }
  if (stops === 'frozen') {
    throw new ApiError('ADDRESS_FROZEN', 'address: is frozen; unfreeze it before you stake for it', { field: 'address' })
  }
}
