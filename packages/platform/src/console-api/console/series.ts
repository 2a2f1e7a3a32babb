import { formatAmount, type Asset, type Registry } from '@custody/chains'
import { z } from 'zod'
import { findAsset } from '../../custody/assets/find-asset.ts'
import { exact, USD_DECIMALS } from '../../core/decimals.ts'
import { ApiError } from '../../core/errors.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { assetName, integer } from '../../core/http/schemas.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { time } from '../people/schemas.ts'
import { HELD_ACCOUNTS } from './held-accounts.ts'
import { SUB_ACCOUNT, subAccountParams } from './mirror.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
}

const DAY_MS = 86_400_000
const DAYS_MAX = 366

/**
 * Sums by UTC day, in the smallest unit. `now`: the current balance, if the sums are its changes;
 * null: each day is independent.
 */
interface Days {
  sums: ReadonlyMap<string, bigint>
  now: bigint | null
  decimals: number
  unit: string
}

/** Returns one value for each of the last days, including today, for a chart. */
export const readSeries = panelEndpoint({
  method: 'GET',
  path: `${SUB_ACCOUNT}/series`,
  summary: 'Read a metric over the last days',
  needs: 'viewer',
  params: z.strictObject(subAccountParams),
  query: z.strictObject({
    metric: z.enum(['balance', 'volume', 'fees', 'tank']).meta({
      description:
        'balance: of `asset`, at the end of each day. volume: incoming and outgoing, of `asset`, or in USD without one. fees: network fees of ' +
        '`network` in its coin, or platform fees in USD without one. tank: the gas tank of `network`, at the end of each day',
    }),
    asset: assetName.optional(),
    network: z.string().max(20).optional(),
    days: integer(1, DAYS_MAX, 'Number of days; by default 30').default(30),
  }),
  response: z.object({
    metric: z.string(),
    unit: z.string(),
    points: z.array(z.object({ at: time, value: z.number() })),
  }),
  async handler({ caller, query: { metric, asset, network, days } }, services: Services) {
    const today = Math.floor(services.environment.now() / DAY_MS) * DAY_MS
    const from = new Date(today - (days - 1) * DAY_MS)
    const match = asset === undefined ? null : findAsset(services, asset).asset
    const coin = network === undefined ? null : nativeOf(services, network)
    const { sums, now, decimals, unit } = await daysOf(services, caller, metric, {
      asset: match,
      coin,
      network: network ?? null,
      from,
    })
    let level = now
    const points = Array.from({ length: days }, (_, back) => {
      const at = new Date(today - back * DAY_MS).toISOString()
      const sum = sums.get(at.slice(0, 10)) ?? 0n
      const value = level ?? sum
      // Earlier balances are computed backwards from the current one.
      if (level !== null) level -= sum
      return { at, value: exact(formatAmount(value, decimals)) }
    }).reverse()
    return { body: { metric, unit, points } }
  },
})

const IN_OR_OUT = `kind in ('WITHDRAWAL', 'DEPOSIT')`

interface Of {
  asset: Asset | null
  coin: Asset | null
  network: string | null
  from: Date
}

function daysOf(services: Services, caller: Caller, metric: string, o: Of): Promise<Days> {
  switch (metric) {
    case 'balance':
      return levels(
        services,
        need(o.asset, 'asset'),
        'a.wallet_id in (select id from wallets where workspace_id = $4 and sub_account_id = $1) and a.kind = any($3)',
        [caller.subAccountId, HELD_ACCOUNTS, caller.workspaceId],
        o.from,
      )
    case 'tank':
      return levels(
        services,
        need(o.coin, 'network'),
        'a.workspace_id = $1 and a.wallet_id is null and a.kind = any($3)',
        [caller.workspaceId, ['tank', 'tank_reserved'], caller.workspaceId],
        o.from,
      )
    case 'volume':
      return flows(services, caller, {
        column: o.asset ? 'amount' : 'amount_usd',
        asset: o.asset,
        from: o.from,
        condition: o.asset ? `asset = $3 and ${IN_OR_OUT}` : `$3::text is null and ${IN_OR_OUT}`,
        value: o.asset?.asset_name ?? null,
      })
    default:
      return flows(services, caller, {
        column: o.coin ? 'fee' : 'platform_fee',
        asset: o.coin,
        from: o.from,
        condition: o.coin ? `network = $3 and kind <> 'DEPOSIT'` : '$3::text is null',
        value: o.coin ? o.network : null,
      })
  }
}

/** Returns the current balance and its change on each day. */
async function levels(
  services: Services,
  asset: Asset,
  accounts: string,
  values: [of: string, kinds: readonly string[], workspace: string],
  from: Date,
): Promise<Days> {
  const { database } = services
  const inputs = [values[0], asset.asset_name, values[1], values[2]]
  const [now, rows] = await Promise.all([
    database.one<{ sum: string }>(
      `select coalesce(sum(a.balance), 0)::text sum from ledger_accounts a where a.workspace_id = $4
        and a.asset = $2 and ${accounts}`,
      inputs,
    ),
    database.query<{ day: string; sum: string }>(
      `select to_char(e.created_at at time zone 'utc', 'YYYY-MM-DD') as day, sum(p.amount)::text sum
       from ledger_accounts a join ledger_postings p on p.workspace_id = a.workspace_id
         and p.account_id = a.id
         join ledger_entries e on e.workspace_id = p.workspace_id and e.id = p.entry_id
       where a.workspace_id = $4 and a.asset = $2 and ${accounts} and e.created_at >= $5 group by 1`,
      [...inputs, from],
    ),
  ])
  return {
    sums: byDay(rows),
    now: BigInt(now?.sum ?? '0'),
    decimals: asset.decimals,
    unit: asset.asset_name,
  }
}

/** The transactions whose amounts are added, and the column that is added. */
interface Flow {
  column: 'amount' | 'amount_usd' | 'fee' | 'platform_fee'
  /** Asset of the column; null: it is in USD. */
  asset: Asset | null
  from: Date
  /** Condition in SQL, in which `$3` is `value`. */
  condition: string
  value: string | null
}

/**
 * Returns the incoming and outgoing amounts of each day: those of the transactions that were
 * confirmed on that day.
 */
async function flows(
  { database }: Services,
  caller: Caller,
  { column, asset, from, condition, value }: Flow,
): Promise<Days> {
  const rows = await database.query<{ day: string; sum: string }>(
    `select to_char(confirmed_at at time zone 'utc', 'YYYY-MM-DD') as day,
      coalesce(sum(${column}), 0)::text sum from transactions
     where workspace_id = $4 and sub_account_id = $1 and status = 'confirmed' and confirmed_at >= $2
       and ${condition} group by 1`,
    [caller.subAccountId, from, value, caller.workspaceId],
  )
  return {
    sums: byDay(rows),
    now: null,
    decimals: asset?.decimals ?? USD_DECIMALS,
    unit: asset?.asset_name ?? 'USD',
  }
}

const byDay = (rows: readonly { day: string; sum: string }[]) =>
  new Map(rows.map(({ day, sum }) => [day, BigInt(sum)]))

/**
 * Returns the asset.
 * @throws ApiError that names the parameter, if the asset is missing
 */
function need(asset: Asset | null, field: string): Asset {
  if (asset) return asset
  throw new ApiError('INVALID_REQUEST', `${field}: is required for this metric`, { field })
}

/**
 * Returns a network's native asset.
 * @throws ApiError that names the parameter
 */
function nativeOf({ registry }: Services, code: string): Asset {
  const network = registry.network(code)
  const asset = network && registry.asset(network.native_asset)
  if (!asset)
    throw new ApiError('INVALID_REQUEST', 'network: must be the code of a network, such as ETH', {
      field: 'network',
    })
  return asset
}
