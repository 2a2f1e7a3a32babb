/**
 * The invalid part: the trust object itself, a key's certificates, a derivation path, an address,
 * its payment URI, or a statement or proof of reserves.
 */
export type VerificationCode = 'TRUST' | 'KEY' | 'PATH' | 'ADDRESS' | 'PAYMENT_URI' | 'RESERVES'

/**
 * A response of the service does not follow from the pinned signer nodes' certificates. Do not use
 * it: either the service is compromised, or the trust object belongs to another workspace.
 */
export class VerificationError extends Error {
  readonly code: VerificationCode
  /** The expected value, if there is exactly one. */
  readonly expected: string | undefined
  readonly actual: string | undefined
  constructor(
    code: VerificationCode,
    message: string,
    details: { expected?: string | undefined; actual?: string | undefined } = {},
  ) {
    super(message)
    this.name = 'VerificationError'
    this.code = code
    this.expected = details.expected
    this.actual = details.actual
  }
}
