import { z } from 'zod'
import type { Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint, type Caller } from '../../core/http/endpoint.ts'
import { pathId } from '../../core/http/schemas.ts'
import { decisionsOf } from '../../core/signing/approvals.ts'
import type { ChangeApprovals } from './change-approvals.ts'
import { findApproval, type FoundApproval } from './find-approval.ts'
import { approvalDetailShape, presentApproval } from './present.ts'
import { requesterNames } from './requester-names.ts'

interface Services {
  database: Database
  policyChanges: ChangeApprovals
}

/**
 * Returns the request for approvals of a transfer or rule of the caller's sub-account.
 * @throws ApiError `NOT_FOUND`
 */
export async function ownApproval(
  database: Database,
  caller: Caller,
  id: string,
): Promise<FoundApproval> {
  const found = await findApproval(database, caller.workspaceId, id)
  if (found && found.sub_account_id === caller.subAccountId) return found
  throw new ApiError(
    'NOT_FOUND',
    `id: no transfer or forwarding rule of this sub-account and no policy change with the ID ${id.slice(0, 100)} requires approvals`,
    { field: 'id' },
  )
}

/** Returns a request for approvals with what an approval signs. */
export async function presentDetail(database: Database, found: FoundApproval) {
  const { api_key: _, ...request } = found.request!
  return {
    ...presentApproval(
      found,
      await decisionsOf(database, found),
      await requesterNames(database, [found.requested_key]),
    ),
    ...(found.planned_fee === null ? {} : { planned_fee: found.planned_fee }),
    statement: found.statement,
    request,
  }
}

/** Returns what requires approvals, with the statement that each approval signs. */
export const readApproval = endpoint({
  id: 'readApproval',
  tag: 'Approvals',
  description:
    'Returns one transfer, stake, forwarding rule or policy change that requires approvals. Except for a policy change, `statement` contains all fields of the statement that an approver signs, except `by`, `key`, `at`, `expires` and `decision`; `request` is the signed request of the caller, from which the statement can be derived again. For a policy change, `statement` contains all fields except `by`, `key`, `at` and `expires`, and `GET /dac/v1/policy/changes/{id}` returns the document.',
  errors: ['NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/approvals/{id}',
  summary: 'Read what requires approvals',
  access: 'read',
  params: z.strictObject({ id: pathId }),
  response: approvalDetailShape,
  async handler({ caller, params }, { database, policyChanges }: Services) {
    const change = await policyChanges.read(caller.workspaceId, params.id)
    if (change) return { body: change }
    return { body: await presentDetail(database, await ownApproval(database, caller, params.id)) }
  },
})
