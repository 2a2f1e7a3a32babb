import { jsonText } from '@custody/chains/terminal'
import type { Queryable } from '../../core/database/pool.ts'
import {
  FIRST_HASH,
  hashOfLine,
  type AuditEnd,
  type AuditLine,
  type Details,
} from './audit-chain.ts'

/** The person or key that did something, and their network address. */
export interface Actor {
  type: AuditLine['actor']['type']
  id: string | null
  name: string
  session: string | null
  ip: string | null
}

export const OPERATOR: Actor = {
  type: 'operator',
  id: null,
  name: 'operator',
  session: null,
  ip: null,
}

/**
 * An action to be recorded. `action`: `noun.verb`. `object`: ID or name of the object of the
 * action.
 */
export interface AuditAction {
  action: string
  object?: string | null
  details?: Details
}

/**
 * Writes a line into a workspace's audit log, in the transaction of the action. Must be called last
 * in it, because it locks the end of the log until the commit.
 */
export async function writeAudit(
  tx: Queryable,
  workspaceId: string,
  actor: Actor,
  { action, object = null, details = {} }: AuditAction,
): Promise<void> {
  await tx.query(
    'insert into audit_heads (workspace_id, seq, hash) values ($1, 0, $2) on conflict do nothing',
    [workspaceId, Buffer.from(FIRST_HASH, 'hex')],
  )
  const head = await tx.one<{ seq: string; hash: Buffer }>(
    'select seq, hash from audit_heads where workspace_id = $1 for update',
    [workspaceId],
  )
  if (!head) throw new Error('the audit log has no last entry to append to')
  const { type, id, name, session, ip } = actor
  const line = {
    workspace: workspaceId,
    seq: Number(head.seq) + 1,
    at: tx.now().toISOString(),
    actor: { type, id, name },
    session,
    ip,
    action,
    object,
    details,
    prev_hash: head.hash.toString('hex'),
  }
  const hash = hashOfLine(line)
  await tx.query(
    `insert into audit_log
       (workspace_id, seq, at, actor_type, actor_id, actor_name, session_id, ip, action, object,
         details, prev_hash, hash)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
    [
      workspaceId,
      line.seq,
      line.at,
      type,
      id,
      name,
      session,
      ip,
      action,
      object,
      JSON.stringify(details),
      head.hash,
      Buffer.from(hash, 'hex'),
    ],
  )
  await tx.query('update audit_heads set seq = $2, hash = $3 where workspace_id = $1', [
    workspaceId,
    line.seq,
    Buffer.from(hash, 'hex'),
  ])
  tx.emitAudit({
    workspace: workspaceId,
    seq: line.seq,
    hash,
    action,
    object,
    actorType: type,
    actorId: id,
    ip,
  })
}

/**
 * Writes the line in every workspace of a person, for changes of how they sign in, which concern
 * all of these workspaces.
 */
export async function writeAuditEverywhere(
  tx: Queryable,
  personId: string,
  actor: Actor,
  deed: AuditAction,
): Promise<void> {
  // The order is fixed, so that two concurrent calls cannot deadlock.
  const rows = await tx.query<{ workspace_id: string }>(
    'select workspace_id from memberships where person_id = $1 order by workspace_id',
    [personId],
  )
  for (const { workspace_id } of rows) await writeAudit(tx, workspace_id, actor, deed)
}

export interface AuditRow {
  workspace_id: string
  seq: string
  at: Date
  actor_type: AuditLine['actor']['type']
  actor_id: string | null
  actor_name: string
  session_id: string | null
  ip: string | null
  action: string
  object: string | null
  details: Details
  prev_hash: Buffer
  hash: Buffer
}

/** Returns a line as it is exported and was hashed. */
export const lineOfRow = (row: AuditRow): AuditLine => ({
  workspace: row.workspace_id,
  seq: Number(row.seq),
  at: row.at.toISOString(),
  actor: { type: row.actor_type, id: row.actor_id, name: row.actor_name },
  session: row.session_id,
  ip: row.ip,
  action: row.action,
  object: row.object,
  details: row.details,
  prev_hash: row.prev_hash.toString('hex'),
  hash: row.hash.toString('hex'),
})

const BATCH = 500

/**
 * Exports a workspace's complete log as text, line by line (NDJSON), as of the start of the export.
 * The last line is the end marker.
 */
export async function* exportAudit(
  database: Queryable,
  workspaceId: string,
): AsyncGenerator<string> {
  const head = await database.one<{ seq: string; hash: Buffer }>(
    'select seq, hash from audit_heads where workspace_id = $1',
    [workspaceId],
  )
  const last = Number(head?.seq ?? 0)
  for (let seq = 0; seq < last;) {
    const rows = await database.query<AuditRow>(
      `select * from audit_log where workspace_id = $1 and seq > $2 and seq <= $3 order by seq
        limit $4`,
      [workspaceId, seq, last, BATCH],
    )
    // A missing row is left to the verification to detect.
    if (rows.length === 0) break
    yield rows.map((row) => `${jsonText(lineOfRow(row))}\n`).join('')
    seq = Number(rows.at(-1)?.seq)
  }
  const end: AuditEnd = {
    end: { workspace: workspaceId, seq: last, hash: head?.hash.toString('hex') ?? FIRST_HASH },
  }
  yield `${JSON.stringify(end)}\n`
}
