/**
 * - `AWAY`: no answer, or one that waiting may change (a sealed Vault, a throttled service, a
 *   token that is not plugged in).
 * - `DENIED`: the service or the token refuses who asks.
 * - `NO_KEY`: the key that encrypts is not there, or is disabled.
 * - `REFUSED`: what is wrapped does not open: another key, another place, or changed bytes.
 * - `SETTING`: a setting that cannot be.
 */
export type KekErrorCode = 'AWAY' | 'DENIED' | 'NO_KEY' | 'REFUSED' | 'SETTING'

/**
 * Its message says which provider, and names the setting at fault; it holds no secret and nothing
 * that a service said at length.
 */
export class KekError extends Error {
  override readonly name = 'KekError'
  readonly code: KekErrorCode
  constructor(code: KekErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
