import { LIMITS, type CarriedApproval } from '@custody/policy'
import type { Queryable } from '../../core/database/pool.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import type { RequestState } from './approval-request.ts'
import type { Judgement } from './judgement.ts'
import { tellApproval } from './tell.ts'

type Owned = Pick<TransactionRow, 'id' | 'workspace_id'>

/**
 * Opens the request of a transfer or rule that waits for approvals, or updates what it needs. A
 * request of a rule can be opened again after it was closed.
 * @param expiresAt of a forwarding rule: when the request expires; null: it is a transfer, whose
 *   request expires six days after it was issued
 */
export async function openRequest(
  tx: Queryable,
  row: Owned & Pick<TransactionRow, 'sub_account_id'>,
  { statement, needs, issued_at: issuedAt }: Judgement,
  expiresAt: Date | null = null,
): Promise<void> {
  const before = await tx.one<{ state: RequestState }>(
    'select state from approval_requests where workspace_id = $1 and transaction_id = $2',
    [row.workspace_id, row.id],
  )
  await tx.query(
    `insert into approval_requests (workspace_id, transaction_id, sub_account_id, state, statement,
       needs, expires_at, created_at, is_rule)
     values ($1, $2, $3, 'open', $4, $5, $6, $7, $8)
     on conflict (workspace_id, transaction_id) do update
       set state = 'open', statement = excluded.statement, needs = excluded.needs,
         (expires_at, created_at) = (
           select case when again then excluded.expires_at else approval_requests.expires_at end,
             case when again then excluded.created_at else approval_requests.created_at end
           from (select approval_requests.is_rule and approval_requests.state <> 'open') closed (again))`,
    [
      row.workspace_id,
      row.id,
      row.sub_account_id,
      JSON.stringify(statement),
      JSON.stringify(needs),
      expiresAt ?? new Date((issuedAt + LIMITS.approvalS) * 1000),
      tx.now(),
      expiresAt !== null,
    ],
  )
  if (before?.state !== 'open') await tellApproval(tx, row, 'approval.requested')
}

/** Stores how many people have approved an open request. */
export async function noteNeeds(
  tx: Queryable,
  row: Owned,
  { needs }: Pick<Judgement, 'needs'>,
): Promise<void> {
  await tx.query(
    `update approval_requests set needs = $3 where workspace_id = $1 and transaction_id = $2
      and state = 'open'`,
    [row.workspace_id, row.id, JSON.stringify(needs)],
  )
}

/** Closes the request of a transfer if it is open. */
export async function closeRequest(
  tx: Queryable,
  row: Owned,
  state: Exclude<RequestState, 'open'>,
): Promise<void> {
  const closed = await tx.one(
    `update approval_requests set state = $3 where workspace_id = $1 and transaction_id = $2
      and state = 'open' returning transaction_id`,
    [row.workspace_id, row.id, state],
  )
  if (closed) await tellApproval(tx, row, 'approval.closed')
}

/** Returns the time at which the request of a transfer expires; undefined if it has none. */
export async function expiryOf(database: Queryable, row: Owned): Promise<Date | undefined> {
  const request = await database.one<{ expires_at: Date }>(
    'select expires_at from approval_requests where workspace_id = $1 and transaction_id = $2',
    [row.workspace_id, row.id],
  )
  return request?.expires_at
}

/** Stores a person's decision in place of an earlier one. */
export async function writeDecision(
  tx: Queryable,
  { workspace_id: workspace, id }: Owned,
  { decision, by, key, at, expires, signature, passkey }: CarriedApproval,
): Promise<void> {
  await tx.query(
    `insert into approvals (workspace_id, transaction_id, person, decision, key, signed_at,
       expires_at, signature, passkey, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     on conflict (workspace_id, transaction_id, person) do update
       set decision = excluded.decision, key = excluded.key, signed_at = excluded.signed_at,
         expires_at = excluded.expires_at, signature = excluded.signature,
         passkey = excluded.passkey, created_at = excluded.created_at`,
    [
      workspace,
      id,
      by,
      decision,
      key,
      at,
      expires,
      signature ?? null,
      passkey === undefined ? null : JSON.stringify(passkey),
      tx.now(),
    ],
  )
}
