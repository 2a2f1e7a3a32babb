import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import type { People } from '../people/people.ts'
import { writeAudit, type AuditAction } from '../people/audit-log.ts'
import type { Visitor } from '../people/endpoint.ts'
import { mayManage, type Role } from '../people/roles.ts'
import { actorOf } from '../people/sessions.ts'

interface Services {
  database: Database
  people: People
}

/** Path prefix of a workspace's endpoints. */
export const WORKSPACE = '/console/api/workspaces/{workspace}'
/** Parameters of paths with this prefix. */
export const workspaceParams = { workspace: z.string() }

/**
 * Changes something in a workspace and records it in the audit log, in the same transaction.
 * @param deed returns the action to record
 */
export async function changeWorkspace<T>(
  { database, people }: Services,
  { session, from, member }: Visitor,
  change: (tx: Queryable) => Promise<T>,
  deed: (done: T) => AuditAction,
): Promise<T> {
  const result = await database.transaction(async (tx) => {
    const done = await change(tx)
    await writeAudit(tx, member.workspaceId, actorOf(session, from), deed(done))
    return done
  })
  people.sessions.forget()
  return result
}

/**
 * Checks that the visitor may grant or revoke a role.
 * @throws ApiError `ROLE_REQUIRED` if they may not
 */
export function assertMayManage({ member }: Visitor, role: Role): void {
  if (mayManage(member.role, role)) return
  throw new ApiError(
    'ROLE_REQUIRED',
    `an ${member.role} can assign and remove only roles below their own; only an owner can assign ${role}`,
  )
}
