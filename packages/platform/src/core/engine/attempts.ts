import type {
  ExpectedTransfer,
  TransactionStatus,
  UnsignedTransaction,
  Registry,
} from '@custody/chains'
import type { Queryable, Database } from '../database/pool.ts'
import { ApiError } from '../errors.ts'
import type { Networks } from './networks.ts'
import type { TransactionRow } from './transaction.ts'
import type { ReplacementKind } from './replacement.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

type Owned = Pick<TransactionRow, 'workspace_id' | 'network'>

/**
 * One signed transaction of a transfer. A transfer has several attempts if one has replaced
 * another; only one of them can be mined.
 */
export interface Attempt {
  id: string
  attempt: number
  hash: string
  signed: string
  unsigned: UnsignedTransaction
  fee_max: string
  fee: string | null
  succeeded: boolean | null
  state: string
  account: string | null
  nonce: string | null
  valid_until: string | null
  broadcast_at: Date | null
  /** Hash of the block that included the transaction when it was last checked. */
  block_hash: string | null
  /** Why this attempt replaced an earlier one; null for the first attempt. */
  replacement: ReplacementKind | null
  replacement_id: string | null
}

/**
 * Reads the signed attempts that may still be mined, newest first; those that the nodes decline come
 * last. Of a staking operation only those of its earliest call: after a reorganisation a later one may
 * be signed, too.
 */
export async function liveAttempts(
  database: Queryable,
  of: Pick<TransactionRow, 'id' | 'workspace_id'>,
): Promise<Attempt[]> {
  return database.query<Attempt>(
    `select c.id, c.attempt, c.hash, c.signed, c.unsigned, c.fee_max::text, c.fee::text,
      c.succeeded, c.state, c.account,
      c.nonce::text, c.valid_until::text, c.broadcast_at, c.block_hash, r.kind replacement,
      c.replacement_id
     from chain_transactions c left join replacements r on r.workspace_id = c.workspace_id
       and r.id = c.replacement_id
     where c.workspace_id = $2 and c.transaction_id = $1 and c.state in ('SIGNED', 'INCLUDED')
       and (c.step is null or not exists (select 1 from chain_transactions e
         where e.workspace_id = $2 and e.transaction_id = $1 and e.state in ('SIGNED', 'INCLUDED')
           and e.step <> c.step and e.attempt < c.attempt))
       order by c.declined is not null, c.attempt desc`,
    [of.id, of.workspace_id],
  )
}

/**
 * Returns the token transfer that a successful transaction must show in its logs; undefined if the
 * asset is not a token or the transfer was cancelled.
 */
export function expectedOf(
  { registry }: Pick<Services, 'registry'>,
  row: TransactionRow,
  { replacement }: Attempt,
): ExpectedTransfer | undefined {
  const asset = registry.asset(row.asset)
  if (replacement === 'CANCEL' || asset?.type !== 'token' || !row.source_id || !row.destination_id)
    return undefined
  return { asset, from: row.source_id, to: row.destination_id }
}

/**
 * Returns the attempt that is included in a block, with its status; otherwise the newest attempt
 * and its status.
 */
export async function findIncluded(
  services: Pick<Services, 'registry' | 'networks'>,
  row: TransactionRow,
  attempts: readonly Attempt[],
  client = services.networks.client(row.network),
): Promise<{ attempt: Attempt; status: TransactionStatus }> {
  let newest: { attempt: Attempt; status: TransactionStatus } | undefined
  for (const attempt of attempts) {
    const status = await client.status(attempt.hash, expectedOf(services, row, attempt))
    if (status.state === 'included') return { attempt, status }
    newest ??= { attempt, status }
  }
  if (!newest) throw new Error(`a transaction in the state ${row.state} has no signed bytes`)
  return newest
}

/**
 * Returns the attempts that are waiting for a block.
 * @throws ApiError `TRANSACTION_FINAL` if one is already in a block, `NETWORK_UNAVAILABLE` if the
 *   chain cannot be reached
 */
export async function waitingAttempts(services: Services, row: TransactionRow): Promise<Attempt[]> {
  const attempts = await liveAttempts(services.database, row)
  let match: { status: TransactionStatus }
  try {
    match = await findIncluded(services, row, attempts)
  } catch {
    throw new ApiError(
      'NETWORK_UNAVAILABLE',
      `${row.network} cannot be reached now, so it is unknown whether the transfer is still waiting`,
    )
  }
  if (match.status.state === 'included')
    throw new ApiError('TRANSACTION_FINAL', 'id: the transfer is already in a block', {
      field: 'id',
    })
  return attempts
}

/**
 * UTXO chains: checks that no later transfer spends the change of these attempts, because replacing
 * them would invalidate that transfer.
 * @throws ApiError `NOT_REPLACEABLE` if a later transfer spends the change
 */
export async function assertUnspentChange(
  database: Queryable,
  row: Owned,
  attempts: readonly Attempt[],
): Promise<void> {
  const spent = await changeSpender(database, row, attempts)
  if (spent) {
    throw new ApiError(
      'NOT_REPLACEABLE',
      `id: transfer ${spent} already spends its change; speed that one up, and this one is mined with it`,
      { field: 'id' },
    )
  }
}

/** Returns the id of the transfer that spends the change of these attempts, or null. */
export async function changeSpender(
  database: Queryable,
  row: Owned,
  attempts: readonly Pick<Attempt, 'hash'>[],
): Promise<string | null> {
  const spender = await database.one<{ transaction_id: string }>(
    `select c.transaction_id from utxos u
      join chain_transactions c on c.workspace_id = u.workspace_id and c.id = u.spent_by
     where u.workspace_id = $2 and u.network = $3 and u.origin = 'change' and u.txid = any($1)
       and c.state <> 'VOID' limit 1`,
    [attempts.map(({ hash }) => hash), row.workspace_id, row.network],
  )
  return spender?.transaction_id ?? null
}

/**
 * Ends the other attempts of a transfer once one of them is final. UTXO chains: the winner's inputs
 * are spent, inputs of only the other attempts are released, and only the winner's change output
 * remains.
 */
export async function resolveAttempts(
  tx: Queryable,
  row: Owned,
  winner: Attempt,
  consumes: readonly string[],
  attempts: readonly Attempt[],
): Promise<void> {
  const losers = attempts.filter(({ id }) => id !== winner.id)
  if (losers.length === 0) return
  const all = attempts.map(({ id }) => id)
  await tx.query(
    `update chain_transactions set state = 'REPLACED' where workspace_id = $2 and id = any($1)`,
    [losers.map(({ id }) => id), row.workspace_id],
  )
  await tx.query(
    `update utxos set spent_by = case when txid || ':' || vout = any($2) then $3::uuid end
      where workspace_id = $4 and spent_by = any($1)`,
    [all, consumes, winner.id, row.workspace_id],
  )
  await tx.query(
    `delete from utxos where workspace_id = $2 and network = $3 and origin = 'change'
      and txid = any($1)`,
    [losers.map(({ hash }) => hash), row.workspace_id, row.network],
  )
  await freeChange(tx, row, winner.hash)
}

/** Marks change outputs as spendable once their transaction is certain to be mined. */
export async function freeChange(
  tx: Queryable,
  row: Owned,
  hash: string | undefined,
): Promise<void> {
  await tx.query(
    `update utxos set contested = false, spendable = true
     where workspace_id = $2 and network = $3 and origin = 'change' and txid = $1`,
    [hash, row.workspace_id, row.network],
  )
}
