import { AuthError, parsePublicKey } from '@custody/request-auth'
import { OperatorError, type Command } from './command.ts'
import { ensureWorkspace, readName } from './workspaces.ts'

/** Makes an API user, and its workspace and sub-account where they do not exist. */
export const createApiUser: Command = async (services, input) => {
  const workspaceName = readName(input['workspace'], 'workspace')
  const subAccountName = readName(input['sub_account'], 'sub-account')
  const role = input['role']
  if (role !== 'full' && role !== 'read-only') throw new OperatorError('--role: must be full or read-only')
  const rateLimit = input['rate_limit'] === undefined ? null : Number(input['rate_limit'])
  if (rateLimit !== null && (!Number.isInteger(rateLimit) || rateLimit < 1 || rateLimit > 10_000_000)) throw new OperatorError('--rate-limit: must be an integer from 1 to 10000000')
  const pem = String(input['public_key_pem'] ?? '').trim()
  try {
    parsePublicKey(pem)
  } catch (error) {
    if (error instanceof AuthError) throw new OperatorError(`--public-key: ${error.message}`)
    throw error
  }
  return services.database.transaction(async (tx) => {
    const workspace = await ensureWorkspace(services, tx, workspaceName)
    await tx.query(
      `insert into sub_accounts (workspace_id, name, path_index) select $1, $2, coalesce(max(path_index), 0) + 1 from sub_accounts where workspace_id = $1
       on conflict (workspace_id, name) do nothing`, [workspace, subAccountName])
    const sub = await tx.one<{ id: string; path_index: number }>('select id, path_index from sub_accounts where workspace_id = $1 and name = $2', [workspace, subAccountName]) as { id: string; path_index: number }
    const apiKey = services.environment.uuid()
    await tx.query('insert into api_users (api_key, sub_account_id, role, public_key_pem, rate_limit) values ($1, $2, $3, $4, $5)', [apiKey, sub.id, role, pem, rateLimit])
    return { api_key: apiKey, workspace: workspaceName, sub_account: subAccountName, sub_account_index: sub.path_index, role }
  })
}

export const listApiUsers: Command = async (services, input) => {
  const rows = await services.database.query<Record<string, unknown>>(
    `select u.api_key, w.name workspace, s.name sub_account, s.path_index sub_account_index, u.role, u.rate_limit, u.created_at, u.revoked_at
     from api_users u join sub_accounts s on s.id = u.sub_account_id join workspaces w on w.id = s.workspace_id
     where $1::text is null or w.name = $1 order by u.created_at`, [input['workspace'] ?? null])
  return { api_users: rows }
}

export const revokeApiUser: Command = async (services, input) => {
  const row = await services.database.one<{ api_key: string }>(
    `update api_users set revoked_at = coalesce(revoked_at, now()) where api_key::text = $1 returning api_key`, [String(input['api_key'] ?? '')])
  if (!row) throw new OperatorError(`--api-key: there is no API user ${String(input['api_key'] ?? '')}`)
  services.callers.forget()
  return { api_key: row.api_key, revoked: true }
}


/** What the nodes need to enrol an API user again, for instance one that was away when it was made. */
export const enrolmentOf: Command = async (services, input) => {
  const row = await services.database.one<Record<string, unknown>>(
    `select u.api_key, u.public_key_pem, u.role, w.name workspace, s.path_index sub_account, u.revoked_at
     from api_users u join sub_accounts s on s.id = u.sub_account_id join workspaces w on w.id = s.workspace_id where u.api_key::text = $1`, [String(input['api_key'] ?? '')])
  if (!row) throw new OperatorError(`--api-key: there is no API user ${String(input['api_key'] ?? '')}`)
  if (row['revoked_at'] !== null) throw new OperatorError('--api-key: the API user is revoked')
  const { revoked_at: _, ...enrolment } = row
  return enrolment
}
