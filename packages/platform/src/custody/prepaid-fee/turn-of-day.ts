import type { Queryable, Database } from '../../core/database/pool.ts'
import { emit, post } from '../../core/ledger/post.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Logger } from 'pino'
import type { Loop } from '../../core/engine/loops/loop.ts'
import { VOLUME_DAYS } from './account.ts'
import { utcDay } from './fees.ts'
import { tierNamed, tierOfVolume, type Tier } from '../../core/settings/tiers.ts'
import { showUsd } from '../../core/decimals.ts'

interface Services {
  settings: Pick<Settings, 'prepaidTiers'>
  environment: Environment
  database: Database
  log: Logger
}

interface Account {
  workspace_id: string
  tier: string
  paid_month: string | null
  paid: string
}

/**
 * Creates the loop that determines each workspace's tier once per UTC day, from the 30 days that
 * have ended, and charges the monthly subscription.
 */
export function turnOfDayLoop(services: Services): Loop {
  return {
    name: 'prepaid fee accounts',
    everyMs: 1000,
    due: `exists (select 1 from prepaid_accounts where decided_on < ($1::timestamptz at time zone 'utc')::date)`,
    async run() {
      const today = utcDay(services)
      const due = await services.database.one<{ workspace_id: string }>(
        `select workspace_id from prepaid_accounts where decided_on < $1 order by decided_on
          limit 1`,
        [today],
      )
      if (!due) return false
      await services.database.transaction((tx) => decide(services, tx, due.workspace_id, today))
      services.environment.checkpoint('prepaid-fee.turned')
      return true
    },
  }
}

/** Processes one workspace for the day. Does nothing if another worker has already done it. */
async function decide(
  services: Services,
  tx: Queryable,
  workspaceId: string,
  today: string,
): Promise<void> {
  const account = await tx.one<Account>(
    `select workspace_id, tier, paid_month::text, paid::text from prepaid_accounts
     where workspace_id = $1 and decided_on < $2 for update`,
    [workspaceId, today],
  )
  if (!account) return
  const sum = await tx.one<{ volume: string }>(
    `select coalesce(sum(amount_usd), 0)::text volume from prepaid_volumes
     where workspace_id = $1 and day < $2::date and day >= $2::date - ${VOLUME_DAYS}`,
    [workspaceId, today],
  )
  const tiers = services.settings.prepaidTiers
  const reached = tierOfVolume(tiers, BigInt(sum?.volume ?? '0'))
  const free =
    tiers.findLast(({ from, monthly }) => monthly === 0n && from <= reached.from) ??
    (tiers[0] as Tier)
  const tier = (await subscribe(tx, account, reached, today)) ? reached : free
  await tx.query('update prepaid_accounts set tier = $2, decided_on = $3 where workspace_id = $1', [
    workspaceId,
    tier.name,
    today,
  ])
  if (tier !== reached) {
    services.log.warn(
      { workspace: workspaceId, tier: reached.name },
      'the balance of a prepaid fee account is below the subscription fee of its tier',
    )
  }
  const before = tierNamed(tiers, account.tier)
  if (tier.name === before.name) return
  await emit(
    tx,
    workspaceId,
    null,
    'prepaid_fee.tier_changed',
    JSON.stringify({
      tier: tier.name,
      previous_tier: before.name,
      volume_30d: Number(showUsd(BigInt(sum?.volume ?? '0'))),
    }),
  )
}

/**
 * Charges the monthly price of a tier minus the amount already paid for the month; returns false if
 * the balance is not sufficient.
 */
async function subscribe(
  tx: Queryable,
  account: Account,
  tier: Tier,
  today: string,
): Promise<boolean> {
  const month = `${today.slice(0, 7)}-01`
  const paid = account.paid_month === month ? BigInt(account.paid) : 0n
  const due = tier.monthly - paid
  if (due <= 0n) return true
  const held = await tx.one<{ balance: string }>('select prepaid_balance($1)::text balance', [
    account.workspace_id,
  ])
  const balance = BigInt(held?.balance ?? '0')
  if (balance < due) return false
  const scope = { workspace: account.workspace_id, asset: 'USD' }
  await post(tx, 'prepaid-subscription', `${account.workspace_id}:${month}:${tier.monthly}`, [
    { ...scope, kind: 'prepaid', amount: -due },
    { ...scope, kind: 'fees', amount: due },
  ])
  await tx.query('update prepaid_accounts set paid_month = $2, paid = $3 where workspace_id = $1', [
    account.workspace_id,
    month,
    tier.monthly.toString(),
  ])
  await tx.query('select prepaid_tell(a, $2, $3) from prepaid_accounts a where workspace_id = $1', [
    account.workspace_id,
    (balance - due).toString(),
    tier.least.toString(),
  ])
  return true
}
