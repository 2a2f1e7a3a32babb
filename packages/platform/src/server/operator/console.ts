import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { ensureWorkspace } from '../../custody/prepaid-fee/ensure-workspace.ts'
import {
  exportAudit,
  OPERATOR,
  writeAudit,
  writeAuditEverywhere,
} from '../../console-api/people/audit-log.ts'
import { verifyAuditLogs } from '../../console-api/people/verify-audit-logs.ts'
import { lockPerson } from '../../console-api/people/factors.ts'
import {
  consoleOrigin,
  invite,
  linkOf,
  withdrawResets,
} from '../../console-api/people/invitations.ts'
import { ROLES, type Role } from '../../console-api/people/roles.ts'
import { email as emailShape } from '../../console-api/people/schemas.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Checkout } from '../../commerce/invoices/present.ts'
import { argument, OperatorError, type Command } from './command.ts'
import { readName } from './workspaces.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'port' | 'prepaidTiers' | 'publicUrl'>
  environment: Environment
  database: Database
  checkout: Checkout
}

function readEmail(text: string | null): string | null {
  if (text === null) return null
  const read = emailShape.safeParse(text)
  if (!read.success) throw new OperatorError('--email: must be an e-mail address')
  return read.data
}

const linkFor = ({ settings, checkout }: Services, token: string): string =>
  linkOf(consoleOrigin(settings, Number(new URL(checkout.base).port || settings.port)), token)

/**
 * Creates a link by which a person joins a workspace's control panel, with any role. It also works
 * if no owner can sign in any more.
 */
export const inviteToConsole: Command<Services> = async (services, input) => {
  const workspace = readName(input['workspace'], 'workspace')
  const role = ROLES.find((each) => each === input['role'])
  if (!role) throw new OperatorError(`--role: must be one of ${ROLES.join(', ')}`)
  const email = readEmail(argument(input, 'email'))
  const { token, expiresAt } = await services.database.transaction(async (tx) => {
    const workspaceId = await ensureWorkspace(services, tx, workspace)
    const made = await invite(services, tx, { workspaceId, role, email, person: null, by: null })
    await writeAudit(tx, workspaceId, OPERATOR, {
      action: 'invitation.created',
      object: made.id,
      details: { role, email },
    })
    return made
  })
  return { workspace, role, link: linkFor(services, token), expires_at: expiresAt.toISOString() }
}

/**
 * Creates a link by which a person who has lost every factor sets new ones, and withdraws earlier
 * links. The old factors remain valid until the link is used.
 */
export const resetPerson: Command<Services> = async (services, input) => {
  const email = readEmail(argument(input, 'email'))
  const { token, expiresAt } = await services.database.transaction(async (tx) => {
    const person = await tx.one<{ id: string }>('select id from people where email = $1', [email])
    if (!person) throw new OperatorError('--email: no user of the control panel has this address')
    // Of two links that are created concurrently, the later commit withdraws the earlier link.
    await lockPerson(tx, person.id)
    await withdrawResets(tx, person.id)
    const made = await invite(services, tx, {
      workspaceId: null,
      role: 'viewer',
      email,
      person: person.id,
      by: null,
    })
    await writeAuditEverywhere(tx, person.id, OPERATOR, {
      action: 'person.reset_offered',
      object: person.id,
      details: { email },
    })
    return made
  })
  return { email, link: linkFor(services, token), expires_at: expiresAt.toISOString() }
}

/** Lists the users of the control panel. */
export const listConsolePeople: Command<Pick<Services, 'database'>> = async (
  { database },
  input,
) => ({
  people: await database.query<{
    email: string
    name: string
    workspace: string
    role: Role
    sessions: number
  }>(
    `select p.email, p.name, w.name workspace, m.role,
       (select count(*)::int from sessions s where s.person_id = p.id and s.ended_at is null
         and s.expires_at > $2) sessions
     from memberships m join people p on p.id = m.person_id
       join workspaces w on w.id = m.workspace_id
     where $1::text is null or w.name = $1 order by w.name, p.email`,
    [argument(input, 'workspace'), database.now()],
  ),
})

const headsShape = z
  .array(
    z.object({
      workspace: z.uuid(),
      name: z.string(),
      seq: z.int().min(0),
      hash: z.string().regex(/^[0-9a-f]{64}$/),
    }),
  )
  .optional()

/** Recomputes the chains of all audit logs in the database. */
export const verifyStoredLogs: Command<Pick<Services, 'database'>> = async (
  { database },
  input,
) => {
  const heads = headsShape.safeParse(input['heads'])
  if (!heads.success)
    throw new OperatorError('--heads: must be the JSON output of an earlier verification')
  return { ...(await verifyAuditLogs(database, heads.data)) }
}

const TEXT_MAX = 64 * 1024 * 1024

/** Exports a workspace's complete audit log, as the panel does. */
export const exportAuditLog: Command<Pick<Services, 'database'>> = async ({ database }, input) => {
  const workspace = readName(input['workspace'], 'workspace')
  const match = await database.one<{ id: string }>('select id from workspaces where name = $1', [
    workspace,
  ])
  if (!match) throw new ApiError('NOT_FOUND', `--workspace: workspace ${workspace} does not exist`)
  let text = ''
  for await (const part of exportAudit(database, match.id)) {
    text += part
    if (text.length > TEXT_MAX)
      throw new OperatorError(
        'the audit log is longer than 64 MiB: export it from the control panel',
      )
  }
  return { workspace, text }
}
