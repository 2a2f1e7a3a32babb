import type { Queryable, Database } from '../../core/database/pool.ts'
import { insertUnlessThere } from '../../core/engine/insert.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Environment } from '../../core/environment.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'

interface Services {
  environment: Environment
  database: Database
}

/**
 * Queues a sweep of a deposit address's balance to the omnibus address, unless one is pending or
 * was already made at this block height. A postponed sweep is evaluated again.
 */
export async function queueSweep(
  services: Pick<Services, 'environment'>,
  tx: Queryable,
  of: Pick<
    TransactionRow,
    | 'workspace_id'
    | 'sub_account_id'
    | 'wallet_id'
    | 'asset'
    | 'network'
    | 'fee_asset'
    | 'source_id'
  >,
): Promise<void> {
  const held = await tx.one(
    `select 1 from ledger_accounts
     where workspace_id = $4 and wallet_id = $1 and asset = $2 and kind = 'unswept' and address = $3
       and balance > 0`,
    [of.wallet_id, of.asset, of.source_id, of.workspace_id],
  )
  if (!held) return
  const omnibus = await tx.one<{ address: string }>(
    `select address from chain_addresses where workspace_id = $3 and network = $1
      and sub_account_id = $2 and kind = 'omnibus'`,
    [of.network, of.sub_account_id, of.workspace_id],
  )
  if (!omnibus) throw new Error('a wallet has no omnibus address')
  const scan = await tx.one<{ height: string }>(
    `select s.height::text height from network_scans s where s.network = $1 and not exists (
       select 1 from transactions p
       where p.workspace_id = $4 and p.kind = 'SWEEP' and p.status = 'pending' and p.network = $1
         and p.source_id = $2
       and p.asset = $3)`,
    [of.network, of.source_id, of.asset, of.workspace_id],
  )
  const queued =
    scan &&
    (await insertUnlessThere(tx, {
      id: services.environment.uuid(),
      kind: 'SWEEP',
      state: 'QUEUED',
      workspace_id: of.workspace_id,
      sub_account_id: of.sub_account_id,
      wallet_id: of.wallet_id,
      asset: of.asset,
      network: of.network,
      amount: 0n,
      fee_asset: of.fee_asset,
      source_type: 'INTERNAL',
      source_id: of.source_id,
      destination_type: 'OMNIBUS',
      destination_id: omnibus.address,
      plan: { height: scan.height },
    }))
  if (queued) return
  await tx.query(
    `update transactions set next_run_at = $4
     where workspace_id = $5 and kind = 'SWEEP' and status = 'pending' and network = $1
       and source_id = $2
      and asset = $3 and plan ? 'waits' and lease_token is null`,
    [of.network, of.source_id, of.asset, tx.now(), of.workspace_id],
  )
}

export function requeueSweepsLoop(services: Services): Loop {
  return {
    name: 'sweeps',
    everyMs: 20_000,
    async run() {
      await services.database.transaction((tx) => requeueSweeps(services, tx))
      return false
    },
  }
}

/**
 * Queues sweeps for deposit addresses that hold a balance and have no pending sweep, because an
 * earlier sweep failed or none was possible when the deposit was credited.
 */
async function requeueSweeps(services: Services, tx: Queryable): Promise<void> {
  const rows = await tx.query<TransactionRow>(
    `select d.*, a.address source_id from ledger_accounts a
     cross join lateral (
       select t.* from transactions t
       where t.workspace_id = a.workspace_id and t.kind = 'DEPOSIT' and t.wallet_id = a.wallet_id
         and t.asset = a.asset
         and t.destination_id = a.address limit 1
     ) d
     where a.kind = 'unswept' and a.balance > 0
       and not exists (select 1 from transactions p
         where p.workspace_id = a.workspace_id and p.kind = 'SWEEP' and p.network = d.network
           and p.source_id = a.address
           and p.asset = a.asset
         and (p.status = 'pending' or p.updated_at > $1::timestamptz - interval '1 minute'))
     limit 100`,
    [tx.now()],
  )
  for (const row of rows) await queueSweep(services, tx, row)
}
