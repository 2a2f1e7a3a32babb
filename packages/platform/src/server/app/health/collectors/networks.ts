import type { Database } from '../../../../core/database/pool.ts'
import type { Metrics } from '../../../../core/metrics.ts'

interface Services {
  database: Database
  metrics: Metrics
}

export async function collectNetworks({ database, metrics }: Services): Promise<void> {
  const scans = await database.query<{
    network: string
    height: string
    tip_height: string | null
  }>('select network, height::text, tip_height::text from network_scans where height is not null')
  for (const { network, height, tip_height } of scans) {
    metrics.headLag.labels(network).set(Math.max(0, Number(tip_height ?? height) - Number(height)))
  }
}
