import type { JsonNumber } from '@custody/request-auth'
import { exact, exactUsd } from '../../core/decimals.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import { utcDay } from './fees.ts'
import { tierNamed } from '../../core/settings/tiers.ts'

interface Services {
  settings: Pick<Settings, 'prepaidTiers'>
  environment: Environment
  database: Database
}

/** Number of days whose volume determines the tier, including the current day. */
export const VOLUME_DAYS = 30

export interface AccountView {
  balance: JsonNumber
  reserved: JsonNumber
  currency: 'USD'
  status: 'ok' | 'low' | 'empty'
  tier: string
  fees: { basis_points: number; percent: JsonNumber; minimum: JsonNumber; monthly: JsonNumber }
  volume_30d: JsonNumber
}

/**
 * Returns a workspace's prepaid fee account as the API shows it. `balance` is the amount paid in
 * minus charges and reservations.
 */
export async function accountOf(services: Services, workspaceId: string): Promise<AccountView> {
  const row = await services.database.one<{
    tier: string | null
    level: string | null
    balance: string | null
    reserved: string | null
    volume: string | null
  }>(
    `select a.tier, a.level::text,
       (
         select balance::text from ledger_accounts where workspace_id = w.id and wallet_id is null
           and asset = 'USD' and kind = 'prepaid'
       ) balance,
       (
         select balance::text from ledger_accounts
         where workspace_id = w.id and wallet_id is null and asset = 'USD'
           and kind = 'prepaid_reserved'
       ) reserved,
       (select sum(amount_usd)::text from prepaid_volumes where workspace_id = w.id
         and day > $2::date - ${VOLUME_DAYS}) volume
     from workspaces w left join prepaid_accounts a on a.workspace_id = w.id where w.id = $1`,
    [workspaceId, utcDay(services)],
  )
  const tier = tierNamed(services.settings.prepaidTiers, row?.tier ?? null)
  const balance = BigInt(row?.balance ?? '0')
  const volume = BigInt(row?.volume ?? '0')
  return {
    balance: exactUsd(balance),
    reserved: exactUsd(BigInt(row?.reserved ?? '0')),
    currency: 'USD',
    status:
      balance <= 0n || balance < tier.least
        ? 'empty'
        : balance * 5n <= BigInt(row?.level ?? '0')
          ? 'low'
          : 'ok',
    tier: tier.name,
    fees: {
      basis_points: Number(tier.basisPoints),
      percent: exact(percent(tier.basisPoints)),
      minimum: exactUsd(tier.least),
      monthly: exactUsd(tier.monthly),
    },
    volume_30d: exactUsd(volume < 0n ? 0n : volume),
  }
}

const percent = (basisPoints: bigint): string =>
  `${basisPoints / 100n}.${(basisPoints % 100n).toString().padStart(2, '0')}`.replace(/\.?0+$/, '')
