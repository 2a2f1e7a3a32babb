import { withNonce, type UnsignedTransaction } from '@custody/chains'
import type { Queryable } from '../database/pool.ts'
import type { Services } from './services.ts'
import { advance, wakeOne } from './lease.ts'
import { mayBeShown, noteShown, showAlone, turnBack } from './shown.ts'
import type { TransactionRow } from './transaction.ts'

/** Of whom an account is, and on which network. */
type Owned = Pick<TransactionRow, 'network' | 'workspace_id'>

/** A transaction's place in its account's order; null where its network knows none. */
interface Place {
  account: string | null
  nonce: string | null
}

/** Before the lock of any row of `chain_transactions`. */
export const lockAccount = (tx: Queryable, network: string, account: string) =>
  tx.query('select 1 from signing_accounts where network = $1 and address = $2 for update', [
    network,
    account,
  ])

/** {@link lockAccount} of an account that may be new. */
export async function openAccount(tx: Queryable, network: string, account: string): Promise<void> {
  await tx.query(
    'insert into signing_accounts (network, address) values ($1, $2) on conflict do nothing',
    [network, account],
  )
  await lockAccount(tx, network, account)
}

/**
 * The lowest number from `$3` on that no transaction of ours holds. What was given up before any
 * signature holds none.
 */
const LOWEST_FREE = `select coalesce(
  (select $3::bigint where not exists (
     select 1 from chain_transactions c
     where c.workspace_id = $4 and c.network = $1 and c.account = $2 and c.nonce = $3::bigint and c.state <> 'VOID')),
  (select c.nonce + 1 from chain_transactions c
   where c.workspace_id = $4 and c.network = $1 and c.account = $2 and c.nonce >= $3::bigint and c.state <> 'VOID' and not exists (
     select 1 from chain_transactions d
     where d.workspace_id = $4 and d.network = $1 and d.account = $2 and d.nonce = c.nonce + 1 and d.state <> 'VOID')
   order by c.nonce limit 1))::text nonce`

/**
 * The lowest free nonce of an account, whose lock is held. @param mined the next that the chain
 * would take
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
 * Condition for a transaction that may take another number: no node has seen it, and it goes on to
 * be signed. One whose earlier attempt was signed and died keeps its number: the nodes would sign
 * no other.
 */
const MOVABLE = `c.workspace_id = $3 and c.network = $1 and c.account = $2 and c.state = 'BUILT' and c.replaces is null
  and c.shown_at is null
  and t.state = 'SIGNING' and not t.plan ? 'cancel'
  and not exists (select 1 from chain_transactions e 
    where e.workspace_id = c.workspace_id and e.transaction_id = c.transaction_id and e.hash is not null)`

/** Whether a transaction waits that will take the number of one that was given up. */
export async function isGapClosing(
  tx: Queryable,
  { network, workspace_id: workspace }: Owned,
  account: string,
): Promise<boolean> {
  const found = await tx.one(
    `select 1 from chain_transactions c join transactions t on t.workspace_id = c.workspace_id and t.id = c.transaction_id
     where ${MOVABLE} limit 1`,
    [network, account, workspace],
  )
  return found !== undefined
}

/**
 * A transaction's place. `before`: a lower number is not signed yet. `held`: how many numbers from
 * the last settled one on are taken.
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
 * What is noted as shown to the nodes and may be shown now; null where the transaction waits, has
 * taken another's place, or may not be shown, and comes again. The nodes sign the nonces of an
 * account in their order: asking earlier would cost a refusal each time, and the signing of the one
 * before wakes it. A number that was given up is taken by the last transaction that no node has
 * seen: what a node may have signed keeps its place, for nothing else would exclude it there.
 */
export async function placeToSign(
  services: Services,
  row: TransactionRow,
  built: { id: string; unsigned: UnsignedTransaction } & Place,
): Promise<UnsignedTransaction | null> {
  const { account } = built
  if (account === null || built.nonce === null) return showAlone(services, row, built)
  let mined: bigint | null = null
  for (;;) {
    const result = await services.database.transaction(
      async (tx): Promise<UnsignedTransaction | 'waits' | 'gap'> => {
        const isAllowed = await mayBeShown(services, tx, row)
        // Under the account's lock: either the waking comes after this, or the one before is seen
        // as signed.
        await lockAccount(tx, row.network, account)
        const standing = await standingOf(tx, row, account, built.id)
        if (!standing)
          throw new Error('a transaction in the state SIGNING has no unsigned transaction')
        if (!standing.shown && !isAllowed) {
          await turnBack(tx, row)
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
        // It keeps its number, as a node may have signed it; a gap below is another's to close: the
        // nodes refuse this one until then.
        if (standing.shown) return standing.unsigned
        await noteShown(tx, row, built.id)
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
       where workspace_id = $4 and network = $1 and account = $2 and nonce is not null and state in ('INCLUDED', 'CONFIRMED')
       order by nonce desc limit 1)
     select c.unsigned, c.nonce::text, c.shown_at is not null shown, (select floor from settled)::text floor,
       exists (select 1 from chain_transactions b
         where b.workspace_id = $4 and b.network = $1 and b.account = $2 and b.nonce < c.nonce and b.state = 'BUILT'
           and b.replaces is null) before,
       (select count(distinct h.nonce) from chain_transactions h
         where h.workspace_id = $4 and h.network = $1 and h.account = $2 and h.nonce >= (select floor from settled)
           and h.nonce < c.nonce and h.state <> 'VOID')::text held
     from chain_transactions c where c.workspace_id = $4 and c.id = $3 and c.state = 'BUILT'`,
    [network, account, id, workspace],
  )
}

const isContiguous = ({ nonce, floor, held }: Standing): boolean =>
  floor !== null &&
  (BigInt(nonce) <= BigInt(floor) || BigInt(held) === BigInt(nonce) - BigInt(floor))

/**
 * Gives the lowest free number to the last transaction of the account that no node has seen and
 * that goes on to be signed. Answers its bytes where that is this one, `another`, or null where
 * there is no gap.
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
    'a transaction replaces one that was abandoned',
  )
  if (last.id === own.id) return unsigned
  await wakeOne(tx, row.workspace_id, last.transaction_id)
  return 'another'
}

/**
 * Makes the transaction with the next nonce due, in the same commit that signs or gives up the one
 * before.
 */
export async function wakeNextNonce(
  tx: Queryable,
  { network, workspace_id: workspace }: Owned,
  { account }: Pick<Place, 'account'>,
): Promise<void> {
  if (account === null) return
  await lockAccount(tx, network, account)
  await tx.query(
    `update transactions set next_run_at = $3 where lease_token is null and state = 'SIGNING' and workspace_id = $4 and id = (
       select transaction_id from chain_transactions
       where workspace_id = $4 and network = $1 and account = $2 and state = 'BUILT' and replaces is null order by nonce limit 1)`,
    [network, account, tx.now(), workspace],
  )
}
