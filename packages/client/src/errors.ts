/** Error of a failed request. */
export class CustodyError extends Error {
  /** HTTP status; 0 if no response was received. */
  readonly status: number
  /**
   * Stable code of the service, e.g. `INSUFFICIENT_BALANCE`; codes of the client: `NETWORK`,
   * `TIMEOUT`, `PROTOCOL`, `IDEMPOTENCY_MISMATCH`.
   */
  readonly code: string
  /** Invalid field, parameter or JWT claim. */
  readonly field: string | undefined
  /** URL of the page that explains the code; only for errors of the service. */
  readonly type: string | undefined
  /** Complete error response of the service, such as the `wallet_id` of `WALLET_EXISTS`. */
  readonly problem: Readonly<Record<string, unknown>>
  /** Id of the request. Include it in questions to the operator. */
  readonly requestId: string | undefined
  constructor(
    message: string,
    details: {
      status: number
      code: string
      field?: string | undefined
      requestId?: string | undefined
      cause?: unknown
      type?: string | undefined
      problem?: Record<string, unknown>
    },
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'CustodyError'
    this.status = details.status
    this.code = details.code
    this.field = details.field
    this.requestId = details.requestId
    this.type = details.type
    this.problem = details.problem ?? {}
  }
}

/**
 * The `sequence_id` was used before with another payload. The service returned the object of that
 * earlier request and did nothing for this one: no transfer, stake, order, invoice, conversion or
 * withdrawal was created.
 */
export class IdempotencyMismatch extends CustodyError {
  /**
   * The service's original response to the earlier request. It is not checked against `trust`: read
   * the object by its id before you use an address.
   */
  readonly answer: Readonly<Record<string, unknown>>
  constructor(
    answer: Readonly<Record<string, unknown>>,
    details: { status: number; requestId: string | undefined },
  ) {
    super(
      'sequence_id: was used before with another payload. The response is that of the earlier request, and nothing was created for this one. To execute this request as well, send it with a new sequence_id',
      {
        ...details,
        code: 'IDEMPOTENCY_MISMATCH',
        field: 'sequence_id',
      },
    )
    this.name = 'IdempotencyMismatch'
    this.answer = answer
  }
}
