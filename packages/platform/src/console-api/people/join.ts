import type { Queryable, Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { DatabaseHold } from '../../core/engine/database-hold.ts'
import type { People } from './people.ts'
import { ensureWorkspace } from '../../custody/prepaid-fee/ensure-workspace.ts'
import { writeAudit, writeAuditEverywhere, type Actor } from './audit-log.ts'
import {
  hasOwner,
  openInvitation,
  withdrawFirst,
  withdrawResets,
  type Invitation,
} from './invitations.ts'
import { includesRole, type Role } from './roles.ts'
import type { From } from './sessions.ts'
import type { Joining } from './steps.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'prepaidTiers'>
  environment: Environment
  database: Database
  hold: DatabaseHold
  people: People
}

/**
 * Validates the details that an invited person enters, before they create a factor.
 * @throws ApiError that names the field
 */
export async function readJoining(
  services: Pick<Services, 'environment' | 'database' | 'hold'>,
  token: string,
  said: { email: string; name: string; workspace?: string | undefined },
): Promise<Joining> {
  const { database, environment } = services
  const invitation = await openInvitation(database, { token })
  if (invitation.email !== null && invitation.email !== said.email) {
    throw new ApiError('INVALID_REQUEST', 'email: the invitation is for another e-mail address', {
      field: 'email',
    })
  }
  const workspace = readWorkspace(services, invitation, said.workspace)
  if (
    invitation.person_id === null &&
    (await database.one('select 1 from people where email = $1', [said.email]))
  )
    throw emailTaken()
  return {
    invitation: invitation.id,
    person: invitation.person_id ?? environment.uuid(),
    email: said.email,
    name: said.name,
    workspace,
  }
}

const emailTaken = () =>
  new ApiError(
    'INVALID_REQUEST',
    'email: already has an account: sign in with it, and open this link again',
    { field: 'email' },
  )

/**
 * Returns the name that the first owner chooses for their workspace; null if the invitation is to
 * an existing workspace.
 */
export function readWorkspace(
  services: Pick<Services, 'hold'>,
  invitation: Invitation,
  workspace: string | undefined,
): string | null {
  const isFirst = invitation.workspace_id === null && invitation.person_id === null
  if (!isFirst) {
    if (workspace === undefined) return null
    throw new ApiError('INVALID_REQUEST', 'workspace: can only be set by the first owner', {
      field: 'workspace',
    })
  }
  if (workspace === undefined)
    throw new ApiError('INVALID_REQUEST', 'workspace: is required', { field: 'workspace' })
  // A workspace created in an outdated database would get the keys of an existing workspace.
  services.hold.assertOpen()
  return workspace
}

/**
 * Creates the person who joins, or removes all factors of an existing person who replaces them; the
 * new factors are added afterwards.
 */
export async function makePerson(
  services: Pick<Services, 'people'>,
  tx: Queryable,
  joining: Joining,
): Promise<void> {
  const invitation = await openInvitation(tx, { id: joining.invitation }, true)
  if (invitation.person_id !== null) {
    await tx.query(
      'update people set password_hash = null, totp_secret = null, totp_step = null where id = $1',
      [joining.person],
    )
    await tx.query('delete from passkeys where person_id = $1', [joining.person])
    await tx.query('delete from recovery_codes where person_id = $1', [joining.person])
    await services.people.sessions.end(tx, joining.person)
    return
  }
  const made = await tx.one(
    `insert into people (id, email, name, created_at) values ($1, $2, $3, $4)
      on conflict (email) do nothing returning id`,
    [joining.person, joining.email, joining.name, tx.now()],
  )
  if (!made) throw emailTaken()
}

/**
 * Accepts an invitation for an existing person, in the transaction that verifies their identity.
 */
export async function acceptInvitation(
  services: Pick<Services, 'settings' | 'environment'>,
  tx: Queryable,
  { id, workspace }: { id: string; workspace: string | null },
  person: { id: string; email: string },
  from: From,
): Promise<void> {
  const actor: Actor = {
    type: 'person',
    id: person.id,
    name: person.email,
    session: null,
    ip: from.ip,
  }
  const invitation = await openInvitation(tx, { id }, true)
  await tx.query('update invitations set accepted_at = $2 where id = $1', [id, tx.now()])
  if (invitation.person_id !== null) {
    await withdrawResets(tx, person.id)
    return writeAuditEverywhere(tx, person.id, actor, {
      action: 'person.reset',
      object: person.id,
      details: { invitation: id },
    })
  }
  if (invitation.workspace_id === null) {
    // Several people may have a link for the first owner. Only the first one to use it becomes
    // owner.
    if (await hasOwner(tx))
      throw new ApiError(
        'INVITATION_CLOSED',
        'there is already an owner: ask them for an invitation',
      )
    await withdrawFirst(tx)
  }
  const workspaceId =
    invitation.workspace_id ?? (await ensureWorkspace(services, tx, workspace as string))
  const before = await tx.one<{ role: Role }>(
    'select role from memberships where person_id = $1 and workspace_id = $2 for update',
    [person.id, workspaceId],
  )
  // A link with a lower role does not reduce the person's role.
  const role = before && includesRole(before.role, invitation.role) ? before.role : invitation.role
  await tx.query(
    `insert into memberships (person_id, workspace_id, role, created_at) values ($1, $2, $3, $4)
     on conflict (person_id, workspace_id) do update set role = excluded.role`,
    [person.id, workspaceId, role, tx.now()],
  )
  await writeAudit(tx, workspaceId, actor, {
    action: 'person.joined',
    object: person.id,
    details: { role, invitation: id },
  })
}
