import type { Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import type { RuleRow } from './rule.ts'

interface Services {
  environment: Environment
}

const DAY_MS = 86_400_000

/**
 * Returns how much a rule may still forward within the last 24 hours, and the time until that
 * amount grows. Failed forwards do not count.
 */
export async function capOf(
  services: Services,
  tx: Queryable,
  rule: RuleRow,
): Promise<{ left: bigint; waitMs: number }> {
  const now = services.environment.now()
  const used = await tx.one<{ sum: string; oldest: Date | null }>(
    `select coalesce(sum(f.amount + f.fee_room), 0)::text sum, min(f.created_at) oldest
      from forwards f
      join transactions t on t.workspace_id = f.workspace_id and t.id = f.transaction_id
      where f.workspace_id = $3 and f.rule_id = $1 and f.created_at > $2
      and t.status <> 'failed'`,
    [rule.id, new Date(now - DAY_MS), rule.workspace_id],
  )
  const left = BigInt(rule.daily_cap) - BigInt(used?.sum ?? '0')
  return {
    left: left > 0n ? left : 0n,
    waitMs: Math.max(1000, (used?.oldest?.getTime() ?? now) + DAY_MS - now + 1000),
  }
}
