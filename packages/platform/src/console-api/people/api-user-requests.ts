import type { ApiRole } from '@custody/request-auth/roles'
import type { Queryable } from '../../core/database/pool.ts'

/** A request from the control panel for an API user, which an operator has to create. */
export interface ApiUserRequest {
  id: string
  sub_account: string
  role: ApiRole
  public_key_pem: string
  key_fingerprint: string
  label: string | null
  rate_limit: number | null
  ip_allow_list: string[]
  person_id: string | null
  created_at: Date
}

/**
 * Marks a request as fulfilled and creates the API user with the request's label, rate limit,
 * addresses and owner. A rate limit that the operator entered takes precedence. The operator must
 * name the request: every member of the workspace may make a request with a public key that
 * another person uses, so the key alone does not identify the request.
 * @returns false if no open request has this ID, key, role and sub-account
 */
export async function fulfilRequest(
  tx: Queryable,
  id: string,
  made: {
    workspaceId: string
    apiKey: string
    subAccount: string
    role: string
    fingerprint: string
  },
): Promise<boolean> {
  const request = await tx.one<ApiUserRequest>(
    `select * from api_user_requests
     where id::text = $5 and workspace_id = $1 and key_fingerprint = $2 and sub_account = $3
       and role = $4 and api_key is null
       and withdrawn_at is null
     for update`,
    [made.workspaceId, made.fingerprint, made.subAccount, made.role, id],
  )
  if (!request) return false
  // A person who has left the workspace since the request owns nothing in it.
  await tx.query(
    `update api_users set label = $2, ip_allow_list = $3, rate_limit = coalesce(rate_limit, $4),
       person_id = (select person_id from memberships where workspace_id = $6 and person_id = $5)
     where api_key = $1`,
    [
      made.apiKey,
      request.label,
      request.ip_allow_list,
      request.rate_limit,
      request.person_id,
      made.workspaceId,
    ],
  )
  await tx.query('update api_user_requests set api_key = $2 where id = $1', [
    request.id,
    made.apiKey,
  ])
  return true
}
