import type { Queryable } from '../database/pool.ts'

/** What the panel asked for: an API user that its operators have still to make. */
export interface ApiUserRequest {
  id: string; sub_account: string; role: 'full' | 'read-only'; public_key_pem: string; key_fingerprint: string; label: string | null
  rate_limit: number | null; ip_allow_list: string[]; person_id: string | null; created_at: Date
}

/**
 * What an API user that the operator makes was asked for as: it becomes that, with its label, allowance, addresses and owner. What
 * the operator typed goes before; what he typed otherwise is another one.
 * @returns the request's id; null where nobody has asked for such a one
 */
export async function fulfilRequest(
  tx: Queryable, made: { workspaceId: string; apiKey: string; subAccount: string; role: string; fingerprint: string }
): Promise<string | null> {
  const request = await tx.one<ApiUserRequest>(
    `select * from api_user_requests
     where workspace_id = $1 and key_fingerprint = $2 and sub_account = $3 and role = $4 and api_key is null and withdrawn_at is null
     order by created_at limit 1 for update`, [made.workspaceId, made.fingerprint, made.subAccount, made.role])
  if (!request) return null
  // Of a person who has left the workspace meanwhile it is nobody's own.
  await tx.query(
    `update api_users set label = $2, ip_allow_list = $3, rate_limit = coalesce(rate_limit, $4),
       person_id = (select person_id from memberships where workspace_id = $6 and person_id = $5)
     where api_key = $1`,
    [made.apiKey, request.label, request.ip_allow_list, request.rate_limit, request.person_id, made.workspaceId])
  await tx.query('update api_user_requests set api_key = $2 where id = $1', [request.id, made.apiKey])
  return request.id
}
