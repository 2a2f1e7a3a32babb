import type { Environment } from '../environment.ts'
import type { Database } from '../database/pool.ts'
import { refusalKind, type Registry } from '@custody/chains'
import type { Networks } from './networks.ts'
import type { SignerNodes } from '../signing/nodes.ts'
import type { Metrics } from '../metrics.ts'
import type { Logger } from 'pino'
import type { Kinds } from './interfaces/kind.ts'
import { advance } from './lease.ts'
import type { TransactionRow } from './transaction.ts'
import { findIncluded, liveAttempts } from './attempts.ts'
import { replaceRefused } from './auto-bump.ts'
import { endDeclined } from './outcomes/declined.ts'
import { buryDead } from './outcomes/expiry.ts'
import { startReplacing } from './replace.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  metrics: Metrics
  log: Logger
  kinds: Kinds
}

const REJECTED_RETRY_MS = 3000

/**
 * SIGNED or BROADCASTING → CONFIRMING: sends the same bytes, repeatedly if needed. If the broadcast
 * returns an error, the outcome is unknown; the transaction must not be marked failed.
 */
export async function broadcast(services: Services, row: TransactionRow): Promise<void> {
  const attempts = await liveAttempts(services.database, row)
  const [chain] = attempts
  if (!chain) throw new Error(`a transaction in the state ${row.state} has no signed bytes`)
  const client = services.networks.client(row.network)
  // From here on the transaction may be public, so the hash is stored before sending, in case the
  // response is lost.
  if (row.state === 'SIGNED') {
    const written = await services.database.transaction(async (tx) => {
      const rows = await tx.query(
        `update transactions set hash = $3, state = 'BROADCASTING', updated_at = $4
          where workspace_id = $5 and id = $1 and lease_token = $2
          returning 1`,
        [row.id, row.lease_token, chain.hash, tx.now(), row.workspace_id],
      )
      if (rows.length === 1) await services.kinds[row.kind].broadcast?.(tx, row)
      return rows.length === 1
    })
    if (!written) return
    services.environment.checkpoint('transaction.broadcasting')
  }
  if (chain.broadcast_at === null) {
    await services.database.query(
      `update chain_transactions set broadcast_at = $2 where workspace_id = $3 and id = $1
        and broadcast_at is null`,
      [chain.id, services.database.now(), row.workspace_id],
    )
  }
  const result = await client.broadcast(chain.signed)
  services.environment.checkpoint('transaction.broadcast')
  if (result.kind === 'rejected') {
    // Nodes also reject transactions that are already mined, so the chain is queried before the
    // rejection is accepted.
    const { status } = await findIncluded(services, row, attempts)
    if (status.state === 'absent') {
      if (await buryDead(services, row, chain)) return
      const kind = refusalKind(services.networks.get(row.network).network, result.reason)
      await replaceRefused(services, row, [chain, ...attempts.slice(1)], kind)
      if (await startReplacing(services, row)) return
      if (await endDeclined(services, row, [chain, ...attempts.slice(1)], result.reason)) return
      if (row.attempts <= 1) {
        services.log.warn(
          { transaction: row.id, kind, reason: result.reason },
          'the endpoint rejected the broadcast; the same signed transaction is sent again',
        )
      }
      return advance(services.database, row, {
        state: 'BROADCASTING',
        hash: chain.hash,
        waits:
          kind === 'price'
            ? 'FEE_TOO_LOW'
            : (await spendsGone(services.database, row, chain))
              ? 'REORGANISED'
              : 'ENDPOINT',
        last_error: `broadcast rejected: ${result.reason}`.slice(0, 500),
        run_in_ms: REJECTED_RETRY_MS,
      })
    }
  }
  await advance(services.database, row, {
    state: 'CONFIRMING',
    hash: chain.hash,
    last_error: result.kind === 'unknown' ? `broadcast: ${result.reason}` : null,
    run_in_ms: 1000,
  })
}

/** Whether a transaction spends a coin whose payment is in no block since a reorganisation. */
async function spendsGone(
  database: Database,
  { workspace_id: workspace }: TransactionRow,
  { id }: { id: string },
): Promise<boolean> {
  const gone = await database.one(
    `select 1 from utxos u join deposits d on d.workspace_id = $1 and d.network = u.network
       and d.txid = u.txid and d.position = u.vout
     join transactions t on t.workspace_id = $1 and t.id = d.transaction_id and t.state = 'REORGED'
     where u.workspace_id = $1 and u.spent_by = $2 limit 1`,
    [workspace, id],
  )
  return gone !== undefined
}
