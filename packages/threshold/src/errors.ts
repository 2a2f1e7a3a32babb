/**
 * - `ABORT`: the run ended without a result. It may be repeated with a new session id.
 * - `CHEAT`: the engine proved that `counterparty` cheated in a way that can leak key material over
 *   several runs (DKLs23's `BanCounterparty`). Never run a protocol with that party again: generate
 *   a new key and move the funds.
 * - `MALFORMED`: a message that cannot be read or does not belong to this round, session or sender.
 * - `SEALED`: a share, backup or key file that cannot be opened.
 * - `BAD_ARGUMENT`: invalid argument of the caller.
 */
export type ThresholdErrorCode = 'ABORT' | 'CHEAT' | 'MALFORMED' | 'SEALED' | 'BAD_ARGUMENT'

const codes: readonly string[] = ['ABORT', 'CHEAT', 'MALFORMED', 'SEALED', 'BAD_ARGUMENT']

export class ThresholdError extends Error {
  override readonly name = 'ThresholdError'
  readonly code: ThresholdErrorCode
  /** The party at fault. Always set with CHEAT; with other codes only if it is known. */
  readonly counterparty: number | null

  constructor(
    code: ThresholdErrorCode,
    message: string,
    counterparty: number | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.code = code
    this.counterparty = counterparty
  }
}

/**
 * Converts an error of the addon, whose format is `CODE|party|message`. Any other error is an
 * argument of a wrong type.
 */
export function fromNative(error: unknown): ThresholdError {
  if (error instanceof ThresholdError) return error
  const text = error instanceof Error ? error.message : String(error)
  const [code = '', party = '', ...rest] = text.split('|')
  if (!codes.includes(code)) return new ThresholdError('BAD_ARGUMENT', text, null, { cause: error })
  return new ThresholdError(
    code as ThresholdErrorCode,
    rest.join('|'),
    party === '' ? null : Number(party),
  )
}
