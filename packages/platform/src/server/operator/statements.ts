import type { Registry } from '@custody/chains'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { ApiError } from '../../core/errors.ts'
import { findAccounts, OWNERS } from '../../custody/statements/accounts.ts'
import { statementLines } from '../../custody/statements/export-statement.ts'
import { periodOf } from '../../custody/statements/statement.ts'
import { argument, OperatorError, type Command } from './command.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
}

/** A date, or a time in UTC. */
const TIME = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\dZ)?$/

/**
 * Returns a time in seconds since the Unix epoch; undefined if it is missing.
 * @throws OperatorError that names the option
 */
function timeOf(input: Record<string, unknown>, name: string): number | undefined {
  const text = argument(input, name)
  if (text === null) return undefined
  const at = TIME.test(text) ? Date.parse(text) : Number.NaN
  // A day that does not exist, such as 31 February, would be another one.
  if (Number.isNaN(at) || new Date(at).toISOString().slice(0, 10) !== text.slice(0, 10) || at < 0)
    throw new OperatorError(
      `--${name}: must be a date like 2026-01-31, or a time in UTC like 2026-01-31T12:00:00Z`,
    )
  return at / 1000
}

/** Returns a statement as CSV, as `GET /dac/v1/statement/export` does. */
export const exportStatement: Command<Services> = async (services, input) => {
  const [workspace, subAccount, asset, account] = [
    argument(input, 'workspace'),
    argument(input, 'sub_account'),
    argument(input, 'asset') ?? undefined,
    OWNERS.find((each) => each === (argument(input, 'account') ?? 'wallet')),
  ]
  if (account === undefined)
    throw new OperatorError(`--account: must be one of ${OWNERS.join(', ')}`)
  if (account === 'wallet' && subAccount === null)
    throw new OperatorError('--sub-account: is required for the statement of a wallet')
  const owner = await services.database.one<{ workspace: string; sub_account: string | null }>(
    `select w.id workspace, s.id sub_account from workspaces w
      left join sub_accounts s on s.workspace_id = w.id and s.name = $2 where w.name = $1`,
    [workspace, subAccount],
  )
  if (!owner) throw new OperatorError(`--workspace: there is no workspace ${workspace}`)
  if (subAccount !== null && owner.sub_account === null)
    throw new OperatorError(`--sub-account: ${workspace} has no sub-account ${subAccount}`)
  const caller = { workspaceId: owner.workspace, subAccountId: owner.sub_account ?? '' }
  try {
    const period = periodOf(services, { from: timeOf(input, 'from'), to: timeOf(input, 'to') })
    const accounts = await findAccounts(services, caller, { asset, account })
    const { signal } = new AbortController()
    let text = ''
    for await (const lines of statementLines(services, { accounts, period, bom: true }, signal))
      text += lines
    return { asset: asset ?? null, account, accounts: accounts.length, text }
  } catch (error) {
    if (error instanceof ApiError) throw new OperatorError(`--${error.message}`)
    throw error
  }
}
