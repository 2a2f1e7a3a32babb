import type { Database } from '../../../core/database/pool.ts'
import type { Environment } from '../../../core/environment.ts'
import { pastForwards, pastTransfers } from '../../../custody/policies/past-acts.ts'
import { standingRules } from '../../../custody/policies/standing-rules.ts'
import { argument, OperatorError, type Command } from '../command.ts'

interface Services {
  database: Database
  environment: Environment
}

const LAST_MAX = 10_000
const DAY_MS = 86_400_000

/** Reads a whole number. @throws OperatorError */
function numberOf(input: Record<string, unknown>, name: string, max: number): number | null {
  const text = argument(input, name)
  if (text === null) return null
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (value < 1 || value > max)
    throw new OperatorError(`--${name}: must be a whole number from 1 to ${max}`)
  return value
}

/**
 * Returns the last transfers and forwards of a workspace, newest first, and its API keys, assets and standing rules,
 * from which policy documents are simulated and drafted.
 */
export const policyHistory: Command<Services> = async ({ database, environment }, input) => {
  const name = argument(input, 'workspace') ?? ''
  const workspace = await database.one<{ id: string }>(
    'select id from workspaces where name = $1',
    [name],
  )
  if (!workspace) throw new OperatorError(`--workspace: there is no workspace ${name}`)
  const last = numberOf(input, 'last', LAST_MAX) ?? LAST_MAX
  const days = numberOf(input, 'days', 365)
  const keys = await database.query<{ api_key: string }>(
    `select u.api_key from api_users u join sub_accounts s on s.id = u.sub_account_id
     where s.workspace_id = $1 and u.revoked_at is null and u.role = 'full' order by u.api_key`,
    [workspace.id],
  )
  const wallets = await database.query<{ asset: string }>(
    'select distinct asset from wallets where workspace_id = $1 order by asset',
    [workspace.id],
  )
  const limits =
    days === null ? { last } : { last, since: new Date(environment.now() - days * DAY_MS) }
  return {
    transfers: await pastTransfers(database, workspace.id, limits),
    forwarded: await pastForwards(database, workspace.id, limits),
    api_keys: keys.map(({ api_key: key }) => key),
    assets: wallets.map(({ asset }) => asset),
    rules: await standingRules(database, workspace.id),
  }
}
