import { LIMITS } from '@custody/policy'
import { z } from 'zod'
import type { Database } from '../../core/database/pool.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { integer, LIMIT_MAX, oneOf } from '../../core/http/schemas.ts'
import { decisionsOfAll } from '../../core/signing/approvals.ts'
import { approvalShape, presentApproval } from './present.ts'
import { REQUEST_STATES, type ApprovalRequest } from './approval-request.ts'

interface Services {
  database: Database
}

/** Position in the list: the time of creation in milliseconds of Unix time, and the transfer's ID. */
const CURSOR = /^(\d{1,14})\.([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$/
const CURSOR_MAX = 51
const CURSOR_EXAMPLE = '1795600000000.7c9e6679-7425-40de-944b-e07fc1f90ae7'

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
    after: z
      .string()
      .max(CURSOR_MAX)
      .regex(CURSOR, 'must be `next` of an earlier response')
      .optional()
      .meta({
        description: '`next` of an earlier response: returns the transfers that follow',
        examples: [CURSOR_EXAMPLE],
      }),
    limit: integer(
      1,
      LIMIT_MAX,
      'Maximum number of transfers in the response; by default 50',
    ).default(50),
  }),
  response: z.object({
    data: z.array(approvalShape).max(LIMIT_MAX),
    next: z
      .string()
      .nullable()
      .meta({
        description: 'Cursor of the next page: pass it as `after`; null on the last page',
        examples: [CURSOR_EXAMPLE],
      }),
    has_more: z.boolean().meta({ description: 'Whether there are more records' }),
  }),
  async handler({ caller, query: { state, after, limit } }, { database }: Services) {
    const [, at = null, id = null] = (after === undefined ? null : CURSOR.exec(after)) ?? []
    const rows = await database.query<ApprovalRequest>(
      `select transaction_id, state, statement, needs, expires_at, created_at from approval_requests
       where workspace_id = $1 and sub_account_id = $2 and state = $3
         and ($4::timestamptz is null or (created_at, transaction_id) < ($4, $5::uuid))
       order by created_at desc, transaction_id desc limit $6`,
      [
        caller.workspaceId,
        caller.subAccountId,
        state,
        at === null ? null : new Date(Number(at)),
        id,
        limit + 1,
      ],
    )
    const shown = rows.slice(0, limit)
    const last = rows.length > limit ? shown.at(-1) : undefined
    const decisions = await decisionsOfAll(
      database,
      caller.workspaceId,
      shown.map(({ transaction_id: transfer }) => transfer),
    )
    return {
      body: {
        data: shown.map((row) =>
          presentApproval(
            row,
            (decisions.get(row.transaction_id) ?? []).slice(0, 2 * LIMITS.approvals),
          ),
        ),
        next: last ? `${last.created_at.getTime()}.${last.transaction_id}` : null,
        has_more: last !== undefined,
      },
    }
  },
})
