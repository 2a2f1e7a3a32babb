import type { Services } from '../../../core/engine/services.ts'

/**
 * Reports the age of the sanctions list. The operator must replace it, because screening against an
 * old list misses addresses.
 */
export async function collectScreening({ aml, metrics }: Services): Promise<void> {
  metrics.sanctionsPublished.set(Date.parse(aml.sanctions.list.published) / 1000)
}
