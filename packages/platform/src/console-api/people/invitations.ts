import type { Queryable, Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import { mayManage, type Role } from './roles.ts'
import { hashOfToken, newToken } from './token.ts'

interface Services {
  environment: Environment
  database: Database
}

/** Lifetime of a link, in milliseconds. */
const LIFE_MS = 7 * 86_400_000
/**
 * Lifetime in milliseconds of a link that replaces a person's factors, and of the first owner's
 * link, which no owner can withdraw.
 */
const SHORT_LIFE_MS = 3_600_000

export interface Invitation {
  id: string
  workspace_id: string | null
  workspace: string | null
  role: Role
  email: string | null
  person_id: string | null
  expires_at: Date
  accepted_at: Date | null
  revoked_at: Date | null
  /** Person who made the invitation; null: the operator. */
  invited_by: string | null
  /** Current role in the workspace of the person who made the invitation; null: none. */
  inviter_role: Role | null
}

/**
 * Purpose of an invitation. `workspace`: null for the first owner. `person`: the person whose
 * factors are replaced.
 */
export interface InvitationRequest {
  workspaceId: string | null
  role: Role
  email: string | null
  person: string | null
  by: string | null
}

/**
 * Creates an invitation.
 * @returns the token of its link, which is not stored
 */
export async function invite(
  { environment }: Pick<Services, 'environment'>,
  tx: Queryable,
  { workspaceId, role, email, person, by }: InvitationRequest,
): Promise<{ id: string; token: string; expiresAt: Date }> {
  const id = environment.uuid()
  const token = newToken(environment)
  const now = tx.now()
  const expiresAt = new Date(
    now.getTime() + (person !== null || workspaceId === null ? SHORT_LIFE_MS : LIFE_MS),
  )
  await tx.query(
    `insert into invitations (id, token_hash, workspace_id, role, email, person_id, invited_by,
      created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [id, hashOfToken(token), workspaceId, role, email, person, by, now, expiresAt],
  )
  return { id, token, expiresAt }
}

const COLUMNS = `i.id, i.workspace_id, w.name workspace, i.role, i.email, i.person_id, i.expires_at, i.accepted_at, i.revoked_at,
  i.invited_by, m.role inviter_role
  from invitations i left join workspaces w on w.id = i.workspace_id
  left join memberships m on m.workspace_id = i.workspace_id and m.person_id = i.invited_by`

/**
 * Returns the invitation of a link.
 * @throws ApiError `NOT_FOUND`, or `INVITATION_CLOSED` if it was accepted, was revoked or has
 *   expired
 */
export async function openInvitation(
  tx: Queryable,
  by: { token: string } | { id: string },
  lock = false,
): Promise<Invitation> {
  const [column, value] = 'token' in by ? ['token_hash', hashOfToken(by.token)] : ['id', by.id]
  const match = await tx.one<Invitation>(
    `select ${COLUMNS} where i.${column} = $1 ${lock ? 'for update of i' : ''}`,
    [value],
  )
  if (!match) throw new ApiError('NOT_FOUND', 'this invitation does not exist')
  // A person who was removed or demoted cannot grant roles any more, including by links that they
  // made earlier.
  const mayGive =
    match.invited_by === null ||
    (match.inviter_role !== null && mayManage(match.inviter_role, match.role))
  if (match.accepted_at || match.revoked_at || match.expires_at <= tx.now() || !mayGive) {
    throw new ApiError(
      'INVITATION_CLOSED',
      'the invitation was accepted, was withdrawn or has expired: ask for another',
    )
  }
  return match
}

/**
 * Returns the origin of the control panel. It must have a host name, because passkeys cannot be
 * bound to an IP address.
 */
export const consoleOrigin = ({ publicUrl }: Pick<Settings, 'publicUrl'>, port: number): string =>
  publicUrl?.startsWith('https://') ? new URL(publicUrl).origin : `http://localhost:${port}`

/**
 * Returns the URL of the link. The token is in its fragment, which browsers send to no server, so it is
 * in no log of a proxy.
 */
export const linkOf = (origin: string, token: string): string => `${origin}/console/join#${token}`

/**
 * Withdraws the open invitations to a workspace that a person made, and those to their own email
 * address, because a removed or demoted person could otherwise return through one of them.
 * @returns the IDs of the invitations
 */
export async function withdrawInvitationsOf(
  tx: Queryable,
  workspaceId: string,
  person: { id: string; email: string },
): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    `update invitations set revoked_at = $4 where workspace_id = $1
       and (invited_by = $2 or email = $3)
       and accepted_at is null and revoked_at is null returning id`,
    [workspaceId, person.id, person.email, tx.now()],
  )
  return rows.map(({ id }) => id)
}

/** Withdraws the open links that replace a person's factors. */
export const withdrawResets = (tx: Queryable, personId: string): Promise<unknown> =>
  tx.query(
    `update invitations set revoked_at = $2 where person_id = $1 and accepted_at is null
      and revoked_at is null`,
    [personId, tx.now()],
  )

/** Withdraws the unused links for the first owner. */
export const withdrawFirst = (tx: Queryable): Promise<unknown> =>
  tx.query(
    `update invitations set revoked_at = $1 where workspace_id is null and person_id is null
      and accepted_at is null and revoked_at is null`,
    [tx.now()],
  )

export const hasOwner = async (tx: Queryable): Promise<boolean> =>
  (await tx.one(`select 1 from memberships where role = 'owner' limit 1`)) !== undefined

/**
 * Creates a new invitation for the first owner, in place of earlier ones, if no workspace has an
 * owner yet.
 * @returns null if there is an owner
 */
export async function firstOwnerInvitation(
  services: Services,
): Promise<{ token: string; expiresAt: Date } | null> {
  return services.database.transaction(async (tx) => {
    if (await hasOwner(tx)) return null
    await withdrawFirst(tx)
    return invite(services, tx, {
      workspaceId: null,
      role: 'owner',
      email: null,
      person: null,
      by: null,
    })
  })
}
