/**
 * - `AWAY`: no response, or one that may change later (a sealed Vault, a throttled service, a token
 *   that is not plugged in).
 * - `DENIED`: the service or the token rejects the caller's credentials or permissions.
 * - `NO_KEY`: the key-encryption key does not exist, or is disabled.
 * - `REFUSED`: the wrapped key cannot be unwrapped: another key, another binding, or changed bytes.
 * - `SETTING`: an invalid setting.
 */
export type KekErrorCode = 'AWAY' | 'DENIED' | 'NO_KEY' | 'REFUSED' | 'SETTING'

/**
 * An error of a provider. Its message names the provider and the setting at fault; it contains no
 * secret and no long text of a service.
 */
export class KekError extends Error {
  override readonly name = 'KekError'
  readonly code: KekErrorCode
  constructor(code: KekErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
