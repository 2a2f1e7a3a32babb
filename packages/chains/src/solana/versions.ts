import { RpcRefused, type JsonRpc } from '../rpc.ts'

/**
 * JSON_RPC_SERVER_ERROR_UNSUPPORTED_TRANSACTION_VERSION: the response would contain a transaction
 * of a version above the requested one.
 */
const UNSUPPORTED_VERSION = -32015
/** Highest transaction version that was known when this was written. */
const KNOWN_VERSION = 1
/** Highest value of the version parameter, which is one byte. */
const ANY_VERSION = 255

/**
 * Calls a method whose response may contain other people's transactions. A transaction of a later
 * version must not hide its block. Payments are read from the balances of accounts, which every
 * version has, so the request is repeated with any version allowed.
 * @param first the first parameter
 * @param options further options
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
