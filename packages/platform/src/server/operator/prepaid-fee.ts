import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import { ChainError } from '@custody/chains'
import { stringifyJson } from '@custody/request-auth'
import { accountOf } from '../../custody/prepaid-fee/account.ts'
import { balanceOfRefusal, tierOfWorkspace } from '../../custody/prepaid-fee/fees.ts'
import { tierNamed } from '../../core/settings/tiers.ts'
import { parseUsd, showUsd } from '../../core/decimals.ts'
import { OPERATOR, writeAudit } from '../../console-api/people/audit-log.ts'
import { OperatorError, type Command } from './command.ts'
import { ensureWorkspace } from '../../custody/prepaid-fee/ensure-workspace.ts'
import { readName } from './workspaces.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'prepaidTiers'>
  environment: Environment
  database: Database
}

const AMOUNT_MAX = 10n ** 18n

function readAmount(value: unknown): bigint {
  const [, sign, digits] = /^([+-]?)(\d{1,15}(?:\.\d{1,30})?)$/.exec(String(value ?? '')) ?? []
  if (digits === undefined) {
    throw new OperatorError(
      '--amount: must be a USD amount such as 250, 12.50 or (with an equals sign) --amount=-12.5',
    )
  }
  let amount: bigint
  try {
    amount = parseUsd(digits)
  } catch (error) {
    if (error instanceof ChainError) throw new OperatorError(`--amount: ${error.message}`)
    throw error
  }
  if (amount === 0n || amount > AMOUNT_MAX)
    throw new OperatorError('--amount: must not be zero, nor more than 1000000000000')
  return sign === '-' ? -amount : amount
}

/**
 * Adds an amount to a workspace's prepaid-fee account, or deducts one; the balance never becomes
 * negative.
 */
export const adjustPrepaidFee: Command<Services> = async (services, input) => {
  const name = readName(input['workspace'], 'workspace')
  const amount = readAmount(input['amount'])
  try {
    const balance = await services.database.transaction(async (tx) => {
      const workspace = await ensureWorkspace(services, tx, name)
      const { least } = tierNamed(
        services.settings.prepaidTiers,
        await tierOfWorkspace(tx, workspace),
      )
      const row = await tx.one<{ balance: string }>(
        'select prepaid_adjust($1, $2, $3, $4)::text balance',
        [workspace, services.environment.uuid(), amount.toString(), least.toString()],
      )
      const adjusted = BigInt(row?.balance ?? '0')
      await writeAudit(tx, workspace, OPERATOR, {
        action: 'prepaid_fee.adjusted',
        details: { amount: showUsd(amount), balance: showUsd(adjusted) },
      })
      return adjusted
    })
    return { workspace: name, balance: Number(showUsd(balance)), currency: 'USD' }
  } catch (error) {
    const held = balanceOfRefusal(error)
    if (held === null) throw error
    throw new OperatorError(
      `--amount: the account has ${showUsd(held)} USD in addition to the reserved amount, so ${showUsd(amount)} would make it negative`,
    )
  }
}

export const showPrepaidFee: Command<Services> = async (services, input) => {
  const row = await services.database.one<{ id: string; name: string }>(
    'select id, name from workspaces where name = $1',
    [String(input['workspace'] ?? '')],
  )
  if (!row)
    throw new OperatorError(
      `--workspace: workspace ${String(input['workspace'] ?? '')} does not exist`,
    )
  return {
    workspace: row.name,
    ...(JSON.parse(stringifyJson(await accountOf(services, row.id))) as Record<string, unknown>),
  }
}
