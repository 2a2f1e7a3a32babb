import { stringifyJson } from '@custody/request-auth'
import { emit } from '../../core/ledger/post.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { Logger } from 'pino'
import type { Loop } from '../../core/engine/loops/loop.ts'
import { IS_FILLED } from './ensure-tank.ts'
import { gasTanksOf } from './list-tanks.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  database: Database
  registry: Registry
  networks: Networks
  log: Logger
}

/**
 * Interval in milliseconds at which the tanks are checked. The query reads every gas tank, so it
 * does not run more often than an operator could react.
 */
const EVERY_MS = 2000

interface Changed {
  id: string
  workspace_id: string
  network: string
  was: string
  now: 'ok' | 'low' | 'empty'
}

/**
 * Creates the loop that emits an event when a tank's balance falls below its threshold or to zero,
 * once for each change, and records when it rises again.
 */
export function watchTanksLoop(services: Services): Loop {
  return {
    name: 'watch tanks',
    everyMs: EVERY_MS,
    async run() {
      const natives = JSON.stringify(
        Object.fromEntries(
          services.registry.networks.map((network) => [network.code, network.native_asset]),
        ),
      )
      // The database finds the few tanks whose status changed; only those are processed.
      const changed = await services.database.query<Changed>(
        `select * from (
           select g.id, g.workspace_id, g.network, g.status was,
             case when coalesce(sum(a.balance), 0) <= 0 then 'empty'
               when coalesce(sum(a.balance), 0) < g.threshold then 'low' else 'ok' end now
           from gas_tanks g left join ledger_accounts a
             on a.workspace_id = g.workspace_id and a.kind = 'tank'
               and a.asset = ($1::jsonb)->>g.network
           where g.first_fill = 0 or ${IS_FILLED}
           group by g.id) tanks where was <> now limit 100`,
        [natives],
      )
      for (const tank of changed) {
        const shown = (await gasTanksOf(services, tank.workspace_id)).find(
          ({ network }) => network === tank.network,
        )
        await services.database.transaction(async (tx) => {
          const written = await tx.query(
            'update gas_tanks set status = $2 where id = $1 and status = $3 returning 1',
            [tank.id, tank.now, tank.was],
          )
          if (written.length === 0 || tank.now === 'ok') return
          await emit(
            tx,
            tank.workspace_id,
            null,
            `gas_tank.${tank.now}`,
            stringifyJson({ ...shown, status: tank.now }),
          )
          services.log.warn(
            { workspace: tank.workspace_id, network: tank.network },
            `a gas tank is ${tank.now}; transfers on that network fail when its balance is too low`,
          )
        })
      }
      return false
    },
  }
}
