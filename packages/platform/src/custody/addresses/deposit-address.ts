import {
  familyOf,
  OMNIBUS_INDEX,
  pathOf,
  traitsOf,
  type Asset,
  type Network,
} from '@custody/chains'
import { ApiError } from '../../core/errors.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Owner } from '../../core/engine/chain.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import { assertOpen } from '../assets/find-asset.ts'
import { findWallet } from '../assets/find-wallet.ts'
import { emit } from '../../core/ledger/post.ts'
import { ensureAddress, ensureOmnibus } from './derive.ts'
import { handOutOmnibus, listOmnibus } from './omnibus.ts'
import { presentAddress, type AddressRow } from './present.ts'

interface Services {
  settings: Pick<Settings, 'allowDeprecated'>
  environment: Environment
  database: Database
  keys: WorkspaceKeys
  addresses: Addresses
}

const TAG_LEAST = 100_000_000
const TAGS = 900_000_000
const TAG_BYTES = 6

/** Returns nine random digits, so that a mistyped tag most likely belongs to no customer. */
function newTag(services: Services): string {
  return String(
    TAG_LEAST +
      (Buffer.from(services.environment.bytes(TAG_BYTES)).readUIntBE(0, TAG_BYTES) % TAGS),
  )
}

/**
 * Returns the next index of a sub-account's addresses. It is assigned under the sub-account's lock.
 */
async function nextIndex(tx: Queryable, network: Network, owner: SubAccount): Promise<number> {
  const last = await tx.one<{ index: number }>(
    `select coalesce(max(path_index), 0) as index from chain_addresses
     where workspace_id = $3 and network = $1 and sub_account_id = $2
       and kind in ('omnibus', 'deposit')`,
    [network.code, owner.subAccountId, owner.workspaceId],
  )
  return (last?.index ?? 0) + 1
}

/**
 * Predicts the next new address of a sub-account, so that the chain can be queried about it.
 * Nothing is assigned.
 * @throws ApiError 503
 */
export async function likelyAddress(
  services: Pick<Services, 'database' | 'keys' | 'addresses'>,
  owner: SubAccount,
  network: Network,
): Promise<string> {
  await readyForAddresses(services, owner.workspaceId, network)
  if (traitsOf(network).deposits === 'tagged') return services.addresses.omnibus(network, owner)
  const key = await services.keys.get(owner.workspaceId, network.curve)
  const index = await nextIndex(services.database, network, owner)
  return familyOf(network).address(network, key.at(pathOf(network, owner.subAccountIndex, index)))
}

interface AssetNetwork {
  asset: Asset
  network: Network
}
/** A sub-account for which addresses are created. */
export type SubAccount = Owner & { subAccountId: string }

/**
 * Makes the calls that must happen outside a database transaction, before {@link handOutAddress}.
 * @throws ApiError 503
 */
export async function readyForAddresses(
  services: Pick<Services, 'keys' | 'addresses'>,
  workspaceId: string,
  network: Network,
): Promise<void> {
  await services.keys.get(workspaceId, network.curve)
  await services.addresses.startScan(network)
}

/**
 * Assigns an address of a wallet, within the caller's database transaction, and emits the event
 * `address.created`.
 * @param o.fresh whether to return an address (or a tag, on networks with tags) that was never
 *   assigned before and will never be assigned again. Otherwise the first call for a wallet returns
 *   its omnibus address.
 * @throws ApiError `ASSET_CLOSED`, `WALLET_MISSING`, `WALLET_INACTIVE`
 */
export async function handOutAddress(
  services: Services,
  tx: Queryable,
  owner: SubAccount,
  place: AssetNetwork,
  o: { label: string | null; fresh: boolean },
): Promise<AddressRow & { wallet_id: string }> {
  const { asset, network } = place
  assertOpen(services, asset)
  // Locks the sub-account, because its addresses are numbered consecutively.
  await tx.query('select 1 from sub_accounts where workspace_id = $2 and id = $1 for update', [
    owner.subAccountId,
    owner.workspaceId,
  ])
  const wallet = await findWallet(tx, owner, asset.asset_name)
  if (wallet.status !== 'active') {
    throw new ApiError(
      'WALLET_INACTIVE',
      `asset: the ${asset.asset_name} wallet is inactive; no address can be created for it`,
      {
        field: 'asset',
      },
    )
  }
  const announce = async (created: AddressRow): Promise<AddressRow & { wallet_id: string }> => {
    const shown = JSON.stringify(presentAddress(created, place, owner.subAccountIndex))
    await emit(tx, owner.workspaceId, owner.subAccountId, 'address.created', shown)
    return { ...created, wallet_id: wallet.id }
  }
  let address = await ensureOmnibus(services, tx, network, owner)
  await listOmnibus(tx, owner.workspaceId, wallet.id, network.code, address)
  const first = o.fresh
    ? undefined
    : await handOutOmnibus(tx, owner.workspaceId, wallet.id, o.label)
  if (first) {
    return announce({
      ...first,
      asset: asset.asset_name,
      address_tag: null,
      label: o.label,
      path_index: OMNIBUS_INDEX,
    })
  }
  let index = OMNIBUS_INDEX
  const tagged = traitsOf(network).deposits === 'tagged'
  const tag = tagged ? newTag(services) : null
  if (!tagged) {
    index = await nextIndex(tx, network, owner)
    address = await ensureAddress(services, tx, network, { owner, index, kind: 'deposit' })
  }
  return announce(
    (await tx.one<AddressRow>(
      `insert into wallet_addresses (wallet_id, network, address, label, address_tag, workspace_id)
        values ($1, $2, $3, $4, $6, $8)
     returning id, $5::text asset, address, address_tag, label, $7::integer path_index, created_at`,
      [wallet.id, network.code, address, o.label, asset.asset_name, tag, index, owner.workspaceId],
    )) as AddressRow,
  )
}
