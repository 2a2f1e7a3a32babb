import {
  decode,
  RpcUnavailable,
  signing,
  type PublicKeyAt,
  type Registry,
  type UnsignedTransaction,
} from '@custody/chains'
import type { Logger } from 'pino'
import type { Database, Queryable } from '../../database/pool.ts'
import type { WorkspaceKeys } from '../../signing/keys.ts'
import type { OpenTransaction } from '../../signing/withdraw.ts'
import { advance, LeaseLost, wakeBuilding } from '../lease.ts'
import type { Networks } from '../networks.ts'
import { lockAccount, wakeNextNonce } from '../nonce-order.ts'
import type { TransactionRow } from '../transaction.ts'

export interface OpenServices {
  database: Database
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
  log: Logger
}

/** Transactions that nodes may have signed without the platform's knowledge, also those that gave way. */
const IS_OPEN = `state in ('BUILT', 'VOID') and hash is null and shown_at is not null`

interface OpenRow {
  id: string
  unsigned: UnsignedTransaction
  shown_at: Date
  valid_until: string | null
  account: string | null
  nonce: string | null
}

/** An {@link OpenTransaction}, with what identifies it on its chain. */
export type Open = OpenTransaction &
  Pick<OpenRow, 'id' | 'account' | 'nonce' | 'valid_until'> & {
    findPublished: () => Promise<Published | null>
  }

/** A transaction that another party has published; `raw` is null where its id does not cover signatures. */
interface Published {
  hash: string
  raw: string | null
}

/** Returns the transactions of a transfer that nodes may have signed without the platform's knowledge. */
export async function openTransactions(
  services: OpenServices,
  row: TransactionRow,
): Promise<Open[]> {
  const rows = await services.database.query<OpenRow>(
    `select id, unsigned, shown_at, valid_until::text, account, nonce::text
     from chain_transactions
     where workspace_id = $2 and transaction_id = $1 and ${IS_OPEN} order by attempt`,
    [row.id, row.workspace_id],
  )
  return rows.map((open) => ({
    id: open.id,
    account: open.account,
    nonce: open.nonce,
    valid_until: open.valid_until,
    unsigned: open.unsigned,
    submittedAtMs: open.shown_at.getTime(),
    isDead: async () =>
      (await isExcluded(services, row, open)) || (await isExpired(services, row, open)),
    findPublished: () => findPublished(services, row, open),
  }))
}

const keyOf = async (services: OpenServices, row: TransactionRow): Promise<PublicKeyAt> => {
  const { curve } = services.networks.get(row.network).network
  return (await services.keys.get(row.workspace_id, curve)).at
}

/** Whether a confirmed transaction of the platform has used the nonce or a coin of an open one. */
async function isExcluded(
  services: OpenServices,
  row: TransactionRow,
  { id, unsigned, account, nonce }: OpenRow,
): Promise<boolean> {
  const { database, networks, registry } = services
  if (account !== null && nonce !== null) {
    const other = await database.one(
      `select 1 from chain_transactions where workspace_id = $1 and network = $2 and account = $3
        and nonce = $4 and id <> $5 and state = 'CONFIRMED' limit 1`,
      [row.workspace_id, row.network, account, nonce, id],
    )
    return other !== undefined
  }
  if (networks.get(row.network).coins === null) return false
  const { consumes } = decode(registry, unsigned, await keyOf(services, row))
  const spent = await database.one(
    `select 1 from utxos u join chain_transactions c on c.workspace_id = u.workspace_id
       and c.id = u.spent_by
     where u.workspace_id = $1 and u.network = $2 and u.txid || ':' || u.vout = any($3)
       and c.id <> $4 and c.state = 'CONFIRMED' limit 1`,
    [row.workspace_id, row.network, consumes, id],
  )
  return spent !== undefined
}

/** Whether a transaction has expired without being included, whatever its signature. */
async function isExpired(
  services: OpenServices,
  row: TransactionRow,
  open: OpenRow,
): Promise<boolean> {
  if (open.valid_until === null) return false
  const chain = services.networks.get(row.network)
  const validUntil = Number(open.valid_until)
  try {
    if (!chain.findSigned)
      return (await chain.isDead?.(await idOf(services, row, open), validUntil)) ?? false
    return (await chain.findSigned(accountOf(row, open), open.unsigned.bytes, validUntil)) === null
  } catch (error) {
    // The chain's endpoints have not seen the expiry yet, or do not respond.
    if (error instanceof RpcUnavailable) return false
    throw error
  }
}

const accountOf = (row: TransactionRow, { account }: OpenRow): string =>
  account ?? (row.source_id as string)

/** Returns the id of a transaction on chains whose ids do not cover signatures: the hash that is signed. */
async function idOf(services: OpenServices, row: TransactionRow, open: OpenRow): Promise<string> {
  const [item] = signing(services.registry, open.unsigned, await keyOf(services, row))
  return Buffer.from(item!.message).toString('hex')
}

/** Returns the transaction if a block contains it, on chains on which transactions expire. */
async function findPublished(
  services: OpenServices,
  row: TransactionRow,
  open: OpenRow,
): Promise<Published | null> {
  if (open.valid_until === null) return null
  const { client, findSigned } = services.networks.get(row.network)
  try {
    if (findSigned)
      return await findSigned(accountOf(row, open), open.unsigned.bytes, Number(open.valid_until))
    const hash = await idOf(services, row, open)
    return (await client.status(hash)).state === 'included' ? { hash, raw: null } : null
  } catch (error) {
    if (error instanceof RpcUnavailable) return null
    throw error
  }
}

/**
 * Continues a transfer with a transaction that was signed without the platform's knowledge and published.
 * @returns whether there was one
 */
export async function adoptPublished(
  services: OpenServices,
  row: TransactionRow,
  open: readonly Open[],
): Promise<boolean> {
  for (const { id, findPublished: find, ...place } of open) {
    const found = await find()
    if (!found) continue
    services.log.error(
      { transaction: row.id, hash: found.hash },
      'a transfer that was to fail was published by another party; it continues with that transaction',
    )
    await services.database.transaction(async (tx) => {
      if (place.account !== null) await lockAccount(tx, row.network, place.account)
      await tx.query(
        `update chain_transactions set state = 'SIGNED', hash = $2, signed = $3
         where workspace_id = $4 and id = $1`,
        [id, found.hash, found.raw, row.workspace_id],
      )
      if (place.nonce !== null) await wakeNextNonce(tx, row, place)
      await advance(tx, row, {
        state: 'CONFIRMING',
        hash: found.hash,
        plan: { cancel: null, reason: null },
        last_error: null,
        run_in_ms: 0,
      })
    })
    return true
  }
  return false
}

/**
 * Stores that transactions have ended, so that what nodes or the chain answer later changes nothing: those
 * that no node has signed count as not submitted, and those that have expired as such. The others are
 * excluded by a transaction that is stored.
 */
export async function noteEnded(
  tx: Queryable,
  { id, workspace_id: workspace, lease_token: lease }: TransactionRow,
  { unsigned, excluded }: { unsigned: readonly Open[]; excluded: readonly Open[] },
): Promise<void> {
  // Another process that has taken the transfer over may have submitted its transaction again.
  const held = await tx.one(
    'select 1 from transactions where workspace_id = $1 and id = $2 and lease_token = $3 for update',
    [workspace, id, lease],
  )
  if (!held) throw new LeaseLost(id)
  const idsOf = (list: readonly Open[]) => list.map((each) => each.id)
  await tx.query(
    'update chain_transactions set shown_at = null where workspace_id = $1 and id = any($2)',
    [workspace, idsOf(unsigned)],
  )
  await tx.query(
    `update chain_transactions set state = 'EXPIRED'
     where workspace_id = $1 and id = any($2) and valid_until is not null`,
    [workspace, idsOf(excluded)],
  )
}

/** Whether a transfer has a transaction that is not signed yet. */
export async function isBuilt(tx: Queryable, row: TransactionRow): Promise<boolean> {
  const built = await tx.one(
    `select 1 from chain_transactions where workspace_id = $2 and transaction_id = $1
      and state = 'BUILT' limit 1`,
    [row.id, row.workspace_id],
  )
  return built !== undefined
}

/**
 * Lets other transfers use the nonces and the coins of a transfer's open transactions that never expire, so
 * that they exclude these.
 * @returns whether there were any
 */
export async function giveWay(tx: Queryable, row: TransactionRow): Promise<boolean> {
  const isGiven = `${IS_OPEN} and state = 'BUILT' and valid_until is null`
  const of = [row.id, row.workspace_id]
  const accounts = await tx.query<{ account: string }>(
    `select distinct account from chain_transactions
     where workspace_id = $2 and transaction_id = $1 and ${isGiven} and account is not null
     order by account`,
    of,
  )
  for (const { account } of accounts) await lockAccount(tx, row.network, account)
  const given = await tx.query<{ id: string; account: string | null; nonce: string | null }>(
    `update chain_transactions set state = 'VOID'
     where workspace_id = $2 and transaction_id = $1 and ${isGiven}
     returning id, account, nonce::text`,
    of,
  )
  const freed = await tx.query(
    'update utxos set spent_by = null where workspace_id = $1 and spent_by = any($2) returning 1',
    [row.workspace_id, given.map(({ id }) => id)],
  )
  for (const place of given) if (place.nonce !== null) await wakeNextNonce(tx, row, place)
  if (freed.length > 0 && row.wallet_id !== null)
    await wakeBuilding(tx, row.workspace_id, row.wallet_id)
  return given.length > 0
}
