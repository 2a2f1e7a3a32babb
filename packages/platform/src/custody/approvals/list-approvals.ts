import { LIMITS } from '@custody/policy'
import { z } from 'zod'
import type { Database } from '../../core/database/pool.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { integer, LIMIT_MAX, oneOf } from '../../core/http/schemas.ts'
import { after, pageFields, pageOf, readCursor } from '../../core/time-cursor.ts'
import { decisionsOfAll } from '../../core/signing/approvals.ts'
import { approvalShape, presentApproval } from './present.ts'
import { REQUEST_STATES, type ApprovalRequest } from './approval-request.ts'

interface Services {
  database: Database
}

/** Lists transfers of the sub-account that require approvals, newest first. */
export const listApprovals = endpoint({
  id: 'listApprovals',
  tag: 'Approvals',
  description:
    'Returns transfers of the sub-account that require approvals by the policy of the workspace, newest first. `needs` states for each group how many of its members must approve and how many have; `have` contains the decisions. To continue, pass `next` of the response as `after`.',
  method: 'GET',
  path: '/dac/v1/approvals',
  summary: 'List transfers that require approvals',
  access: 'read',
  query: z.strictObject({
    state: oneOf(REQUEST_STATES).default('open'),
    after: after('transfers'),
    limit: integer(
      1,
      LIMIT_MAX,
      'Maximum number of transfers in the response; by default 50',
    ).default(50),
  }),
  response: z.object({
    data: z.array(approvalShape).max(LIMIT_MAX),
    ...pageFields,
  }),
  async handler({ caller, query: { state, after: cursor, limit } }, { database }: Services) {
    const { at, id } = readCursor(cursor)
    const read = await database.query<ApprovalRequest>(
      `select transaction_id, state, statement, needs, expires_at, created_at from approval_requests
       where workspace_id = $1 and sub_account_id = $2 and state = $3
         and ($4::timestamptz is null or (created_at, transaction_id) < ($4, $5::uuid))
       order by created_at desc, transaction_id desc limit $6`,
      [caller.workspaceId, caller.subAccountId, state, at, id, limit + 1],
    )
    const { rows, page } = pageOf(read, limit, (row) => ({
      at: row.created_at,
      id: row.transaction_id,
    }))
    const decisions = await decisionsOfAll(
      database,
      caller.workspaceId,
      rows.map(({ transaction_id: transfer }) => transfer),
    )
    return {
      body: {
        data: rows.map((row) =>
          presentApproval(
            row,
            (decisions.get(row.transaction_id) ?? []).slice(0, 2 * LIMITS.approvals),
          ),
        ),
        ...page,
      },
    }
  },
})
