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
 * Scrapes come every few seconds from several places; the nodes and the database are asked once for
 * all of them.
 */
const KEPT_MS = 5000

/**
 * What is looked up at a scrape of /metrics. One that fails keeps none of the others from being
 * told.
 */
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
 * Lets each scrape of /metrics tell of signer nodes, heads, queues, tanks, events and audits as
 * they are now.
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
