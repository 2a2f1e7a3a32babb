/**
 * Thrown when a provider returned nothing usable. It implies nothing about an address and contains
 * no token.
 */
export class ProviderError extends Error {
  /** Why the response cannot be used. `refused`: the token is not (or no longer) accepted. */
  readonly kind: 'unreachable' | 'rate-limited' | 'refused' | 'unusable'
  /** Time in milliseconds after which the provider accepts requests again; null: unknown. */
  readonly retryAfterMs: number | null
  constructor(kind: ProviderError['kind'], message: string, retryAfterMs: number | null = null) {
    super(message)
    this.name = 'ProviderError'
    this.kind = kind
    this.retryAfterMs = retryAfterMs
  }
}
