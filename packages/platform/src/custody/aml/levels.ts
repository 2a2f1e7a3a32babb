import { ApiError } from '../../core/errors.ts'

export const PROVIDERS = ['CHAINALYSIS', 'ELLIPTIC', 'TRM'] as const
export type ProviderName = (typeof PROVIDERS)[number]

/** Risk levels, highest first. */
export const LEVELS = ['SEVERE', 'HIGH', 'MEDIUM', 'LOW'] as const
export type RiskLevel = (typeof LEVELS)[number]

/**
 * Returns the canonical name of a provider.
 * @throws ApiError 400
 */
export function readProvider(text: string): ProviderName {
  const wanted = text.trim().toUpperCase()
  const match = PROVIDERS.find((each) => each === wanted)
  if (!match)
    throw new ApiError('INVALID_REQUEST', `provider: must be one of ${PROVIDERS.join(', ')}`, {
      field: 'provider',
    })
  return match
}

/**
 * Parses comma-separated levels in any case; returns each level once, highest first.
 * @throws ApiError 400
 */
export function readLevels(text: string): RiskLevel[] {
  const words = text.split(',').map((word) => word.trim().toUpperCase())
  const unknown = words.find((word) => !LEVELS.some((level) => level === word))
  if (unknown !== undefined) {
    const wrong =
      unknown === '' ? 'a risk level is empty' : `${unknown.slice(0, 40)} is not a risk level`
    const allowed = `allowed are ${LEVELS.join(', ')}, separated by commas`
    throw new ApiError('INVALID_REQUEST', `aml_risk_levels: ${wrong}; ${allowed}`, {
      field: 'aml_risk_levels',
    })
  }
  return LEVELS.filter((level) => words.includes(level))
}

/**
 * Returns a sentence about levels that pass although a lower level is held; null if there are none.
 * @param held levels that are held, highest first
 */
export function warningOf(held: readonly string[]): string | null {
  const lowest = held.at(-1)
  const passing = LEVELS.slice(
    0,
    LEVELS.findIndex((level) => level === lowest),
  ).filter((level) => !held.includes(level))
  if (lowest === undefined || passing.length === 0) return null
  return (
    `addresses of the level ${passing.join(' or ')} are not held, although those of the lower level ${lowest} are: ` +
    'aml_risk_levels names each level that is held, so add the higher ones'
  )
}

/** Returns the higher of two levels; null means no level. */
export function higher(a: RiskLevel | null, b: RiskLevel | null): RiskLevel | null {
  return LEVELS.find((level) => level === a || level === b) ?? null
}
