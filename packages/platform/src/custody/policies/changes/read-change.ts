import { z } from 'zod'
import type { Database } from '../../../core/database/pool.ts'
import { ApiError } from '../../../core/errors.ts'
import { endpoint, type Caller } from '../../../core/http/endpoint.ts'
import { pathId } from '../../../core/http/schemas.ts'
import { findChange, type PolicyChange } from './change.ts'
import { collectedOf } from './collected.ts'
import { changeDetailShape, presentChangeDetail } from './shapes.ts'

interface Services {
  database: Database
}

/** Returns a change of the caller's workspace. @throws ApiError `NOT_FOUND` */
export async function ownChange(
  database: Database,
  { workspaceId }: Caller,
  id: string,
): Promise<PolicyChange> {
  const found = await findChange(database, workspaceId, id)
  if (found) return found
  throw new ApiError('NOT_FOUND', `id: the workspace has no policy change ${id.slice(0, 100)}`, {
    field: 'id',
  })
}

/** Returns one proposed change. */
export const readPolicyChange = endpoint({
  id: 'readPolicyChange',
  tag: 'Policy',
  description:
    'Returns a proposed policy change with its document, how it differs from the document that it changes, and who is missing. `statement` contains all fields that an approval signs, except those of its signer.',
  errors: ['NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/policy/changes/{id}',
  summary: 'Read a policy change',
  access: 'read',
  params: z.strictObject({ id: pathId }),
  response: changeDetailShape,
  async handler({ caller, params }, { database }: Services) {
    const change = await ownChange(database, caller, params.id)
    return { body: presentChangeDetail(change, await collectedOf(database, change)) }
  },
})
