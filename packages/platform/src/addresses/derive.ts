import { CHANGE_INDEX, familyOf, OMNIBUS_INDEX, pathOf, TANK_SUB_ACCOUNT, type Network } from '@custody/chains'
import type { Queryable } from '../database/pool.ts'
import { startScan } from '../deposits/start.ts'
import type { Services } from '../engine/services.ts'

export type AddressKind = 'omnibus' | 'deposit' | 'change' | 'tank'

/** Where an address of ours belongs. */
export interface Owner { workspaceId: string; subAccountId: string | null; subAccountIndex: number }

/** Derives an address from the certified workspace key and stores it; the same call answers the same address. */
export async function ensureAddress(services: Services, tx: Queryable, network: Network, owner: Owner, index: number, kind: AddressKind): Promise<string> {
  const key = await services.keys.get(owner.workspaceId, network.curve)
  // Before the address exists: what is paid to it must stand in a block that will be scanned.
  await startScan(services, network)
  const address = familyOf(network).address(network, key.at(pathOf(network, owner.subAccountIndex, index)))
  await tx.query(
    `insert into chain_addresses (network, address, workspace_id, sub_account_id, path_index, kind) values ($1, $2, $3, $4, $5, $6)
     on conflict do nothing`, [network.code, address, owner.workspaceId, owner.subAccountId, index, kind])
  return address
}

/** Addresses never change: those that every transfer asks for are kept. Bounded, and forgotten as a whole. */
const kept = new WeakMap<Services, Map<string, string>>()
const KEPT_MAX = 100_000

async function remembered(services: Services, name: string, find: () => Promise<string>): Promise<string> {
  let addresses = kept.get(services)
  if (!addresses || addresses.size >= KEPT_MAX) kept.set(services, addresses = new Map())
  const known = addresses.get(name)
  if (known !== undefined) return known
  const address = await find()
  addresses.set(name, address)
  return address
}

/** A sub-account's omnibus address, as wallet creation stored it. Outside of transactions only. */
export const omnibusOf = (services: Services, network: Network, owner: Owner) =>
  remembered(services, `omnibus ${network.code} ${owner.subAccountId}`, () => ensureOmnibus(services, services.database, network, owner))

/** A sub-account's change address, as wallet creation stored it. Outside of transactions only. */
export const changeOf = (services: Services, network: Network, owner: Owner) =>
  remembered(services, `change ${network.code} ${owner.subAccountId}`, () => ensureChange(services, services.database, network, owner))

export const ensureOmnibus = (services: Services, tx: Queryable, network: Network, owner: Owner) => ensureAddress(services, tx, network, owner, OMNIBUS_INDEX, 'omnibus')
export const ensureChange = (services: Services, tx: Queryable, network: Network, owner: Owner) => ensureAddress(services, tx, network, owner, CHANGE_INDEX, 'change')
export const ensureTank = (services: Services, tx: Queryable, network: Network, workspaceId: string) =>
  ensureAddress(services, tx, network, { workspaceId, subAccountId: null, subAccountIndex: TANK_SUB_ACCOUNT }, OMNIBUS_INDEX, 'tank')
