import { RpcRefused, type JsonRpc } from '../rpc.ts'

/**
 * JSON_RPC_SERVER_ERROR_UNSUPPORTED_TRANSACTION_VERSION: the answer holds a transaction of a
 * version above the one that was named.
 */
const UNSUPPORTED_VERSION = -32015
/** Versions whose messages were known when this was written. */
const KNOWN_VERSION = 1
/** The parameter is one byte. */
const ANY_VERSION = 255

/**
 * Calls a method whose answer may hold transactions of others. A transaction of a later version
 * must not hide the block that it is in: payments are read from the balances of accounts, which
 * every version has, so such an answer is requested again with any version allowed.
 * @param first the first parameter @param options further options
 */
export async function callAnyVersion<T>(
  call: JsonRpc,
  method: string,
  first: unknown,
  options: Record<string, unknown>,
): Promise<T> {
  const ask = (version: number) =>
    call<T>(method, [first, { ...options, maxSupportedTransactionVersion: version }])
  try {
    return await ask(KNOWN_VERSION)
  } catch (error) {
    if (error instanceof RpcRefused && error.rpcCode === UNSUPPORTED_VERSION)
      return ask(ANY_VERSION)
    throw error
  }
}
