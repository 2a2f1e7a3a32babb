/** A request that did not succeed. */
export class CustodyError extends Error {
  /** HTTP status; 0 where no answer came. */
  readonly status: number
  /** Stable code of the service, e.g. `INSUFFICIENT_BALANCE`; of the client: `NETWORK`, `TIMEOUT`, `PROTOCOL`. */
  readonly code: string
  /** Field, parameter or JWT claim that failed. */
  readonly field: string | undefined
  /** The page that says what to do about the code; of the service's errors only. */
  readonly type: string | undefined
  /** All that the service said, such as the `wallet_id` of `WALLET_EXISTS`. */
  readonly problem: Readonly<Record<string, unknown>>
  /** Quote it when asking the operator. */
  readonly requestId: string | undefined
  constructor(
    message: string,
    details: {
      status: number; code: string; field?: string | undefined; requestId?: string | undefined; cause?: unknown
      type?: string | undefined; problem?: Record<string, unknown>
    }
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
