import { decode, type PublicKeyAt, type Registry, type UnsignedTransaction } from '@custody/chains'
import { stringifyJson } from '@custody/request-auth'
import type { Logger } from 'pino'
import type { Queryable } from '../../database/pool.ts'
import { emit } from '../../ledger/post.ts'
import type { WorkspaceKeys } from '../../signing/keys.ts'
import { recordChange } from '../change-coins.ts'
import type { Kinds, Undone } from '../interfaces/kind.ts'
import type { Networks } from '../networks.ts'
import { presentTransaction } from '../present.ts'
import { generationOf } from '../settlement.ts'
import { ASKED_FOR, type Plan, type TransactionRow } from '../transaction.ts'

interface Services {
  registry: Registry
  networks: Networks
  keys: WorkspaceKeys
  log: Logger
  kinds: Kinds
}

/** A settled chain transaction whose block has left the chain. */
interface Settled extends Undone {
  id: string
  workspace_id: string
  transaction_id: string
  hash: string
}

const GONE =
  'a reorganisation removed the block that contained it; the same transaction is sent again'

/**
 * Takes back everything that blocks of a network above a height settled of outgoing transactions: their
 * ledger entries, states and coins. Each transaction is pending again with the same signed bytes, and
 * its generation grows. Newest blocks first, as a later one may depend on an earlier one.
 */
export async function undoAbove(
  services: Services,
  tx: Queryable,
  network: string,
  height: number,
): Promise<void> {
  const settled = await tx.query<Settled>(
    `select id, workspace_id, transaction_id, hash, succeeded, step from chain_transactions
     where network = $1 and block_height > $2 and state = 'CONFIRMED'
     order by block_height desc, created_at desc, id`,
    [network, height],
  )
  for (const each of settled) await undo(services, tx, each)
}

/** Takes back what one chain transaction settled. */
async function undo(services: Services, tx: Queryable, settled: Settled): Promise<void> {
  const row = await tx.one<TransactionRow>(
    'select * from transactions where workspace_id = $1 and id = $2 for update',
    [settled.workspace_id, settled.transaction_id],
  )
  if (!row) throw new Error(`the transaction ${settled.transaction_id} of a settled one is missing`)
  const kind = services.kinds[row.kind]
  if (!kind.undo) throw new Error(`a settled transaction ${settled.transaction_id} has no undo`)
  await tx.query(
    `update chain_transactions set state = 'SIGNED', block_height = null, block_hash = null, fee = null,
       succeeded = null, withdrawn = null where workspace_id = $1 and id = $2`,
    [settled.workspace_id, settled.id],
  )
  const plan = await kind.undo(tx, row, settled)
  await reviveReplaced(services, tx, row, settled)
  const pending = await makePending(tx, row, settled, plan)
  services.log.warn(
    { transaction: row.id, kind: row.kind, network: row.network, hash: settled.hash },
    'a settled transaction was taken back by a reorganisation; the same bytes are sent again',
  )
  if (!ASKED_FOR.has(row.kind)) return
  const shown = stringifyJson(presentTransaction(pending, services.registry))
  await emit(tx, row.workspace_id, row.sub_account_id, 'transaction.reverted', shown)
}

/** Makes a transaction pending in its next generation, and releases the lease of any worker. */
async function makePending(
  tx: Queryable,
  row: TransactionRow,
  { hash }: Settled,
  plan: Plan,
): Promise<TransactionRow> {
  const change: Plan = { ...plan, generation: String(generationOf(row) + 1) }
  const cleared = Object.keys(change).filter((field) => change[field as keyof Plan] === null)
  const written = await tx.one<TransactionRow>(
    `update transactions set state = 'CONFIRMING', status = 'pending', confirmed_at = null,
       failure_reason = null, last_error = $3, hash = $4, confirmations = 0, attempts = 0,
       waiting = null, next_run_at = $5, lease_until = null, lease_token = null, updated_at = $5,
       plan = (plan || $6::jsonb) - $7::text[]
     where workspace_id = $1 and id = $2 returning *`,
    [row.workspace_id, row.id, GONE, hash, tx.now(), JSON.stringify(change), cleared],
  )
  if (!written) throw new Error('a transaction that is locked is gone')
  return written
}

interface Replaced {
  id: string
  hash: string
  unsigned: UnsignedTransaction
  isCancellation: boolean
}

/**
 * Makes the attempts that the settled one had excluded possible again: any of them may be in the next
 * block. Coins of theirs that nothing has spent since are assigned to them again.
 */
async function reviveReplaced(
  services: Services,
  tx: Queryable,
  row: TransactionRow,
  settled: Settled,
): Promise<void> {
  const replaced = await tx.query<Replaced>(
    `update chain_transactions c set state = 'SIGNED' where workspace_id = $1 and transaction_id = $2
       and state = 'REPLACED' and step is not distinct from $3
     returning id, hash, unsigned, coalesce((select r.kind = 'CANCEL' from replacements r
       where r.workspace_id = c.workspace_id and r.id = c.replacement_id), false) "isCancellation"`,
    [row.workspace_id, row.id, settled.step],
  )
  const chain = services.networks.get(row.network)
  if (replaced.length === 0 || !chain.coins) return
  const { at } = await services.keys.get(row.workspace_id, chain.network.curve)
  await tx.query(
    `update utxos set contested = true, spendable = false where workspace_id = $1 and network = $2
       and origin = 'change' and txid = $3`,
    [row.workspace_id, row.network, settled.hash],
  )
  for (const attempt of replaced) await reviveCoins(services, tx, row, attempt, at)
}

async function reviveCoins(
  { registry }: Services,
  tx: Queryable,
  row: TransactionRow,
  { id, hash, unsigned, isCancellation }: Replaced,
  publicKeyAt: PublicKeyAt,
): Promise<void> {
  const decoded = decode(registry, unsigned, publicKeyAt)
  await tx.query(
    `update utxos set spent_by = $3 where workspace_id = $1 and network = $2 and spent_by is null
       and txid || ':' || vout = any($4)`,
    [row.workspace_id, row.network, id, decoded.consumes],
  )
  await recordChange(tx, row, { hash, unsigned, decoded, isContested: true, isCancellation })
}
