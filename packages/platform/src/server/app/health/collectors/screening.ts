import type { Metrics } from '../../../../core/metrics.ts'
import type { Sanctions } from '../../../../custody/aml/ofac.ts'

interface Services {
  metrics: Metrics
  aml: { sanctions: Pick<Sanctions, 'list'> }
}

/**
 * Reports the age of the sanctions list. The operator must replace it, because screening against an
 * old list misses addresses.
 */
export async function collectScreening({ aml, metrics }: Services): Promise<void> {
  metrics.sanctionsPublished.set(Date.parse(aml.sanctions.list.published) / 1000)
}
