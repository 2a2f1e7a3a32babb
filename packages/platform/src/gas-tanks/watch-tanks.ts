import { stringifyJson } from '@custody/request-auth'
import { emit } from '../ledger/post.ts'
import type { Services } from '../engine/services.ts'
import type { Loop } from '../engine/loop.ts'
import { IS_FILLED } from './ensure-tank.ts'
import { gasTanksOf } from './list-tanks.ts'

/**
 * The question looks at every tank, so it is not put more often than somebody could act on the
 * answer.
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
 * Tells of each tank whose balance has fallen below its threshold, to nothing, or has risen again:
 * once for each change.
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
      // Most tanks have not changed: the database compares, and only the others are looked at.
      const changed = await services.database.query<Changed>(
        `select * from (
           select g.id, g.workspace_id, g.network, g.status was,
             case when coalesce(sum(a.balance), 0) <= 0 then 'empty'
               when coalesce(sum(a.balance), 0) < g.threshold then 'low' else 'ok' end now
           from gas_tanks g left join ledger_accounts a
             on a.workspace_id = g.workspace_id and a.kind = 'tank' and a.asset = ($1::jsonb)->>g.network
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
