import type { Services } from '../../engine/services.ts'

/**
 * Reports the age of the sanctions list: an operator replaces it, and screening against an old one
 * misses addresses.
 */
export async function lookAtScreening({ aml, metrics }: Services): Promise<void> {
  metrics.sanctionsPublished.set(Date.parse(aml.sanctions.list.published) / 1000)
}
