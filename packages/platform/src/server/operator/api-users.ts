import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Callers } from '../../core/http/authentication/callers.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { OperatorError, type Command } from './command.ts'
import { readApiKey, readEnrolment } from './enrol.ts'
import { fulfilRequest } from '../../console-api/people/api-user-requests.ts'
import { OPERATOR, writeAudit } from '../../console-api/people/audit-log.ts'
import { ensureWorkspace } from '../../custody/prepaid-fee/ensure-workspace.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'prepaidTiers'>
  environment: Environment
  database: Database
  callers: Callers
}

type EnrolledUser = ReturnType<typeof readEnrolment>

interface SubAccount {
  id: string
  name: string
  path_index: number
}

/**
 * Reads the limit of requests per minute; null if it is not set.
 * @throws OperatorError if it is not an integer from 1 to 10,000,000
 */
function readRateLimit(value: unknown): number | null {
  const rateLimit = value === undefined ? null : Number(value)
  if (
    rateLimit !== null &&
    (!Number.isInteger(rateLimit) || rateLimit < 1 || rateLimit > 10_000_000)
  ) {
    throw new OperatorError('--rate-limit: must be an integer from 1 to 10000000')
  }
  return rateLimit
}

/**
 * Creates the user's sub-account if it does not exist.
 * @throws OperatorError if its name or its index belongs to another sub-account
 */
async function ensureSubAccount(
  tx: Queryable,
  workspace: string,
  { subAccount, index }: EnrolledUser,
): Promise<SubAccount> {
  await tx.query(
    `insert into sub_accounts (workspace_id, name, path_index) values ($1, $2, $3)
      on conflict do nothing`,
    [workspace, subAccount, index],
  )
  const subs = await tx.query<SubAccount>(
    `select id, name, path_index from sub_accounts
       where workspace_id = $1 and (name = $2 or path_index = $3)`,
    [workspace, subAccount, index],
  )
  const sub = subs.find((each) => each.name === subAccount && each.path_index === index)
  if (!sub) {
    const existing = subs.map((each) => `${each.name} has ${each.path_index}`).join(' and ')
    throw new OperatorError(
      `the signer nodes have the sub-account ${subAccount} under index ${index}, but in this database ${existing}`,
    )
  }
  return sub
}

/**
 * Inserts an API user.
 * @returns false if it already exists with the same values
 * @throws OperatorError if it exists with other values, or is revoked
 */
async function insertApiUser(
  tx: Queryable,
  sub: SubAccount,
  { apiKey, role, publicKeyPem }: EnrolledUser,
  rateLimit: number | null,
): Promise<boolean> {
  const inserted = await tx.one(
    `insert into api_users (api_key, sub_account_id, role, public_key_pem, rate_limit)
        values ($1, $2, $3, $4, $5)
        on conflict do nothing returning api_key`,
    [apiKey, sub.id, role, publicKeyPem, rateLimit],
  )
  const same = await tx.one(
    `select 1 from api_users where api_key = $1 and sub_account_id = $2 and role = $3
        and public_key_pem = $4
        and revoked_at is null`,
    [apiKey, sub.id, role, publicKeyPem],
  )
  if (!same)
    throw new OperatorError(
      `--api-key: ${apiKey} already exists with other values, or is revoked; use another API key`,
    )
  return inserted !== undefined
}

/**
 * Fulfils the control-panel request of a new API user, if it has one, and writes the audit log.
 * @throws OperatorError if the request is not open or was made for other values
 */
async function recordNewUser(
  tx: Queryable,
  workspace: string,
  user: EnrolledUser,
  request: string | null,
): Promise<void> {
  if (
    request !== null &&
    !(await fulfilRequest(tx, request, {
      workspaceId: workspace,
      ...user,
      apiKey: user.apiKey,
    }))
  ) {
    throw new OperatorError(
      `--request: workspace ${user.workspace} has no open request ${request} for this public key, role and sub-account; compare them with the request in the control panel`,
    )
  }
  await writeAudit(tx, workspace, OPERATOR, {
    action: 'api_user.created',
    object: user.apiKey,
    details: {
      sub_account: user.subAccount,
      role: user.role,
      key_fingerprint: user.fingerprint,
      request,
    },
  })
}

/**
 * Checks that an existing API user was created for this request.
 * @throws OperatorError if it was not
 */
async function assertCreatedFor(
  tx: Queryable,
  request: string | null,
  { apiKey }: EnrolledUser,
): Promise<void> {
  if (
    request !== null &&
    !(await tx.one('select 1 from api_user_requests where id::text = $1 and api_key = $2', [
      request,
      apiKey,
    ]))
  ) {
    throw new OperatorError(
      `--request: API key ${apiKey} already exists, and was not created for this request; omit --api-key to create another one`,
    )
  }
}

/**
 * Stores an API user, and creates its workspace and sub-account if they do not exist. The operator
 * passes the API key and the index, which the signer nodes assigned. A repeated command changes
 * nothing. Without the ID of a control-panel request, the API user has no label and no owner.
 */
export const createApiUser: Command<
  Pick<Services, 'settings' | 'environment' | 'database'>
> = async (services, input) => {
  const user = readEnrolment({
    workspace: String(input['workspace'] ?? ''),
    subAccount: String(input['sub_account'] ?? ''),
    role: String(input['role'] ?? ''),
    publicKeyPem: String(input['public_key_pem'] ?? ''),
    apiKey: readApiKey(input['api_key']),
    index: Number(input['sub_account_index']),
  })
  const rateLimit = readRateLimit(input['rate_limit'])
  const request = input['request'] === undefined ? null : String(input['request'])
  return services.database.transaction(async (tx) => {
    const workspace = await ensureWorkspace(services, tx, user.workspace)
    const sub = await ensureSubAccount(tx, workspace, user)
    const isNew = await insertApiUser(tx, sub, user, rateLimit)
    if (isNew) await recordNewUser(tx, workspace, user, request)
    else await assertCreatedFor(tx, request, user)
    return {
      api_key: user.apiKey,
      workspace: user.workspace,
      sub_account: user.subAccount,
      sub_account_index: sub.path_index,
      role: user.role,
    }
  })
}

export const listApiUsers: Command<Pick<Services, 'database'>> = async (services, input) => {
  const rows = await services.database.query<Record<string, unknown>>(
    `select u.api_key, w.name workspace, s.name sub_account, s.path_index sub_account_index, u.role,
      u.rate_limit, u.created_at,
      u.revoked_at
     from api_users u join sub_accounts s on s.id = u.sub_account_id
       join workspaces w on w.id = s.workspace_id
     where $1::text is null or w.name = $1 order by u.created_at`,
    [input['workspace'] ?? null],
  )
  return { api_users: rows }
}

export const revokeApiUser: Command<Pick<Services, 'database' | 'callers'>> = async (
  services,
  input,
) => {
  const row = await services.database.transaction(async (tx) => {
    const before = await tx.one<{ api_key: string; workspace_id: string; revoked_at: Date | null }>(
      `select u.api_key, s.workspace_id, u.revoked_at from api_users u
        join sub_accounts s on s.id = u.sub_account_id
       where u.api_key::text = $1 for update of u`,
      [String(input['api_key'] ?? '')],
    )
    if (!before || before.revoked_at) return before
    await tx.query('update api_users set revoked_at = $2 where api_key = $1', [
      before.api_key,
      tx.now(),
    ])
    await writeAudit(tx, before.workspace_id, OPERATOR, {
      action: 'api_user.revoked',
      object: before.api_key,
    })
    return before
  })
  if (!row)
    throw new OperatorError(`--api-key: API user ${String(input['api_key'] ?? '')} does not exist`)
  services.callers.forget()
  return { api_key: row.api_key, revoked: true }
}
