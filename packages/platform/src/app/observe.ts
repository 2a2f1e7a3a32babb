import { formatAmount } from '@custody/chains'
import type { Services } from '../engine/services.ts'
import { heardStatus } from '../signing/status.ts'
import { shared } from '../engine/shared.ts'
import { readPresence } from './presence.ts'
import { canSign, SIGNERS_NEEDED } from './readiness.ts'

/** Scrapes come every few seconds from several places; the nodes and the database are asked once for all of them. */
const KEPT_MS = 5000

interface Tank { workspace: string; network: string; balance: string; status: string }
interface Waiting { kind: string; state: string; count: string; age_s: string }

/** What a scrape of /metrics looks up: signer nodes, heads, the queue, the tanks. */
export function observe(services: Services): void {
  const { database, metrics, registry } = services
  const natives = JSON.stringify(Object.fromEntries(registry.networks.map(({ code, native_asset }) => [code, native_asset])))
  metrics.onScrape(shared(async () => {
    const [nodes, scans, waiting, tanks, orders, { duties }] = await Promise.all([
      heardStatus(services.signers),
      database.query<{ network: string; height: string; tip_height: string | null }>(
        'select network, height::text, tip_height::text from network_scans where height is not null'
      ),
      // Of what is under way only: the index of due work holds nothing else.
      database.query<Waiting>(
        `select kind, state, count(*)::text, extract(epoch from $1::timestamptz - min(created_at))::text age_s
          from transactions where next_run_at is not null group by 1, 2`, [database.now()]),
      database.query<Tank>(
        `select w.name workspace, g.network, g.status,
           coalesce(
             (
               select sum(balance) from ledger_accounts a
               where a.workspace_id = g.workspace_id and a.kind = 'tank' and a.asset = ($1::jsonb)->>g.network
             ), 0
           )::text balance
         from gas_tanks g join workspaces w on w.id = g.workspace_id`, [natives]),
      database.query<{ exchange: string; status: string; count: string }>(
        `select exchange, status, count(*)::text from orders where next_run_at is not null group by 1, 2`),
      readPresence(services),
    ])
    for (const each of nodes) metrics.signerUp.labels(String(each.node)).set(canSign(each) ? 1 : 0)
    metrics.signingPossible.set(nodes.filter(canSign).length >= SIGNERS_NEEDED ? 1 : 0)
    for (const { network, height, tip_height } of scans) {
      metrics.headLag.labels(network).set(Math.max(0, Number(tip_height ?? height) - Number(height)))
    }
    for (const { duty, processes, unseenMs } of duties) {
      metrics.processes.labels(duty).set(processes)
      metrics.unseen.labels(duty).set(unseenMs === null ? Number.POSITIVE_INFINITY : unseenMs / 1000)
    }
    metrics.waiting.reset()
    metrics.waitingAge.reset()
    for (const { kind, state, count, age_s } of waiting) {
      metrics.waiting.labels(kind, state).set(Number(count))
      metrics.waitingAge.labels(kind, state).set(Number(age_s))
    }
    metrics.ordersWaiting.reset()
    for (const { exchange, status, count } of orders) metrics.ordersWaiting.labels(exchange, status).set(Number(count))
    metrics.tankBalance.reset()
    metrics.tankOk.reset()
    for (const { workspace, network, balance, status } of tanks) {
      const decimals = registry.asset(registry.network(network)?.native_asset ?? '')?.decimals ?? 18
      // A gauge is a double: enough for an alert, never for a book.
      metrics.tankBalance.labels(workspace, network).set(Number(formatAmount(BigInt(balance), decimals)))
      metrics.tankOk.labels(workspace, network).set(status === 'ok' ? 1 : 0)
    }
  }, KEPT_MS, () => services.environment.now()))
}
