import { formatAmount, traitsOf, type Registry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import { sweepPolicyOf } from '../../custody/deposits/sweep-policy.ts'
import { MULTIPLE_DECIMALS } from '../../core/settings/sweep-rules.ts'
import { readDecimal, scopeNamed } from '../../core/settings/sweep-rules.ts'
import type { Settings } from '../../core/settings/settings.ts'
import { OPERATOR, writeAudit } from '../../console-api/people/audit-log.ts'
import type { Database, Queryable } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { OperatorError, type Command } from './command.ts'

interface Services {
  settings: Pick<Settings, 'sweep'>
  database: Database
  registry: Registry
  networks: Networks
}

const textOf = (input: Record<string, unknown>, name: string): string | undefined =>
  input[name] === undefined || input[name] === null ? undefined : String(input[name])

/**
 * Reads a decimal of an option. Null: `none`, which removes the setting, so that the next wider
 * scope applies.
 */
function decimalOf(
  input: Record<string, unknown>,
  name: string,
  decimals: number,
): string | null | undefined {
  const value = textOf(input, name)
  if (value === undefined) return undefined
  if (value === 'none') return null
  const read = readDecimal(value, decimals, `--${name.replaceAll('_', '-')}`)
  return read.toString()
}

interface Change {
  scope: string
  multiple: string | null | undefined
  min: string | null | undefined
}

/**
 * Changes when deposit addresses are swept, for all networks, one network or one asset. Waiting
 * sweeps are evaluated again.
 */
export const setSweep: Command<Services> = async (services, input) => {
  const [network, asset] = [textOf(input, 'network'), textOf(input, 'asset')]
  let change: Change
  try {
    const scope = scopeNamed(services.registry, {
      ...(network === undefined ? {} : { network }),
      ...(asset === undefined ? {} : { asset }),
    })
    if (asset === undefined && input['min_amount'] !== undefined && input['min_amount'] !== null) {
      throw new Error('--min-amount: requires --asset, because it is an amount of that asset')
    }
    change = {
      scope,
      multiple: decimalOf(input, 'cost_multiple', MULTIPLE_DECIMALS),
      min: decimalOf(
        input,
        'min_amount',
        asset === undefined ? 0 : (services.registry.asset(asset)?.decimals ?? 0),
      ),
    }
  } catch (error) {
    throw new OperatorError(reasonOf(error))
  }
  if (change.multiple === undefined && change.min === undefined) {
    throw new OperatorError('either --cost-multiple or --min-amount is required')
  }
  const multiple =
    typeof change.multiple === 'string'
      ? formatAmount(BigInt(change.multiple), MULTIPLE_DECIMALS)
      : change.multiple
  await services.database.transaction(async (tx) => {
    await writeSetting(tx, change, multiple)
    await tx.query(
      `update transactions set next_run_at = $1
     where kind = 'SWEEP' and status = 'pending' and plan ? 'waits' and lease_token is null`,
      [tx.now()],
    )
    // The setting applies to every workspace.
    const workspaces = await tx.query<{ id: string }>('select id from workspaces order by id')
    const details = { cost_multiple: multiple, min_amount: change.min }
    for (const { id } of workspaces)
      await writeAudit(tx, id, OPERATOR, {
        action: 'sweeps.changed',
        object: change.scope,
        details: Object.fromEntries(
          Object.entries(details).flatMap(([name, value]) =>
            value === undefined ? [] : [[name, value ?? 'none']],
          ),
        ),
      })
  })
  return { scope: change.scope, ...(await report(services)) }
}
/** Writes the setting of a scope. What is undefined stays unchanged; null removes it. */
async function writeSetting(
  tx: Queryable,
  { scope, min }: Change,
  multiple: string | null | undefined,
): Promise<void> {
  await tx.query(
    `insert into sweep_settings (scope, cost_multiple, min_amount) values ($1, $2, $4)
     on conflict (scope) do update set cost_multiple = case when $3 then excluded.cost_multiple
       else sweep_settings.cost_multiple end,
       min_amount = case when $5 then excluded.min_amount else sweep_settings.min_amount
         end, updated_at = $6`,
    [scope, multiple ?? null, multiple !== undefined, min ?? null, min !== undefined, tx.now()],
  )
}

export const showSweep: Command<Services> = async (services) => report(services)

/** Returns the effective setting for each swept asset, and the waiting sweeps. */
async function report(services: Services): Promise<Record<string, unknown>> {
  const assets = []
  for (const { network } of services.networks.all()) {
    if (traitsOf(network).deposits !== 'swept') continue
    for (const asset of services.registry.assetsOf(network.code)) {
      const { multiple, minAmount } = await sweepPolicyOf(services, services.database, asset)
      assets.push({
        asset: asset.asset_name,
        network: network.code,
        cost_multiple: formatAmount(multiple, MULTIPLE_DECIMALS),
        min_amount: formatAmount(minAmount, asset.decimals),
      })
    }
  }
  const rows = await services.database.query<{
    asset: string
    address: string
    balance: string
    reason: string
  }>(
    `select t.asset, t.source_id address, a.balance::text, t.last_error reason from transactions t
     join ledger_accounts a on a.workspace_id = t.workspace_id and a.wallet_id = t.wallet_id
       and a.asset = t.asset
       and a.kind = 'unswept' and a.address = t.source_id
     where t.kind = 'SWEEP' and t.status = 'pending' and t.plan ? 'waits' order by t.created_at
       limit 1000`,
  )
  return {
    assets,
    waiting: rows.map(({ balance, ...row }) => ({
      ...row,
      amount: formatAmount(BigInt(balance), services.registry.asset(row.asset)?.decimals ?? 0),
    })),
  }
}
