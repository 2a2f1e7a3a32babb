import { z } from 'zod'
import { pageQuery } from '../../core/http/schemas.ts'
import { exportAudit, lineOfRow, type AuditRow } from '../people/audit-log.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { time } from '../people/schemas.ts'
import { WORKSPACE, workspaceParams } from './workspace.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  database: Database
}

const word = z.string().min(1).max(200)

/** Lists the audit log, newest first. */
export const listAuditLog = panelEndpoint({
  method: 'GET',
  path: `${WORKSPACE}/audit-log`,
  summary: 'List the audit log, newest entry first',
  needs: 'admin',
  params: z.strictObject(workspaceParams),
  query: z.strictObject({
    ...pageQuery,
    actor: word.optional().meta({
      description: 'Part of the name, or the id, of the person, API key or process that acted',
    }),
    action: word.optional().meta({ description: 'An action, or the part before its dot' }),
    from: time.optional(),
    to: time.optional(),
  }),
  response: z.object({
    data: z.array(
      z.object({
        seq: z.int(),
        at: time,
        actor: z.object({
          type: z.enum(['person', 'api_user', 'operator']),
          id: z.string().nullable(),
          name: z.string(),
        }),
        session: z.uuid().nullable(),
        ip: z.string().nullable(),
        action: z.string(),
        object: z.string().nullable(),
        details: z.record(z.string(), z.unknown()),
        prev_hash: z.string(),
        hash: z.string(),
      }),
    ),
    page: z.int(),
    limit: z.int(),
    total: z.int(),
  }),
  async handler(
    { visitor: { member }, query: { page, limit, actor, action, from, to } },
    { database }: Services,
  ) {
    const values = [member.workspaceId, actor ?? null, action ?? null, from ?? null, to ?? null]
    const where = `workspace_id = $1 and ($2::text is null or position(lower($2) in lower(actor_name)) > 0
        or actor_id = $2)
      and ($3::text is null or action = $3 or split_part(action, '.', 1) = $3)
      and ($4::timestamptz is null or at >= $4) and ($5::timestamptz is null or at < $5)`
    const [rows, count] = await Promise.all([
      database.query<AuditRow>(
        `select * from audit_log where ${where} order by seq desc limit $6 offset $7`,
        [...values, limit, (page - 1) * limit],
      ),
      database.one<{ total: string }>(
        `select count(*)::text total from audit_log where ${where}`,
        values,
      ),
    ])
    const data = rows.map((row) => {
      const { workspace: _, ...line } = lineOfRow(row)
      return line
    })
    return { body: { data, page, limit, total: Number(count?.total ?? 0) } }
  },
})

/** Exports the complete audit log, to be stored elsewhere and verified. */
export const exportAuditLog = panelEndpoint({
  method: 'GET',
  path: `${WORKSPACE}/audit-log/export`,
  summary: 'Export the whole audit log as NDJSON, for npx custody audit-log verify',
  heavy: { kind: 'export', weight: 20, waiting: 0 },
  needs: 'admin',
  params: z.strictObject(workspaceParams),
  async handler({ visitor: { member } }, { database }: Services) {
    return {
      headers: {
        'content-type': 'application/x-ndjson; charset=utf-8',
        'content-disposition': 'attachment; filename="audit-log.ndjson"',
      },
      pieces: () => exportAudit(database, member.workspaceId),
    }
  },
})
