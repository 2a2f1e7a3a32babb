import type { ChainTransfer, Network } from '@custody/chains'
import type { Logger } from 'pino'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
  log: Logger
}

/**
 * Returns the workspaces of our own addresses that sent transfers which are in no transaction of this
 * database, by address. A wallet's own address may pay itself; only tanks and deposit addresses never do.
 * @param known hashes of transactions of this database
 */
export async function ownSendersOf(
  { database }: Services,
  { code }: Network,
  hits: readonly { transfer: ChainTransfer }[],
  known: ReadonlyMap<string, unknown>,
): Promise<Map<string, string>> {
  const senders = new Set(
    hits.flatMap(({ transfer }) =>
      transfer.sender !== null && !known.has(transfer.txid) ? [transfer.sender] : [],
    ),
  )
  if (senders.size === 0) return new Map()
  const rows = await database.query<{ address: string; workspace_id: string }>(
    `select address, workspace_id from chain_addresses where network = $1 and address = any($2)
       and kind in ('tank', 'deposit')`,
    [code, [...senders]],
  )
  return new Map(rows.map((row) => [row.address, row.workspace_id]))
}

/**
 * Notes a transfer of one of our own addresses that this database lacks. Only the platform sends from
 * them, so the database is older than the chain.
 */
export async function noteUnrecorded(
  { database, log }: Services,
  { code }: Network,
  { txid, sender }: ChainTransfer,
  workspace: string,
): Promise<void> {
  log.error(
    { network: code, txid, sender },
    'a transaction of one of our own addresses is not in this database and is not credited; check whether an old backup was restored',
  )
  await database.query(
    `insert into unrecorded_transfers (network, txid, workspace_id, sender, noted_at)
     values ($1, $2, $3, $4, $5) on conflict do nothing`,
    [code, txid, workspace, sender, database.now()],
  )
}
