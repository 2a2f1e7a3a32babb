import { formatAmount, type Registry } from '@custody/chains'
import { stringifyJson } from '@custody/request-auth'
import { emit } from '../../core/ledger/post.ts'
import { exact } from '../../core/decimals.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

const IS_AWAITED = 'released_by is null and told_at is null'

/**
 * Creates the loop that emits an event for each unstake whose cooldown is over by the chain's time,
 * once. It does not release anything.
 */
export function watchReleasableLoop(services: Services): Loop {
  return {
    name: 'releasable',
    everyMs: 3000,
    due: `exists (select 1 from cooldowns where ${IS_AWAITED})`,
    async run() {
      const networks = await services.database.query<{ network: string }>(
        `select distinct network from cooldowns where ${IS_AWAITED}`,
      )
      for (const { network } of networks) {
        if (!services.networks.has(network)) continue
        const headTime = await services.networks.stakes(network).client.headTime()
        await services.database.transaction(async (tx) => {
          const matured = await tx.query<{
            transaction_id: string
            address: string
            resource: string
            amount: string
            release_at: Date
            workspace_id: string
            sub_account_id: string
            asset: string
          }>(
            `update cooldowns c set told_at = $3 from transactions t
             where t.workspace_id = c.workspace_id and t.id = c.transaction_id and c.network = $1
              and c.released_by is null and c.told_at is null and c.release_at <= $2
             returning c.transaction_id, c.address, c.resource, c.amount::text, c.release_at,
               t.workspace_id, t.sub_account_id,
             t.asset`,
            [network, new Date(headTime), tx.now()],
          )
          for (const each of matured) {
            await emit(
              tx,
              each.workspace_id,
              each.sub_account_id,
              'staking.releasable',
              stringifyJson({
                id: each.transaction_id,
                asset: each.asset,
                address: each.address,
                resource: each.resource,
                amount: exact(
                  formatAmount(
                    BigInt(each.amount),
                    services.registry.asset(each.asset)?.decimals ?? 6,
                  ),
                ),
                release_at: each.release_at.toISOString(),
              }),
            )
          }
        })
      }
      return false
    },
  }
}
