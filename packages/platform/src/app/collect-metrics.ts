import type { Services } from '../engine/services.ts'
import { shared } from '../engine/shared.ts'
import { lookAtAudits } from './collectors/audits.ts'
import { lookAtEvents } from './collectors/events.ts'
import { lookAtNetworks } from './collectors/networks.ts'
import { lookAtDuties } from './collectors/duties.ts'
import { lookAtNodes } from './collectors/nodes.ts'
import { lookAtPrices } from './collectors/prices.ts'
import { lookAtQueues } from './collectors/queues.ts'
import { lookAtScreening } from './collectors/screening.ts'
import { lookAtAccounts } from './collectors/accounts.ts'

/**
 * Time in milliseconds for which collected values are cached. Several scrapers may read every few
 * seconds; the nodes and the database are queried once for all of them.
 */
const KEPT_MS = 5000

/** Collectors that run at a scrape of /metrics. A failing collector does not prevent the others. */
const LOOKS = [
  lookAtDuties,
  lookAtNodes,
  lookAtNetworks,
  lookAtQueues,
  lookAtAccounts,
  lookAtEvents,
  lookAtScreening,
  lookAtAudits,
  lookAtPrices,
]

/**
 * Registers the collectors, so that each scrape of /metrics reports the current state of signer
 * nodes, heads, queues, tanks, events and audits.
 */
export function registerCollectors(services: Services): void {
  services.metrics.onScrape(
    shared(
      async () => {
        const looked = await Promise.allSettled(LOOKS.map((look) => look(services)))
        const failed = looked.find((each) => each.status === 'rejected')
        if (failed) throw failed.reason
      },
      KEPT_MS,
      () => services.environment.now(),
    ),
  )
}
