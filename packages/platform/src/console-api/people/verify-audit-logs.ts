import type { Queryable } from '../../core/database/pool.ts'
import { faultAfter, FIRST_HASH } from './audit-chain.ts'
import { lineOfRow, type AuditRow } from './audit-log.ts'

/** Newest entry of a workspace's audit log. `workspace`: its ID. */
export interface AuditHead {
  workspace: string
  name: string
  seq: number
  hash: string
}

/** First entry of a workspace's audit log that is wrong or missing. */
interface BrokenEntry {
  workspace: string
  seq: number
  reason: string
}

export interface AuditLogsReport {
  entries: number
  heads: AuditHead[]
  broken: BrokenEntry[]
}

const BATCH = 500

/** One snapshot of each log's end: that which is stored, and the number of its last row. */
const ENDS = `select w.id workspace, w.name, h.seq::text head, encode(h.hash, 'hex') hash,
    (select max(l.seq) from audit_log l where l.workspace_id = w.id)::text last
  from workspaces w left join audit_heads h on h.workspace_id = w.id order by w.name`

interface LogEnd {
  workspace: string
  name: string
  head: string | null
  hash: string | null
  last: string | null
}

/**
 * Recomputes the chain of one workspace's log up to its last row.
 * @param earlier the end of the log at an earlier verification
 * @returns the newest entry, or the first wrong one
 */
async function verifyOne(
  database: Queryable,
  { workspace, name, head, hash, last: lastRow }: LogEnd,
  earlier: Pick<AuditHead, 'seq' | 'hash'> | undefined,
): Promise<AuditHead | BrokenEntry> {
  const broken = (seq: number, reason: string): BrokenEntry => ({ workspace: name, seq, reason })
  let last = { seq: 0, hash: FIRST_HASH }
  while (last.seq < Number(lastRow)) {
    const rows = await database.query<AuditRow>(
      `select * from audit_log where workspace_id = $1 and seq > $2 and seq <= $3 order by seq
        limit $4`,
      [workspace, last.seq, lastRow, BATCH],
    )
    if (rows.length === 0) return broken(last.seq + 1, 'was removed')
    for (const row of rows) {
      const line = lineOfRow(row)
      const fault = faultAfter(last, line)
      if (fault !== null) return broken(last.seq + 1, fault)
      if (earlier?.seq === line.seq && earlier.hash !== line.hash)
        return broken(line.seq, 'has another hash than at the earlier verification')
      last = { seq: line.seq, hash: line.hash }
    }
  }
  if (Number(head ?? 0) !== last.seq || (hash ?? FIRST_HASH) !== last.hash)
    return broken(
      last.seq + 1,
      `the log should end with number ${head ?? 0}, but it ends with ${last.seq}`,
    )
  if (earlier !== undefined && earlier.seq > last.seq)
    return broken(last.seq + 1, `was removed: the log ended with number ${earlier.seq} earlier`)
  return { workspace, name, ...last }
}

/**
 * Recomputes the audit log of every workspace in the database: that no entry was changed, removed,
 * added or moved. Only earlier ends can detect that a log was shortened or rewritten completely.
 * @param earlier ends of the logs at an earlier verification
 */
export async function verifyAuditLogs(
  database: Queryable,
  earlier: readonly AuditHead[] = [],
): Promise<AuditLogsReport> {
  const heads: AuditHead[] = []
  const broken: BrokenEntry[] = []
  const ends = await database.query<LogEnd>(ENDS)
  for (const end of ends) {
    const noted = earlier.find(({ workspace }) => workspace === end.workspace)
    const result = await verifyOne(database, end, noted)
    if ('reason' in result) broken.push(result)
    else heads.push(result)
  }
  for (const { workspace, name } of earlier)
    if (!ends.some((end) => end.workspace === workspace))
      broken.push({ workspace: name, seq: 1, reason: 'the workspace was removed' })
  return { entries: heads.reduce((sum, { seq }) => sum + seq, 0), heads, broken }
}
