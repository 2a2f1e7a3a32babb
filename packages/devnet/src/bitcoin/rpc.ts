import { RpcError } from '../errors.ts'
import type { Faults } from '../faults.ts'
import type { BitcoinChain } from './chain.ts'
import { btc, toJson } from './json.ts'
import { METHODS } from './methods.ts'
import type { Params } from './parameters.ts'
import { outpoint, parseTx, type Tx } from './transaction.ts'

const INVALID_REQUEST = -32600
const METHOD_NOT_FOUND = -32601
const INVALID_PARAMETER = -8
const INTERNAL = -32603
const PARSE = -32700

/** Response of a node that has not yet seen enough blocks with transactions. */
const NO_ESTIMATE = { errors: ['Insufficient data or no feerate found'], blocks: 0 }

/** Core's words for a transaction in a block while it builds its index. */
const UNINDEXED =
  'No such mempool transaction. Blockchain transactions are still in the process of being indexed. Use gettransaction for wallet transactions.'
/** Factor by which the minimum fee rate of a full pool exceeds the usual one. */
const POOL_PRICE = 12n

type RpcRequest = { jsonrpc?: unknown; id?: unknown; method?: unknown; params?: unknown }
type Answer = { body: Record<string, unknown>; code: number }

/** Handles one HTTP body, single or batch. Undefined closes the connection without a response. */
export function bitcoinRpc(
  chain: BitcoinChain,
  faults: Faults,
  body: string,
): { status: number; body: string } | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    return { status: 500, body: toJson(failure(null, PARSE, 'Parse error').body) }
  }
  const isBatch = Array.isArray(parsed)
  const requests = (isBatch ? parsed : [parsed]) as RpcRequest[]
  const answers = requests.map((request) => answer(chain, faults, request))
  if (
    faults.mode === 'drop-answer' &&
    requests.some((request) => request?.method === 'sendrawtransaction')
  )
    return undefined
  if (isBatch) return { status: 200, body: `${toJson(answers.map((one) => one.body))}\n` }
  const { code, body: text } = answers[0]!
  return { status: httpStatus(requests[0]!, code), body: `${toJson(text)}\n` }
}

/** JSON-RPC 1.x errors have an HTTP error status, 2.0 errors do not. */
function httpStatus(request: RpcRequest, code: number): number {
  if (code === 0 || request?.jsonrpc === '2.0') return 200
  if (code === INVALID_REQUEST) return 400
  return code === METHOD_NOT_FOUND ? 404 : 500
}

function answer(chain: BitcoinChain, faults: Faults, request: RpcRequest): Answer {
  const id = request?.id ?? null
  const modern = request?.jsonrpc === '2.0'
  try {
    if (typeof request !== 'object' || request === null)
      throw new RpcError(INVALID_REQUEST, 'Invalid Request object')
    if (typeof request.method !== 'string')
      throw new RpcError(INVALID_REQUEST, 'Method must be a string')
    const method = METHODS.get(request.method)
    const other =
      request.method.startsWith('estimate') && request.method !== chain.network.fees.method
    if (!method || other) throw new RpcError(METHOD_NOT_FOUND, 'Method not found')
    const params = positional(request.params, method.params)
    checkFaults(chain, faults, request.method, params)
    const ran = method.run(chain, params)
    const result = faulty(chain, faults, request.method, ran)
    return { code: 0, body: modern ? { jsonrpc: '2.0', result, id } : { result, error: null, id } }
  } catch (error) {
    if (error instanceof RpcError) return failure(id, error.code, error.message, modern)
    console.error(
      `devnet: ${chain.network.code} ${String(request?.method)}: ${(error as Error).stack}`,
    )
    return failure(id, INTERNAL, (error as Error).message, modern)
  }
}

/** @throws RpcError if the node refuses a request in its current mode */
function checkFaults(chain: BitcoinChain, { mode }: Faults, method: string, params: Params): void {
  if (method === 'sendrawtransaction' && mode === 'reject') throw new RpcError(-26, 'mempool full')
  if (method === 'sendrawtransaction' && mode === 'price') checkPrice(chain, params[0])
  // A block that the caller names is read without an index.
  if (method === 'getrawtransaction' && mode === 'no-index' && params[2] === undefined) {
    if (!chain.mempool.entries.has(String(params[0]))) throw new RpcError(-5, UNINDEXED)
  }
}

/** @throws RpcError if the node's full pool requires a higher fee */
function checkPrice(chain: BitcoinChain, hex: unknown): void {
  let tx: Tx
  try {
    tx = parseTx(Buffer.from(String(hex), 'hex'), chain.network)
  } catch {
    // The method itself reports what is wrong with the bytes.
    return
  }
  const coins = tx.ins.map(({ txid, vout }) => chain.mempool.coin(outpoint(txid, vout)))
  if (coins.some((coin) => coin === undefined)) return
  const paid = coins.reduce((sum, coin) => sum + coin!.value, 0n)
  const fee = paid - tx.outs.reduce((sum, { value }) => sum + value, 0n)
  const least = POOL_PRICE * chain.network.relayRate * BigInt(tx.vsize)
  if (fee < least) throw new RpcError(-26, `mempool min fee not met, ${fee} < ${least}`)
}

/** Returns the answer of a node in its current mode, given its usual answer. */
function faulty(
  { network }: BitcoinChain,
  { mode }: Faults,
  method: string,
  usual: unknown,
): unknown {
  if (mode === 'no-estimate' && method === network.fees.method) return NO_ESTIMATE
  if (mode === 'no-index' && method === 'getindexinfo')
    return { txindex: { synced: false, best_block_height: 0 } }
  if (mode === 'price' && method === 'getmempoolinfo')
    return { ...(usual as object), mempoolminfee: btc(POOL_PRICE * network.relayRate * 1000n) }
  return usual
}

/** Converts parameters to positions. Core accepts them by position or by name. */
function positional(params: unknown, names: readonly string[]): Params {
  if (params === undefined || params === null) return []
  if (Array.isArray(params)) {
    if (params.length > names.length)
      throw new RpcError(-1, `too many parameters: at most ${names.length}`)
    return params
  }
  if (typeof params !== 'object')
    throw new RpcError(INVALID_REQUEST, 'Params must be an array or object')
  const named = params as Record<string, unknown>
  const unknownName = Object.keys(named).find((name) => !names.includes(name))
  if (unknownName !== undefined)
    throw new RpcError(INVALID_PARAMETER, `Unknown named parameter ${unknownName}`)
  return names.map((name) => named[name])
}

function failure(id: unknown, code: number, message: string, modern = false): Answer {
  const error = { code, message }
  return { code, body: modern ? { jsonrpc: '2.0', error, id } : { result: null, error, id } }
}
