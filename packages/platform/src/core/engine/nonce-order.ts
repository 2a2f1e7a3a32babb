import { withNonce, type UnsignedTransaction } from '@custody/chains'
import type { Queryable, Database } from '../database/pool.ts'
import type { Networks } from './networks.ts'
import type { Logger } from 'pino'
import type { Kinds } from './interfaces/kind.ts'
import { advance, wakeOne } from './lease.ts'
import { maySubmit, markSubmitted, submitWithoutNonce, requeue } from './submission.ts'
import type { TransactionRow } from './transaction.ts'

interface Services {
  database: Database
  networks: Networks
  log: Logger
  kinds: Kinds
}

/** Owner and network of an account. */
type Owned = Pick<TransactionRow, 'network' | 'workspace_id'>

/** A transaction's account and nonce; null if its network has none. */
interface NoncePosition {
  account: string | null
  nonce: string | null
}

/** Locks an account. Must be called before locking any row of `chain_transactions`. */
export const lockAccount = (tx: Queryable, network: string, account: string) =>
  tx.query('select 1 from signing_accounts where network = $1 and address = $2 for update', [
    network,
    account,
  ])

/** Calls {@link lockAccount} for an account that may not exist yet. */
export async function openAccount(tx: Queryable, network: string, account: string): Promise<void> {
  await tx.query(
    'insert into signing_accounts (network, address) values ($1, $2) on conflict do nothing',
    [network, account],
  )
  await lockAccount(tx, network, account)
}

/**
 * Selects the lowest nonce, starting at `$3`, that none of our transactions uses. Transactions that
 * were given up before any signature do not use theirs.
 */
const LOWEST_FREE = `select coalesce(
  (select $3::bigint where not exists (
     select 1 from chain_transactions c
     where c.workspace_id = $4 and c.network = $1 and c.account = $2 and c.nonce = $3::bigint
       and c.state <> 'VOID')),
  (select c.nonce + 1 from chain_transactions c
   where c.workspace_id = $4 and c.network = $1 and c.account = $2 and c.nonce >= $3::bigint
     and c.state <> 'VOID' and not exists (
     select 1 from chain_transactions d
     where d.workspace_id = $4 and d.network = $1 and d.account = $2 and d.nonce = c.nonce + 1
       and d.state <> 'VOID')
   order by c.nonce limit 1))::text nonce`

/**
 * Returns the lowest free nonce of an account. The caller holds the account's lock.
 * @param mined the next nonce that the chain accepts
 */
export async function lowestFree(
  tx: Queryable,
  { network, workspace_id: workspace }: Owned,
  account: string,
  mined: bigint,
): Promise<bigint> {
  const free = await tx.one<{ nonce: string }>(LOWEST_FREE, [
    network,
    account,
    mined.toString(),
    workspace,
  ])
  return BigInt(free?.nonce as string)
}

/**
 * SQL condition for a transaction whose nonce may change: it was not submitted to any signer node
 * and is going to be signed. A transaction with an earlier attempt that was signed and expired
 * keeps its nonce, because the nodes would not sign another.
 */
const MOVABLE = `c.workspace_id = $3 and c.network = $1 and c.account = $2 and c.state = 'BUILT' and c.replaces is null
  and c.shown_at is null
  and t.state = 'SIGNING' and not t.plan ? 'cancel'
  and not exists (select 1 from chain_transactions e 
    where e.workspace_id = c.workspace_id and e.transaction_id = c.transaction_id and e.hash is not null)`

/** Whether a waiting transaction will take the nonce of one that was given up. */
export async function isGapClosing(
  tx: Queryable,
  { network, workspace_id: workspace }: Owned,
  account: string,
): Promise<boolean> {
  const match = await tx.one(
    `select 1 from chain_transactions c join transactions t on t.workspace_id = c.workspace_id
      and t.id = c.transaction_id
     where ${MOVABLE} limit 1`,
    [network, account, workspace],
  )
  return match !== undefined
}

/**
 * A transaction's position in the nonce order. `before`: a lower nonce is not signed yet. `held`:
 * the number of nonces used between the last settled one (`floor`) and this one.
 */
interface Standing {
  unsigned: UnsignedTransaction
  nonce: string
  shown: boolean
  before: boolean
  floor: string | null
  held: string
}

/**
 * Marks a transaction as submitted to the signer nodes and returns its unsigned bytes; returns null
 * if the transaction must wait, another transaction takes the free nonce, or the transaction may
 * not be submitted and is requeued.
 *
 * The nodes sign the nonces of an account in order: an earlier submission would be refused, and
 * signing the previous transaction wakes this one. The nonce of a transaction that was given up is
 * taken by the last transaction that was not submitted to any node. A transaction that a node may
 * have signed keeps its nonce, because nothing else would exclude it.
 */
export async function placeToSign(
  services: Services,
  row: TransactionRow,
  built: { id: string; unsigned: UnsignedTransaction } & NoncePosition,
): Promise<UnsignedTransaction | null> {
  const { account } = built
  if (account === null || built.nonce === null) return submitWithoutNonce(services, row, built)
  let mined: bigint | null = null
  for (;;) {
    const result = await services.database.transaction(
      async (tx): Promise<UnsignedTransaction | 'waits' | 'gap'> => {
        const isAllowed = await maySubmit(services, tx, row)
        // Under the account's lock, either the wake-up comes after this statement, or the previous
        // transaction is seen as signed.
        await lockAccount(tx, row.network, account)
        const standing = await standingOf(tx, row, account, built.id)
        if (!standing)
          throw new Error('a transaction in the state SIGNING has no unsigned transaction')
        if (!standing.shown && !isAllowed) {
          await requeue(tx, row)
          return 'waits'
        }
        if (standing.before) {
          await advance(tx, row, { waits: 'EARLIER_TRANSFER', last_error: null, run_in_ms: null })
          return 'waits'
        }
        if (mined === null && !isContiguous(standing)) return 'gap'
        const moved =
          mined === null
            ? null
            : await closeGap(
                services,
                tx,
                row,
                { id: built.id, account, nonce: BigInt(standing.nonce) },
                mined,
              )
        if (moved === 'another') {
          await advance(tx, row, { waits: 'EARLIER_TRANSFER', last_error: null, run_in_ms: null })
          return 'waits'
        }
        // The transaction keeps its nonce, as a node may have signed it. Another transaction closes
        // a gap below it; the nodes refuse this one until then.
        if (standing.shown) return standing.unsigned
        await markSubmitted(tx, row, built.id)
        return moved ?? standing.unsigned
      },
    )
    if (result === 'waits') return null
    if (result !== 'gap') return result
    mined = (await services.networks.get(row.network).nextNonce?.(account)) ?? null
    if (mined === null) throw new Error('a chain without nonces was given a nonce')
  }
}

async function standingOf(
  tx: Queryable,
  { network, workspace_id: workspace }: Owned,
  account: string,
  id: string,
): Promise<Standing | undefined> {
  return tx.one<Standing>(
    `with settled as (
       select nonce + 1 floor from chain_transactions
       where workspace_id = $4 and network = $1 and account = $2 and nonce is not null
         and state in ('INCLUDED', 'CONFIRMED')
       order by nonce desc limit 1)
     select c.unsigned, c.nonce::text, c.shown_at is not null shown,
       (select floor from settled)::text floor,
       exists (select 1 from chain_transactions b
         where b.workspace_id = $4 and b.network = $1 and b.account = $2 and b.nonce < c.nonce
           and b.state = 'BUILT'
           and b.replaces is null) before,
       (select count(distinct h.nonce) from chain_transactions h
         where h.workspace_id = $4 and h.network = $1 and h.account = $2
           and h.nonce >= (select floor from settled)
           and h.nonce < c.nonce and h.state <> 'VOID')::text held
     from chain_transactions c where c.workspace_id = $4 and c.id = $3 and c.state = 'BUILT'`,
    [network, account, id, workspace],
  )
}

const isContiguous = ({ nonce, floor, held }: Standing): boolean =>
  floor !== null &&
  (BigInt(nonce) <= BigInt(floor) || BigInt(held) === BigInt(nonce) - BigInt(floor))

/**
 * Assigns the lowest free nonce to the last unsubmitted transaction of the account that is going to
 * be signed.
 * @returns the new unsigned bytes if that is this transaction, `another` if it is a different one,
 *   null if there is no gap
 */
async function closeGap(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  own: { id: string; account: string; nonce: bigint },
  mined: bigint,
): Promise<UnsignedTransaction | 'another' | null> {
  const free = await lowestFree(tx, row, own.account, mined)
  if (free >= own.nonce) return null
  const last = await tx.one<{ id: string; transaction_id: string; unsigned: UnsignedTransaction }>(
    `select c.id, c.transaction_id, c.unsigned from chain_transactions c
       join transactions t on t.workspace_id = c.workspace_id and t.id = c.transaction_id
     where ${MOVABLE} and c.nonce > $4 order by c.nonce desc limit 1`,
    [row.network, own.account, row.workspace_id, free.toString()],
  )
  if (!last) return null
  const unsigned = withNonce(services.networks.get(row.network).network, last.unsigned, free)
  await tx.query(
    'update chain_transactions set nonce = $2, unsigned = $3 where workspace_id = $4 and id = $1',
    [last.id, free.toString(), JSON.stringify(unsigned), row.workspace_id],
  )
  services.log.info(
    { transaction: last.transaction_id, account: own.account, nonce: free.toString() },
    'a transaction uses the nonce of an abandoned transaction and replaces it',
  )
  if (last.id === own.id) return unsigned
  await wakeOne(tx, row.workspace_id, last.transaction_id)
  return 'another'
}

/**
 * Makes the transaction with the next nonce due, in the same commit that signs or gives up the
 * previous one.
 */
export async function wakeNextNonce(
  tx: Queryable,
  { network, workspace_id: workspace }: Owned,
  { account }: Pick<NoncePosition, 'account'>,
): Promise<void> {
  if (account === null) return
  await lockAccount(tx, network, account)
  await tx.query(
    `update transactions set next_run_at = $3 where lease_token is null and state = 'SIGNING'
       and workspace_id = $4 and id = (
       select transaction_id from chain_transactions
       where workspace_id = $4 and network = $1 and account = $2 and state = 'BUILT'
         and replaces is null order by nonce limit 1)`,
    [network, account, tx.now(), workspace],
  )
}
