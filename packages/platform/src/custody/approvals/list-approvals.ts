import { LIMITS } from '@custody/policy'
import { z } from 'zod'
import type { Database } from '../../core/database/pool.ts'
import { endpoint, type Caller } from '../../core/http/endpoint.ts'
import { integer, LIMIT_MAX, oneOf } from '../../core/http/schemas.ts'
import type { ChangeApprovals, ChangeRange } from './change-approvals.ts'
import { after, pageFields, pageOf, readCursor } from '../../core/time-cursor.ts'
import { decisionsOfAll } from '../../core/signing/approvals.ts'
import { approvalShape, presentApproval } from './present.ts'
import { requesterNames } from './requester-names.ts'
import {
  REQUEST_COLUMNS,
  REQUEST_TABLES,
  REQUEST_STATES,
  type ApprovalRequest,
  type RequestState,
} from './approval-request.ts'

interface Services {
  database: Database
  policyChanges: ChangeApprovals
}

/** Lists what requires approvals in the sub-account, and policy changes, newest first. */
export const listApprovals = endpoint({
  id: 'listApprovals',
  tag: 'Approvals',
  description:
    'Returns transfers, stakes and forwarding rules of the sub-account that require approvals by the policy of the workspace, and proposed changes of the policy (`action` is `policy_change`), newest first. `needs` states for each group how many of its members must approve and how many have; `have` contains the decisions. To continue, pass `next` of the response as `after`.',
  method: 'GET',
  path: '/dac/v1/approvals',
  summary: 'List what requires approvals',
  access: 'read',
  query: z.strictObject({
    state: oneOf(REQUEST_STATES).default('open'),
    after: after('records'),
    limit: integer(
      1,
      LIMIT_MAX,
      'Maximum number of records in the response; by default 50',
    ).default(50),
  }),
  response: z.object({
    data: z.array(approvalShape).max(LIMIT_MAX),
    ...pageFields,
  }),
  async handler({ caller, query: { state, after: cursor, limit } }, services: Services) {
    const { at, id } = readCursor(cursor)
    const { workspaceId: workspace } = caller
    const count = limit + 1
    const [transfers, changes] = await Promise.all([
      openTransfers(services, caller, { state, at, id, count }),
      services.policyChanges.list(workspace, state, { at, id, count }),
    ])
    const merged = [...transfers, ...changes].sort(
      (a, b) => b.at.getTime() - a.at.getTime() || (a.approval.id < b.approval.id ? 1 : -1),
    )
    const { rows, page } = pageOf(merged, limit, (row) => ({ at: row.at, id: row.approval.id }))
    return { body: { data: rows.map(({ approval }) => approval), ...page } }
  },
})

/** Returns the transfers of the caller's sub-account in a state, newest first. */
async function openTransfers(
  { database }: Services,
  { workspaceId: workspace, subAccountId }: Caller,
  { state, at, id, count }: ChangeRange & { state: RequestState },
) {
  const read = await database.query<ApprovalRequest>(
    `select ${REQUEST_COLUMNS} from ${REQUEST_TABLES}
     where r.workspace_id = $1 and r.sub_account_id = $2 and r.state = $3
       and ($4::timestamptz is null or (r.created_at, r.transaction_id) < ($4, $5::uuid))
     order by r.created_at desc, r.transaction_id desc limit $6`,
    [workspace, subAccountId, state, at, id, count],
  )
  const ids = read.map(({ transaction_id: transfer }) => transfer)
  const decisions = await decisionsOfAll(database, workspace, ids)
  const names = await requesterNames(
    database,
    read.map(({ requested_key: key }) => key),
  )
  return read.map((row) => {
    const own = (decisions.get(row.transaction_id) ?? []).slice(0, 2 * LIMITS.approvals)
    return { at: row.created_at, approval: presentApproval(row, own, names) }
  })
}
