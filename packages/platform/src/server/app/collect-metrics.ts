import type { Services } from '../../core/engine/services.ts'
import { shared } from '../../core/engine/shared.ts'
import { collectAudits } from './collectors/audits.ts'
import { collectEvents } from './collectors/events.ts'
import { collectNetworks } from './collectors/networks.ts'
import { collectRoleHealth } from './collectors/role-health.ts'
import { collectNodes } from './collectors/nodes.ts'
import { collectPrices } from './collectors/prices.ts'
import { collectQueues } from './collectors/queues.ts'
import { collectScreening } from './collectors/screening.ts'
import { collectAccounts } from './collectors/accounts.ts'

/**
 * Time in milliseconds for which collected values are cached. Several scrapers may read every few
 * seconds; the nodes and the database are queried once for all of them.
 */
const CACHE_MS = 5000

/** Collectors that run at a scrape of /metrics. A failing collector does not prevent the others. */
const COLLECTORS = [
  collectRoleHealth,
  collectNodes,
  collectNetworks,
  collectQueues,
  collectAccounts,
  collectEvents,
  collectScreening,
  collectAudits,
  collectPrices,
]

/**
 * Registers the collectors, so that each scrape of /metrics reports the current state of signer
 * nodes, heads, queues, tanks, events and audits.
 */
export function registerCollectors(services: Services): void {
  services.metrics.onScrape(
    shared(
      async () => {
        const results = await Promise.allSettled(COLLECTORS.map((collect) => collect(services)))
        const failed = results.find((each) => each.status === 'rejected')
        if (failed) throw failed.reason
      },
      CACHE_MS,
      () => services.environment.now(),
    ),
  )
}
