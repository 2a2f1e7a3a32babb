import { LIMITS, type CarriedApproval } from '@custody/policy'
import type { Queryable } from '../database/pool.ts'

/** What an order carries for the policy of its workspace. */
export interface OrderPolicy {
  approvals: CarriedApproval[]
}

interface Row {
  transaction_id: string
  decision: 'approve' | 'reject'
  person: string
  key: string
  signed_at: string
  expires_at: string
  signature: string
}

const COLUMNS =
  'transaction_id, decision, person, key, signed_at::text, expires_at::text, signature'

const carried = (row: Row): CarriedApproval => ({
  id: row.transaction_id,
  decision: row.decision,
  by: row.person,
  key: row.key,
  at: Number(row.signed_at),
  expires: Number(row.expires_at),
  signature: row.signature,
})

/** Returns the decisions of people about a transfer, the latest first. */
export async function decisionsOf(
  database: Queryable,
  { workspace_id, id }: { workspace_id: string; id: string },
): Promise<CarriedApproval[]> {
  const rows = await database.query<Row>(
    `select ${COLUMNS} from approvals where workspace_id = $1 and transaction_id = $2
     order by signed_at desc, person limit $3`,
    [workspace_id, id, 2 * LIMITS.approvals],
  )
  return rows.map(carried)
}

/** Returns the decisions about several transfers of a workspace, by transfer, the latest first. */
export async function decisionsOfAll(
  database: Queryable,
  workspace: string,
  ids: readonly string[],
): Promise<Map<string, CarriedApproval[]>> {
  const rows = await database.query<Row>(
    `select ${COLUMNS} from approvals where workspace_id = $1 and transaction_id = any($2)
     order by signed_at desc, person`,
    [workspace, ids],
  )
  return Map.groupBy(rows.map(carried), ({ id }) => id)
}

/**
 * Returns what the order of a transaction carries for the policy: the valid approvals of the
 * transfer, or of each transfer that a fuel transaction or a loan of energy is for. Undefined if
 * there are none.
 */
export async function orderPolicy(
  database: Queryable,
  { workspace_id, id, parent_id }: { workspace_id: string; id: string; parent_id: string | null },
): Promise<OrderPolicy | undefined> {
  const rows = await database.query<Row>(
    `select ${COLUMNS} from (
       select a.*, row_number() over (partition by transaction_id order by signed_at desc, person) place
       from approvals a
       where workspace_id = $1 and decision = 'approve' and expires_at > $5
         and transaction_id in (
           select $2::uuid union select $3::uuid
           union select transaction_id from fuel_parts where workspace_id = $1 and fuel_id = $2)
     ) latest where place <= $4`,
    [workspace_id, id, parent_id, LIMITS.approvals, Math.floor(database.now().getTime() / 1000)],
  )
  return rows.length === 0 ? undefined : { approvals: rows.map(carried) }
}

/** Returns the name of a workspace, and whether people have approved any of its transfers. */
export async function workspaceOf(
  database: Queryable,
  workspace: string,
): Promise<{ name: string; approves: boolean }> {
  const row = await database.one<{ name: string; approves: boolean }>(
    `select name, exists (select 1 from approvals where workspace_id = $1) approves
     from workspaces where id = $1`,
    [workspace],
  )
  if (!row) throw new Error('a transaction has no workspace')
  return row
}
