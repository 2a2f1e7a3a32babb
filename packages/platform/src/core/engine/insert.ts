import type { UnsignedTransaction } from '@custody/chains'
import type { Queryable } from '../database/pool.ts'
import type { Plan, StateOf, TransactionKind, TransactionRow } from './transaction.ts'

/**
 * A transaction to insert; absent columns have the table's default. It is due immediately unless
 * `next_run_at` says otherwise.
 */
export interface NewTransaction<K extends TransactionKind> {
  id: string
  kind: K
  state: StateOf<K>
  workspace_id: string
  sub_account_id?: string | null
  wallet_id?: string | null
  parent_id?: string | null
  asset: string
  network: string
  /** Amount in the asset's smallest unit. */
  amount: bigint
  fee?: bigint
  fee_asset: string
  /** Value in millionths of a US dollar. */
  amount_usd?: bigint | null
  source_type: string
  source_id: string | null
  destination_type: string
  destination_id: string | null
  address_tag?: string | null
  memo?: string | null
  sequence_id?: string | null
  hash?: string | null
  confirmations?: number
  request?: TransactionRow['request']
  fee_rate?: string | null
  fee_level?: string | null
  plan?: Plan<K>
  created_at?: Date
  /** Time of the last change; defaults to the time of creation. */
  updated_at?: Date
  /** Time of the next step; null: no step is due. */
  next_run_at?: Date | null
}

const record = (
  tx: Queryable,
  { amount, fee, amount_usd: usd, ...row }: NewTransaction<TransactionKind>,
): string => {
  const now = tx.now()
  const made = row.created_at ?? now
  return JSON.stringify({
    next_run_at: now,
    updated_at: made,
    ...row,
    status: 'pending',
    amount: amount.toString(),
    fee: (fee ?? 0n).toString(),
    created_at: made,
    amount_usd: usd?.toString() ?? null,
  })
}

/**
 * Inserts a transaction.
 * @throws a database error with code 23505 if its id or a unique key of its kind already exists
 */
export async function insertTransaction<K extends TransactionKind>(
  tx: Queryable,
  row: NewTransaction<K>,
): Promise<TransactionRow> {
  const [written] = await tx.query<TransactionRow>('select * from write_transaction($1)', [
    record(tx, row),
  ])
  return written as TransactionRow
}

/** Inserts a transaction unless it already exists; returns undefined in that case. */
export async function insertUnlessThere<K extends TransactionKind>(
  tx: Queryable,
  row: NewTransaction<K>,
): Promise<TransactionRow | undefined> {
  return tx.one<TransactionRow>('select * from write_transaction($1, true)', [record(tx, row)])
}

/** One unsigned or signed chain transaction. Amounts in the smallest native unit. */
export interface NewChainTransaction {
  id: string
  workspace_id: string
  transaction_id: string
  network: string
  state: 'BUILT' | 'SIGNED' | 'VOID'
  account: string | null
  nonce: bigint | null
  unsigned: UnsignedTransaction
  fee_max: bigint
  valid_until: number | null
  /** Staking: which call of its transaction this is. */
  step: string | null
  /** The first attempt that this one replaces, and the replacement that requested it. */
  replaces: string | null
  replacement_id: string | null
  /** Recovery only: the signed bytes from the signer nodes' records. */
  signed?: { raw: string; hash: string; at: Date }
}

/**
 * Inserts a row of `chain_transactions` as the next attempt of its transaction; no other code
 * inserts such rows.
 */
export async function insertChainTransaction(
  tx: Queryable,
  row: NewChainTransaction,
): Promise<void> {
  await tx.query(
    `insert into chain_transactions (id, transaction_id, network, state, account, nonce, unsigned,
       fee_max, attempt, valid_until, step,
       replaces, replacement_id, signed, hash, broadcast_at, created_at, workspace_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8,
       (select coalesce(max(attempt), 0) + 1 from chain_transactions where workspace_id = $17
         and transaction_id = $2),
       $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
    [
      row.id,
      row.transaction_id,
      row.network,
      row.state,
      row.account,
      row.nonce?.toString() ?? null,
      JSON.stringify(row.unsigned),
      row.fee_max.toString(),
      row.valid_until,
      row.step,
      row.replaces,
      row.replacement_id,
      row.signed?.raw ?? null,
      row.signed?.hash ?? null,
      row.signed?.at ?? null,
      row.signed?.at ?? tx.now(),
      row.workspace_id,
    ],
  )
}
