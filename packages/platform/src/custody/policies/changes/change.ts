import type { PolicyDocument, StatementOf } from '@custody/policy'
import type { Need } from '../../approvals/judgement.ts'
import type { Queryable } from '../../../core/database/pool.ts'

export const CHANGE_STATES = [
  'open',
  'approved',
  'held',
  'in_force',
  'rejected',
  'vetoed',
  'refused',
  'expired',
  'ended',
] as const
export type ChangeState = (typeof CHANGE_STATES)[number]

/** A person and one of their keys. */
export interface KeyOf {
  person: string
  key: string
}

/** A row of `policy_changes`. Times named `…_at` that are numbers are Unix seconds. */
export interface PolicyChange {
  workspace_id: string
  /** Name of the workspace. */
  workspace: string
  id: string
  state: ChangeState
  number: number
  hash: string
  previous: string
  /** Canonical text of the document. */
  document: string
  changes: { path: string; tendency: string; sentence: string }[]
  warnings: { path: string; message: string }[]
  comment: string
  acts_at: number
  nodes_act_at: number | null
  held: number[]
  needs: Need[]
  missing: KeyOf[]
  reason: string | null
  expires_at: Date
  created_at: Date
}

const COLUMNS = `c.workspace_id, w.name workspace, c.id, c.state, c.number::int, c.hash, c.previous,
  c.document, c.changes, c.warnings, c.comment, c.acts_at::float8, c.nodes_act_at::float8, c.held,
  c.needs, c.missing, c.reason, c.expires_at, c.created_at`

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Returns a proposed change of a workspace; undefined if there is none with the ID.
 * @param workspace ID of the workspace
 */
export async function findChange(
  database: Queryable,
  workspace: string,
  input: string,
): Promise<PolicyChange | undefined> {
  const id = input.toLowerCase()
  if (!UUID.test(id)) return undefined
  return database.one<PolicyChange>(
    `select ${COLUMNS} from policy_changes c join workspaces w on w.id = c.workspace_id
     where c.workspace_id = $1 and c.id = $2`,
    [workspace, id],
  )
}

/** Position of a change in lists, and how many to read. */
export interface ListRange {
  at: Date | null
  id: string | null
  count: number
}

/** Lists the changes of a workspace in any of some states, newest first. */
export const listChanges = (
  database: Queryable,
  workspace: string,
  states: readonly ChangeState[],
  { at, id, count }: ListRange,
): Promise<PolicyChange[]> =>
  database.query<PolicyChange>(
    `select ${COLUMNS} from policy_changes c join workspaces w on w.id = c.workspace_id
     where c.workspace_id = $1 and c.state = any($2)
       and ($3::timestamptz is null or (c.created_at, c.id) < ($3, $4::uuid))
     order by c.created_at desc, c.id desc limit $5`,
    [workspace, states, at, id, count],
  )

/** Fields that the approvals and the vetoes of a change sign, without those of their signer. */
export function statementFields(change: PolicyChange) {
  const { mode, nodes } = JSON.parse(change.document) as PolicyDocument
  return {
    v: 1 as const,
    mode,
    workspace: change.workspace,
    nodes,
    policy: { number: change.number - 1, hash: change.previous },
    next: { number: change.number, hash: change.hash },
    acts_at: change.acts_at,
  }
}

/** Fields of a person's decision that they sign. Times in Unix seconds. */
type Signed = Pick<StatementOf<'change'>, 'by' | 'key' | 'at' | 'expires'>

/** Returns the statement by which a person approves or rejects a change. */
export function decisionStatement(
  change: PolicyChange,
  decision: 'approve' | 'reject',
  { by, key, at, expires }: Signed,
): StatementOf<'change'> | StatementOf<'veto'> {
  const { acts_at, ...fields } = statementFields(change)
  const signed = { ...fields, by, key, at, expires }
  return decision === 'approve'
    ? { kind: 'change', ...signed, acts_at }
    : { kind: 'veto', ...signed }
}

/** Returns the statement by which a person proves that they hold a key of the new document. */
export function possessionStatement(
  change: PolicyChange,
  { by, key }: Pick<Signed, 'by' | 'key'>,
): StatementOf<'possession'> {
  const { v, mode, workspace, nodes, next } = statementFields(change)
  return { kind: 'possession', v, mode, workspace, nodes, by, key, policy: next }
}
