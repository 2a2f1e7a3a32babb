import { byMode } from '@custody/chains/mode'
import {
  CHANGE_INDEX,
  familyOf,
  OMNIBUS_INDEX,
  pathOf,
  TANK_SUB_ACCOUNT,
  traitsOf,
  type Asset,
  type Network,
  type Registry,
} from '@custody/chains'
import {
  ensureAddress,
  ensureChange,
  ensureOmnibus,
  type AddressKind,
} from '../../custody/addresses/derive.ts'
import type { Owner } from '../../core/engine/chain.ts'
import { listOmnibus } from '../../custody/addresses/omnibus.ts'
import { startedNetworks } from '../../custody/addresses/start-scan.ts'
import { ensureGasTank } from '../../custody/gas-tanks/ensure-tank.ts'
import { ensureWorkspace } from '../../custody/prepaid-fee/ensure-workspace.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Callers } from '../../core/http/authentication/callers.ts'
import type { DevnetControl } from '../../core/devnet.ts'
import { NODES_NEEDED, type Enrolled, type History } from './history.ts'
import { NotAdopted } from './open.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'prepaidTiers'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
  addresses: Addresses
  callers: Callers
  devnet: DevnetControl | null
}

/** Start heights of networks that this database has never scanned, by network code. */
export type ScanFrom = Readonly<Record<string, number>>

/**
 * Creates the API users that two nodes have enrolled identically and this database does not have,
 * with their workspaces and sub-accounts, and revokes those that two nodes have revoked. A single
 * node can neither add nor revoke an API user.
 */
export async function adoptUsers(
  services: Services,
  enrolled: readonly Enrolled[],
): Promise<
  { api_key: string; workspace: string; sub_account: string; done: 'created' | 'revoked' }[]
> {
  const done: Awaited<ReturnType<typeof adoptUsers>> = []
  for (const user of enrolled) {
    if (user.nodes.length < NODES_NEEDED) continue
    const revoked = user.revokedBy.length >= NODES_NEEDED
    const change = await services.database.transaction(async (tx) => {
      const existing = await tx.one<{ revoked_at: Date | null; name: string }>(
        `select u.revoked_at, s.name from api_users u join sub_accounts s on s.id = u.sub_account_id
          where u.api_key = $1 for update of u`,
        [user.api_key],
      )
      if (existing) {
        if (!revoked || existing.revoked_at !== null) return null
        await tx.query('update api_users set revoked_at = $2 where api_key = $1', [
          user.api_key,
          new Date(services.environment.now()),
        ])
        return { sub_account: existing.name, done: 'revoked' as const }
      }
      const workspace = await ensureWorkspace(services, tx, user.workspace)
      // A name that another index already has stays with that index: the path index, not the name,
      // determines the owner of the coins.
      const wanted = user.sub_account_name ?? `sub-account ${user.sub_account}`
      await tx.query(
        `insert into sub_accounts (workspace_id, name, path_index) values ($1, $2, $3)
          on conflict do nothing`,
        [workspace, wanted, user.sub_account],
      )
      await tx.query(
        `insert into sub_accounts (workspace_id, name, path_index) values ($1, $2, $3)
          on conflict do nothing`,
        [workspace, `${wanted} (${user.sub_account})`, user.sub_account],
      )
      const sub = await tx.one<{ id: string; name: string }>(
        'select id, name from sub_accounts where workspace_id = $1 and path_index = $2',
        [workspace, user.sub_account],
      )
      if (!sub) throw new Error('a sub-account could not be created under any name')
      await tx.query(
        `insert into api_users (api_key, sub_account_id, role, public_key_pem, revoked_at)
          values ($1, $2, $3, $4, $5)`,
        [
          user.api_key,
          sub.id,
          user.role,
          user.public_key_pem.trim(),
          revoked ? new Date(services.environment.now()) : null,
        ],
      )
      return { sub_account: sub.name, done: 'created' as const }
    })
    if (change) done.push({ api_key: user.api_key, workspace: user.workspace, ...change })
  }
  if (done.length > 0) services.callers.forget()
  return done
}

/**
 * Restores the workspace keys that this database has lost, because the addresses cannot be watched
 * without them. The keys are certified by all three nodes.
 */
export async function adoptKeys(
  services: Pick<Services, 'database' | 'keys'>,
  keys: History['keys'],
): Promise<void> {
  for (const { workspace, curve, nodes } of keys) {
    if (nodes.length < NODES_NEEDED) continue
    const lost = await services.database.one<{ id: string }>(
      `select id from workspaces w where name = $1 and not exists (select 1 from workspace_keys k
        where k.workspace_id = w.id
        and k.curve = $2)`,
      [workspace, curve],
    )
    if (lost) await services.keys.get(lost.id, curve)
  }
}

/**
 * Commits the start height of a network that was never scanned; on the local chains this is their
 * first block.
 * @throws NotAdopted if no start height is given on mainnet, or the chain does not have the block
 */
export async function ensureScan(
  services: Pick<Services, 'settings' | 'database' | 'networks'>,
  network: Network,
  scanFrom: ScanFrom,
): Promise<void> {
  if ((await startedNetworks(services)).has(network.code)) return
  const from =
    scanFrom[network.code] ??
    byMode(services.settings.network, { local: 0, regtest: 0, mainnet: undefined })
  if (from === undefined)
    throw new NotAdopted(
      `${network.code} was never scanned by this database: specify its first block with --scan-from ${network.code}=HEIGHT`,
    )
  const client = services.networks.client(network.code)
  const [tip, start] = [await client.tip(), await client.block(from)]
  if (!start) throw new NotAdopted(`${network.code} does not have the block ${from}`)
  await services.database.transaction(async (tx) => {
    const mine = await tx.query(
      `insert into network_scans as s (network, height, tip_height, final_height)
        values ($1, $2, $3, $2)
       on conflict (network) do update set
         height = excluded.height, tip_height = excluded.tip_height,
           final_height = excluded.final_height
       where s.height is null returning 1`,
      [network.code, from, tip.height],
    )
    if (mine.length === 1)
      await tx.query(
        `insert into blocks (network, height, hash, parent) values ($1, $2, $3, $4)
          on conflict do nothing`,
        [network.code, start.height, start.hash, start.parent],
      )
  })
}

/**
 * Returns the sub-account with a path index.
 * @throws NotAdopted
 */
export async function subAccountAt(
  services: Pick<Services, 'database'>,
  workspaceId: string,
  index: number,
): Promise<Owner> {
  const row = await services.database.one<{ id: string }>(
    'select id from sub_accounts where workspace_id = $1 and path_index = $2',
    [workspaceId, index],
  )
  if (!row)
    throw new NotAdopted(
      `sub-account ${index} of the workspace does not exist, and no two signer nodes have an API user of it`,
    )
  return { workspaceId, subAccountId: row.id, subAccountIndex: index }
}

/** Returns the wallet of an asset, and creates it with its addresses if it is missing (`made`). */
export async function ensureWallet(
  services: Services,
  owner: Owner,
  asset: Asset,
  network: Network,
  scanFrom: ScanFrom,
): Promise<{ id: string; made: boolean }> {
  await ensureScan(services, network, scanFrom)
  const made = await services.database.transaction(async (tx) => {
    const created = await tx.one<{ id: string }>(
      `insert into wallets (workspace_id, sub_account_id, asset, network) values ($1, $2, $3, $4)
        on conflict do nothing returning id`,
      [owner.workspaceId, owner.subAccountId, asset.asset_name, network.code],
    )
    const omnibus = await ensureOmnibus(services, tx, network, owner)
    if (created) await listOmnibus(tx, owner.workspaceId, created.id, network.code, omnibus)
    if (traitsOf(network).deposits === 'spendable') await ensureChange(services, tx, network, owner)
    return created
  })
  await ensureGasTank(services, owner.workspaceId, network)
  if (made) return { id: made.id, made: true }
  const existing = (await services.database.one<{ id: string }>(
    'select id from wallets where workspace_id = $3 and sub_account_id = $1 and asset = $2',
    [owner.subAccountId, asset.asset_name, owner.workspaceId],
  )) as { id: string }
  return { id: existing.id, made: false }
}

/** Stores and returns the owner's address at a path index. */
export async function ensurePath(
  services: Pick<Services, 'database' | 'keys' | 'addresses'>,
  network: Network,
  owner: Owner,
  index: number,
): Promise<string> {
  const kind: AddressKind =
    owner.subAccountIndex === TANK_SUB_ACCOUNT
      ? 'tank'
      : index === OMNIBUS_INDEX
        ? 'omnibus'
        : index === CHANGE_INDEX
          ? 'change'
          : 'deposit'
  return ensureAddress(services, services.database, network, { owner, index, kind })
}

/** Returns the address at a path, without storing it. */
export async function addressOf(
  services: Pick<Services, 'keys'>,
  network: Network,
  workspaceId: string,
  subAccount: number,
  index: number,
): Promise<string> {
  const key = await services.keys.get(workspaceId, network.curve)
  return familyOf(network).address(network, key.at(pathOf(network, subAccount, index)))
}
