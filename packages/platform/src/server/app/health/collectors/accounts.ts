import { formatAmount, type Registry } from '@custody/chains'
import type { Database } from '../../../../core/database/pool.ts'
import type { Metrics } from '../../../../core/metrics.ts'

interface Services {
  database: Database
  registry: Registry
  metrics: Metrics
}

/** Decimals of USD in the ledger. */
const USD_DECIMALS = 6

/**
 * Collects the balances of gas tanks and prepaid fee accounts. A gauge is a double: precise enough
 * for an alert, but not for accounting.
 */
export async function collectAccounts({ database, metrics, registry }: Services): Promise<void> {
  const natives = JSON.stringify(
    Object.fromEntries(registry.networks.map(({ code, native_asset }) => [code, native_asset])),
  )
  const [tanks, prepaid] = await Promise.all([
    database.query<{ workspace: string; network: string; balance: string; status: string }>(
      `select w.name workspace, g.network, g.status,
         coalesce(
           (
             select sum(balance) from ledger_accounts a
             where a.workspace_id = g.workspace_id and a.kind = 'tank'
               and a.asset = ($1::jsonb)->>g.network
           ), 0
         )::text balance
       from gas_tanks g join workspaces w on w.id = g.workspace_id`,
      [natives],
    ),
    database.query<{ workspace: string; balance: string }>(
      `select w.name workspace, a.balance::text from ledger_accounts a
        join workspaces w on w.id = a.workspace_id
       where a.workspace_id in (select workspace_id from prepaid_accounts)
         and a.wallet_id is null and a.asset = 'USD' and a.kind = 'prepaid'`,
    ),
  ])
  metrics.tankBalance.reset()
  metrics.tankOk.reset()
  for (const { workspace, network, balance, status } of tanks) {
    const decimals = registry.asset(registry.network(network)?.native_asset ?? '')?.decimals ?? 18
    metrics.tankBalance
      .labels(workspace, network)
      .set(Number(formatAmount(BigInt(balance), decimals)))
    metrics.tankOk.labels(workspace, network).set(status === 'ok' ? 1 : 0)
  }
  metrics.prepaidBalance.reset()
  for (const { workspace, balance } of prepaid) {
    metrics.prepaidBalance
      .labels(workspace)
      .set(Number(formatAmount(BigInt(balance), USD_DECIMALS)))
  }
}
