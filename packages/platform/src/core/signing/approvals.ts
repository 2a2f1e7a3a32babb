import { LIMITS, type Assertion, type CarriedApproval } from '@custody/policy'
import type { Queryable } from '../database/pool.ts'

/** What an order carries for the policy of its workspace. */
export interface OrderPolicy {
  approvals?: CarriedApproval[]
  /** Derivation path of the destination, if it is an address of the workspace. */
  to_path?: number[]
}

interface Row {
  transaction_id: string
  decision: 'approve' | 'reject'
  person: string
  key: string
  signed_at: string
  expires_at: string
  signature: string | null
  passkey: Assertion | null
}

const COLUMNS =
  'transaction_id, decision, person, key, signed_at::text, expires_at::text, signature, passkey'

const carried = (row: Row): CarriedApproval => ({
  id: row.transaction_id,
  decision: row.decision,
  by: row.person,
  key: row.key,
  at: Number(row.signed_at),
  expires: Number(row.expires_at),
  ...(row.passkey === null ? { signature: row.signature! } : { passkey: row.passkey }),
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
 * Returns the valid approvals that the order of a transaction carries: those of the transfer, or of
 * each transfer that a fuel transaction or a loan of energy is for.
 */
async function orderApprovals(
  database: Queryable,
  { workspace_id, id, parent_id }: Ordered,
): Promise<CarriedApproval[]> {
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
  return rows.map(carried)
}

interface Ordered {
  workspace_id: string
  id: string
  parent_id: string | null
}

/**
 * Returns what the order of a transaction carries for the policy of its workspace; undefined if that
 * is nothing.
 * @param approves whether people have approved any transfer of the workspace
 * @param path of the destination, if it is an address of the workspace
 */
export async function orderPolicy(
  database: Queryable,
  row: Ordered,
  { approves, path }: { approves: boolean; path: number[] | undefined },
): Promise<OrderPolicy | undefined> {
  const approvals = approves ? await orderApprovals(database, row) : []
  if (approvals.length === 0 && path === undefined) return undefined
  return {
    ...(approvals.length === 0 ? {} : { approvals }),
    ...(path === undefined ? {} : { to_path: path }),
  }
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
