import { OMNIBUS_INDEX, traitsOf } from '@custody/chains'
import { ensureAddress, ensureChange, ensureOmnibus } from '../../custody/addresses/derive.ts'
import type { Owner } from '../../core/engine/chain.ts'
import { startedNetworks } from '../../custody/addresses/start-scan.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { WorkspaceKeys } from '../../core/signing/keys.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'

interface Services {
  database: Database
  networks: Networks
  keys: WorkspaceKeys
  addresses: Addresses
}

/**
 * A range of address indexes that is watched in addition (`from` to `to`). Addresses are assigned
 * consecutively, so those after the last known one may have been assigned too.
 */
export interface Watched {
  network: string
  workspace: string
  sub_account: string
  from: number
  to: number
}

const SPARE = 2

interface AddressWindow {
  sub_account_id: string
  workspace_id: string
  workspace: string
  sub_account: string
  path_index: number
  last: number | null
  watched: number | null
  addresses: number
}

/**
 * Watches the first address of every sub-account on every scanned network, and `gap` deposit
 * addresses beyond the last one that was assigned or has a deposit. They are not assigned: a
 * customer to whom one was assigned before the backup was restored is still credited, and it is
 * never assigned to another.
 * @returns the newly watched addresses
 */
export async function watchAhead(services: Services, gap: number): Promise<Watched[]> {
  const started = await startedNetworks(services)
  const added: Watched[] = []
  for (const { network } of services.networks.all()) {
    if (!started.has(network.code)) continue
    const { deposits } = traitsOf(network)
    const held = await services.database.query<AddressWindow>(
      `with used as (select address from wallet_addresses where network = $1 union select address
        from deposits where network = $1)
       select s.id sub_account_id, s.workspace_id, w.name workspace, s.name sub_account,
         s.path_index, count(c.address)::int addresses,
         max(c.path_index) filter (where c.kind = 'deposit' and u.address is not null) last,
         max(c.path_index) filter (where c.kind = 'deposit') watched
       from sub_accounts s join workspaces w on w.id = s.workspace_id
         left join chain_addresses c on c.network = $1 and c.sub_account_id = s.id
           left join used u on u.address = c.address
       where exists (select 1 from workspace_keys k where k.workspace_id = s.workspace_id
         and k.curve = $2) group by s.id, w.name`,
      [network.code, network.curve],
    )
    for (const each of held) {
      const owner: Owner = {
        workspaceId: each.workspace_id,
        subAccountId: each.sub_account_id,
        subAccountIndex: each.path_index,
      }
      const last = each.last ?? OMNIBUS_INDEX
      const watched = each.watched ?? OMNIBUS_INDEX
      const from = each.addresses === 0 ? OMNIBUS_INDEX : watched + 1
      // Several addresses are added in one step, because the network is scanned again each time
      // more are needed.
      const to =
        deposits === 'tagged'
          ? OMNIBUS_INDEX
          : watched - last >= gap
            ? watched
            : last + gap + Math.ceil(gap / SPARE)
      if (from > to) continue
      await services.database.transaction(async (tx) => {
        await tx.query('select 1 from sub_accounts where id = $1 for update', [each.sub_account_id])
        await ensureOmnibus(services, tx, network, owner)
        if (deposits === 'spendable') await ensureChange(services, tx, network, owner)
        for (let index = Math.max(from, OMNIBUS_INDEX + 1); index <= to; index++)
          await ensureAddress(services, tx, network, { owner, index, kind: 'deposit' })
      })
      added.push({
        network: network.code,
        workspace: each.workspace,
        sub_account: each.sub_account,
        from,
        to,
      })
    }
  }
  return added
}

/**
 * Stores the height from which each network is scanned again when more addresses are watched, until
 * the search ends.
 */
export async function rememberScans(services: Pick<Services, 'database'>): Promise<void> {
  await services.database.query(
    'update network_scans set rescan_from = height where rescan_from is null and height is not null',
  )
}

/**
 * Scans networks again from the stored heights; deposits that are already known are not recorded
 * twice.
 */
export async function scanAgain(
  services: Pick<Services, 'database'>,
  networks: readonly string[],
): Promise<void> {
  // A running scan loses its lease here, so that it writes nothing more.
  await services.database.query(
    `update network_scans set height = rescan_from, lease_token = gen_random_uuid(),
      lease_until = null,
      compared_height = case when compared_height > rescan_from then rescan_from else compared_height end
     where network = any($1) and rescan_from < height`,
    [networks],
  )
}

export async function endSearch(services: Pick<Services, 'database'>): Promise<void> {
  await services.database.query(
    'update network_scans set rescan_from = null where rescan_from is not null',
  )
}

/**
 * Adds addresses with deposits to their wallets' lists again, because they must have been assigned.
 * The labels that they had are lost.
 */
export async function listFound(
  services: Pick<Services, 'database'>,
): Promise<{ network: string; address: string; asset: string }[]> {
  await services.database.query(
    `update wallet_addresses a set handed_out = true from deposits d
     where not a.handed_out and a.address_tag is null and d.workspace_id = a.workspace_id
       and d.network = a.network
       and d.address = a.address`,
  )
  return services.database.query(
    `insert into wallet_addresses (workspace_id, wallet_id, network, address)
     select distinct t.workspace_id, t.wallet_id, c.network, c.address from chain_addresses c
       join deposits d on d.workspace_id = c.workspace_id and d.network = c.network
         and d.address = c.address
       join transactions t on t.workspace_id = d.workspace_id and t.id = d.transaction_id
     where c.kind in ('deposit', 'omnibus') and t.kind = 'DEPOSIT' and t.wallet_id is not null
       and t.address_tag is null
       and not exists (select 1 from wallet_addresses a where a.workspace_id = t.workspace_id
         and a.wallet_id = t.wallet_id
         and a.network = c.network and a.address = c.address)
     on conflict do nothing returning network, address, (
       select asset from wallets w where w.workspace_id = wallet_addresses.workspace_id
         and w.id = wallet_id) asset`,
  )
}
