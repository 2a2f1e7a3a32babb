import {
  CHANGE_INDEX,
  familyOf,
  OMNIBUS_INDEX,
  pathOf,
  TANK_SUB_ACCOUNT,
  type Network,
} from '@custody/chains'
import type { Queryable } from '../../core/database/pool.ts'
import type { Owner } from '../../core/engine/chain.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'

interface Services {
  keys: WorkspaceKeys
  addresses: Addresses
}

export type AddressKind = 'omnibus' | 'deposit' | 'change' | 'tank'

/**
 * Derives an address from the certified workspace key. It is not stored, so no scan covers it yet.
 */
export async function deriveAddress(
  services: Pick<Services, 'keys'>,
  network: Network,
  owner: Owner,
  index: number,
): Promise<string> {
  const key = await services.keys.get(owner.workspaceId, network.curve)
  return familyOf(network).address(network, key.at(pathOf(network, owner.subAccountIndex, index)))
}

/** Returns the owner of a workspace's gas tanks. */
export const tankOwner = (workspaceId: string): Owner => ({
  workspaceId,
  subAccountId: null,
  subAccountIndex: TANK_SUB_ACCOUNT,
})

/**
 * Derives an address from the certified workspace key and stores it; repeated calls return the same
 * address.
 */
export async function ensureAddress(
  services: Services,
  tx: Queryable,
  network: Network,
  { owner, index, kind }: { owner: Owner; index: number; kind: AddressKind },
): Promise<string> {
  // The scan must start before the address exists, so that every payment to it is in a scanned
  // block.
  await services.addresses.startScan(network)
  const address = await deriveAddress(services, network, owner, index)
  await tx.query(
    `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index, kind)
      values ($1, $2, $3, $4, $5, $6)
     on conflict do nothing`,
    [network.code, address, owner.workspaceId, owner.subAccountId, index, kind],
  )
  return address
}

export const ensureOmnibus = (services: Services, tx: Queryable, network: Network, owner: Owner) =>
  ensureAddress(services, tx, network, { owner, index: OMNIBUS_INDEX, kind: 'omnibus' })
export const ensureChange = (services: Services, tx: Queryable, network: Network, owner: Owner) =>
  ensureAddress(services, tx, network, { owner, index: CHANGE_INDEX, kind: 'change' })
export const ensureTank = (
  services: Services,
  tx: Queryable,
  network: Network,
  workspaceId: string,
) =>
  ensureAddress(services, tx, network, {
    owner: tankOwner(workspaceId),
    index: OMNIBUS_INDEX,
    kind: 'tank',
  })
