/** An invalid request; the message is the response. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
}

/** A JSON-RPC error with the code that the production node uses. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}
