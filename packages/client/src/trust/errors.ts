/**
 * What did not hold: the trust object itself, a key's certificates, a derivation path, an address,
 * its payment URI, a statement or a proof of reserves.
 */
export type VerificationCode = 'TRUST' | 'KEY' | 'PATH' | 'ADDRESS' | 'PAYMENT_URI' | 'RESERVES'

/**
 * What the service said does not follow from what the pinned signer nodes certified. Do not use it:
 * someone lies, or the trust object is another one's.
 */
export class VerificationError extends Error {
  readonly code: VerificationCode
  /** What should have been there, where there is one such thing. */
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
