import type { Environment } from '../../../../core/environment.ts'
import type { Database } from '../../../../core/database/pool.ts'
import type { Metrics } from '../../../../core/metrics.ts'
import { readRoleHealth } from '../role-health.ts'

interface Services {
  environment: Environment
  database: Database
  metrics: Metrics
}

/** Collects how many processes perform each duty, and which loops fail, over all processes. */
export async function collectRoleHealth(services: Services): Promise<void> {
  const { duties, failing } = await readRoleHealth(services)
  for (const { duty, processes, unseenMs } of duties) {
    services.metrics.processes.labels(duty).set(processes)
    services.metrics.unseen
      .labels(duty)
      .set(unseenMs === null ? Number.POSITIVE_INFINITY : unseenMs / 1000)
  }
  services.metrics.loopFailing.reset()
  for (const { loop, since } of failing) {
    services.metrics.loopFailing
      .labels(loop)
      .set(Math.max(0, services.environment.now() - since) / 1000)
  }
}
