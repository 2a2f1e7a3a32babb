import { randomUUID } from 'node:crypto'
import type { Queryable } from '../database/pool.ts'
import type { TransactionRow } from '../transactions/present.ts'

/** Queues a sweep of what a deposit address holds to the omnibus address, unless one is under way already. */
export async function queueSweep(tx: Queryable, of: Pick<TransactionRow, 'workspace_id' | 'sub_account_id' | 'wallet_id' | 'asset' | 'network' | 'fee_asset' | 'source_id'>): Promise<void> {
  const held = await tx.one(
    `select 1 from ledger_accounts where wallet_id = $1 and asset = $2 and kind = 'unswept' and address = $3 and balance > 0`, [of.wallet_id, of.asset, of.source_id])
  if (!held) return
  const omnibus = await tx.one<{ address: string }>(
    `select address from chain_addresses where network = $1 and sub_account_id = $2 and kind = 'omnibus'`, [of.network, of.sub_account_id])
  if (!omnibus) throw new Error('a wallet without an omnibus address')
  await tx.query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, wallet_id, asset, network, amount, fee_asset, source_type, source_id,
       destination_type, destination_id, state, status, next_run_at)
     values ($1, 'SWEEP', $2, $3, $4, $5, $6, 0, $7, 'INTERNAL', $8, 'OMNIBUS', $9, 'QUEUED', 'pending', now()) on conflict do nothing`,
    [randomUUID(), of.workspace_id, of.sub_account_id, of.wallet_id, of.asset, of.network, of.fee_asset, of.source_id, omnibus.address])
}

/** Sweeps that failed are queued again while their address still holds something. */
export async function requeueFailedSweeps(tx: Queryable): Promise<void> {
  const rows = await tx.query<TransactionRow>(
    `select distinct on (t.source_id, t.asset) t.* from transactions t
     join ledger_accounts a on a.wallet_id = t.wallet_id and a.asset = t.asset and a.kind = 'unswept' and a.address = t.source_id and a.balance > 0
     where t.kind = 'SWEEP' and t.status = 'failed' and t.updated_at < now() - interval '1 minute'
       and not exists (select 1 from transactions p where p.kind = 'SWEEP' and p.status = 'pending' and p.source_id = t.source_id and p.asset = t.asset and p.network = t.network)
       and t.updated_at = (select max(l.updated_at) from transactions l where l.kind = 'SWEEP' and l.source_id = t.source_id and l.asset = t.asset and l.network = t.network)
     limit 100`)
  for (const row of rows) await queueSweep(tx, row)
}
