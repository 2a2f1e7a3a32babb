import {
  formatAmount,
  isBeyondWorth,
  type Asset,
  type Network,
  type Registry,
} from '@custody/chains'
import type { Chain } from '../../core/engine/chain.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { lockedBalance } from '../../core/ledger/post.ts'
import { coinOf } from '../prices/coins.ts'
import { usdValue } from '../prices/decimals.ts'
import { MULTIPLE_DECIMALS } from '../../core/settings/sweep-rules.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Prices } from '../prices/prices.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { advance } from '../../core/engine/lease.ts'

interface Services {
  settings: Pick<Settings, 'sweep'>
  database: Database
  registry: Registry
  prices: Prices
}

const SCALE = 10n ** BigInt(MULTIPLE_DECIMALS)
/**
 * Interval in milliseconds at which a postponed sweep is evaluated again, because fees fall and
 * prices rise. New deposits wake it.
 */
const WAIT_MS = 600_000

export interface SweepPolicy {
  /** Minimum ratio of value to cost, in thousandths; 0: no minimum. */ multiple: bigint
  /** Minimum amount of a sweep, in the smallest unit of the asset. */ minAmount: bigint
}

const scopesOf = (asset: Pick<Asset, 'asset_name' | 'network'>): string[] => [
  `asset:${asset.asset_name}`,
  `network:${asset.network}`,
  '*',
]

/**
 * Returns the sweep policy of an asset. At each scope, values set with the operator's commands
 * override the configuration; the narrowest scope with a value decides.
 */
export async function sweepPolicyOf(
  services: Pick<Services, 'settings'>,
  database: Queryable,
  asset: Pick<Asset, 'asset_name' | 'network'>,
): Promise<SweepPolicy> {
  const scopes = scopesOf(asset)
  const rows = await database.query<{
    scope: string
    cost_multiple: string | null
    min_amount: string | null
  }>(
    `select scope, trunc(cost_multiple * 1000)::text cost_multiple, min_amount::text
      from sweep_settings where scope = any($1)`,
    [scopes],
  )
  const set = new Map(rows.map((row) => [row.scope, row]))
  const first = (name: 'cost_multiple' | 'min_amount'): bigint => {
    for (const scope of scopes) {
      const value = set.get(scope)?.[name] ?? services.settings.sweep[scope]?.[name]
      if (value !== undefined && value !== null) return BigInt(value)
    }
    return 0n
  }
  return { multiple: first('cost_multiple'), minAmount: first('min_amount') }
}

/**
 * Postpones a sweep if the balance of the deposit address is not worth its cost yet. Value and cost
 * are compared in the network's coin, and for a token in USD at the last known prices. Without a
 * price, a token is swept from its minimum amount, by default one whole unit.
 * @param o.cost maximum cost of the sweep, in the smallest native unit
 * @param o.own whether the cost is paid out of the amount swept
 * @returns whether the sweep was postponed
 */
export async function sweepWaits(
  services: Services,
  row: TransactionRow,
  { network }: Chain,
  o: { amount: bigint; cost: bigint; own: boolean },
): Promise<boolean> {
  const asset = services.registry.asset(row.asset) as Asset
  const policy = await sweepPolicyOf(services, services.database, asset)
  const reason = notWorth(services, network, asset, policy, o)
  if (reason === null) {
    if (row.plan.waits !== undefined) {
      await services.database.query(
        `update transactions set plan = plan - 'waits' where workspace_id = $3 and id = $1
          and lease_token = $2`,
        [row.id, row.lease_token, row.workspace_id],
      )
    }
    return false
  }
  await services.database.transaction(async (tx) => {
    // The balance is locked before the row: a deposit that is being credited now is either included
    // here or wakes this sweep afterwards.
    const held = await lockedBalance(tx, {
      workspace: row.workspace_id,
      wallet: row.wallet_id,
      asset: row.asset,
      kind: 'unswept',
      address: row.source_id,
    })
    await advance(tx, row, {
      waits: 'SWEEP_COST',
      last_error: reason,
      plan: { waits: '1' },
      run_in_ms: held === o.amount ? WAIT_MS : 0,
    })
  })
  return true
}

function notWorth(
  services: Services,
  network: Network,
  asset: Asset,
  { multiple, minAmount }: SweepPolicy,
  { amount, cost, own }: { amount: bigint; cost: bigint; own: boolean },
): string | null {
  const native = services.registry.asset(network.native_asset) as Asset
  const show = (value: bigint, of: Asset) => `${formatAmount(value, of.decimals)} ${of.asset_name}`
  if (amount < minAmount)
    return `waits: ${show(amount, asset)} are less than the minimum sweep of ${show(minAmount, asset)}`
  if (isBeyondWorth(services.registry, asset, amount, cost))
    return `waits: ${show(amount, asset)} cannot be worth the network fee of up to ${show(cost, native)}`
  // A sweep that pays its own fee must always move more than it costs, because the signer nodes
  // refuse it otherwise.
  const times = own && multiple < 2n * SCALE ? 2n * SCALE : multiple
  if (times === 0n) return null
  let [value, price] = [amount, cost]
  if (asset.asset_name !== native.asset_name) {
    const [mine, theirs] = [
      services.prices.price(coinOf(asset)),
      services.prices.price(coinOf(native)),
    ]
    // An outdated price is better than none: dust must not be swept just because the price sources
    // are unreachable.
    if (!mine || !theirs) {
      const least = minAmount > 0n ? minAmount : 10n ** BigInt(asset.decimals)
      const what = `${show(amount, asset)} are less than the minimum sweep of ${show(least, asset)}`
      return amount >= least ? null : `waits: without prices ${what}`
    }
    value = usdValue(amount, asset.decimals, mine.price)
    price = usdValue(cost, native.decimals, theirs.price)
  }
  if (value * SCALE > price * times) return null
  const wanted = `${formatAmount(times, MULTIPLE_DECIMALS)} times the network fee of up to ${show(cost, native)}`
  return `waits: ${show(amount, asset)} are worth less than ${wanted}`
}
