import type { Registry } from '@custody/chains'
import type { Networks } from '../../../core/engine/networks.ts'
import type { Settings } from '../../../core/settings/settings.ts'
import type { SignerNodes } from '../../../core/signing/nodes.ts'
import type { Aml } from '../../../custody/aml/aml.ts'
import type { Prices } from '../../../custody/prices/prices.ts'
import type { Environment } from '../../../core/environment.ts'
import type { Database } from '../../../core/database/pool.ts'
import type { Metrics } from '../../../core/metrics.ts'
import { shared } from '../../../core/engine/shared.ts'
import { collectAudits } from './collectors/audits.ts'
import { collectEvents } from './collectors/events.ts'
import { collectNetworks } from './collectors/networks.ts'
import { collectRoleHealth } from './collectors/role-health.ts'
import { collectNodes } from './collectors/nodes.ts'
import { collectPrices } from './collectors/prices.ts'
import { collectQueues } from './collectors/queues.ts'
import { collectScreening } from './collectors/screening.ts'
import { collectAccounts } from './collectors/accounts.ts'

interface Services {
  settings: Pick<Settings, 'home' | 'role'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  metrics: Metrics
  aml: Aml
  prices: Prices
}

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
