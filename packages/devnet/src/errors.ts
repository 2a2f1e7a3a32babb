/** A mistake in a request: its message is the answer. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
}

/** An error of the JSON-RPC protocol, with the code the production node uses. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}
