import type { Hex } from 'viem'
import type { Faults } from '../faults.ts'
import type { RpcAnswer } from '../evm/anvil.ts'
import type { EthereumChain } from './chain.ts'
import { size, toHex } from 'viem/utils'
import { RpcError } from '../errors.ts'
import { gethAnswer, suggestedPrice } from './geth-answers.ts'
import { asGeth, isBelowBaseFee, readTransaction, waitingTransaction } from './policy.ts'
import { poolRefusal } from './pool-rules.ts'
import { checkRequest } from './refused-requests.ts'
import { charged, estimatedPosterGas, operatorFeeCall } from './rollup.ts'

/**
 * Methods that a production node serves. Others, in particular the engine's test methods, are
 * rejected.
 */
const METHODS = new Set([
  'eth_blobBaseFee',
  'eth_blockNumber',
  'eth_call',
  'eth_chainId',
  'eth_createAccessList',
  'eth_estimateGas',
  'eth_feeHistory',
  'eth_gasPrice',
  'eth_getBalance',
  'eth_getBlockByHash',
  'eth_getBlockByNumber',
  'eth_getBlockReceipts',
  'eth_getBlockTransactionCountByHash',
  'eth_getBlockTransactionCountByNumber',
  'eth_getCode',
  'eth_getLogs',
  'eth_getProof',
  'eth_getRawTransactionByHash',
  'eth_getStorageAt',
  'eth_getTransactionByBlockHashAndIndex',
  'eth_getTransactionByBlockNumberAndIndex',
  'eth_getTransactionByHash',
  'eth_getTransactionCount',
  'eth_getTransactionReceipt',
  'eth_maxPriorityFeePerGas',
  'eth_sendRawTransaction',
  'eth_syncing',
  'net_listening',
  'net_peerCount',
  'net_version',
  'txpool_content',
  'txpool_inspect',
  'txpool_status',
  'web3_clientVersion',
  'web3_sha3',
])

/** Methods that were introduced with the base fee. */
const FEE_MARKET_METHODS = new Set([
  'eth_blobBaseFee',
  'eth_feeHistory',
  'eth_maxPriorityFeePerGas',
])

/** Methods that suggest a price per gas. */
const PRICES = new Set(['eth_gasPrice', 'eth_maxPriorityFeePerGas'])

/** Methods that tell a fee. */
const FEES = new Set([...PRICES, 'eth_feeHistory'])

/** Minimum tip in wei of a pool whose operator has raised it. */
const POOL_TIP = 3_000_000_000n

/** Code of geth's own errors. */
const REFUSED = -32000

type RpcRequest = { id?: unknown; method?: unknown; params?: unknown }

/**
 * Handles one HTTP body, single or batch. Returns the text of the response, or undefined to close
 * the connection without one.
 */
export async function ethereumRpc(
  chain: EthereumChain,
  faults: Faults,
  body: string,
): Promise<string | undefined> {
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    return JSON.stringify(failure(null, -32700, 'parse error'))
  }
  const requests = Array.isArray(parsed) ? (parsed as RpcRequest[]) : [parsed as RpcRequest]
  if (requests.length === 0) return JSON.stringify(failure(null, -32600, 'empty batch'))
  let broadcast = false
  const answers: RpcAnswer[] = []
  for (const request of requests) {
    answers.push(await chain.lock.read(() => answer(chain, faults, request)))
    if (request?.method === 'eth_sendRawTransaction') broadcast = true
  }
  if (broadcast && faults.mode === 'drop-answer') return undefined
  return JSON.stringify(Array.isArray(parsed) ? answers : answers[0])
}

async function answer(
  chain: EthereumChain,
  faults: Faults,
  request: RpcRequest,
): Promise<RpcAnswer> {
  const id = request?.id ?? null
  const method = request?.method
  if (typeof method !== 'string') return failure(id, -32600, 'invalid request')
  if (!METHODS.has(method) || (chain.network.legacy && FEE_MARKET_METHODS.has(method))) {
    return failure(id, -32601, `the method ${method} does not exist/is not available`)
  }
  const params = Array.isArray(request.params) ? (request.params as unknown[]) : []
  try {
    return { ...(await served(chain, faults, method, params)), id }
  } catch (error) {
    if (error instanceof RpcError) return failure(id, error.code, error.message)
    return failure(id, -32603, 'the node is restarting')
  }
}

/** @throws RpcError if the request is refused */
async function served(
  chain: EthereumChain,
  faults: Faults,
  method: string,
  params: unknown[],
): Promise<RpcAnswer> {
  await checkRequest(chain, faults, method, params)
  if (faults.mode === 'no-estimate' && FEES.has(method))
    throw new RpcError(REFUSED, 'the fee history is not available')
  const held = method === 'eth_getTransactionByHash' ? chain.held.get(params[0] as Hex) : undefined
  if (held) return success(waitingTransaction(params[0] as Hex, held))
  if (method === 'eth_sendRawTransaction') return sendRawTransaction(chain, faults, params)
  const fee =
    method === 'eth_call'
      ? operatorFeeCall(chain.network.rollup, chain.network.predeploys[0]?.address, params[0])
      : undefined
  if (fee !== undefined) return success(fee)
  const answered = gethAnswer(method, params, await forward(chain, method, params))
  if (PRICES.has(method)) return suggestedPrice(chain, method, answered)
  return withCharges(chain, method, params, answered)
}

/** Adds the fees of a roll-up to the engine's response. */
function withCharges(
  chain: EthereumChain,
  method: string,
  params: unknown[],
  answered: RpcAnswer,
): RpcAnswer {
  const { result } = answered
  if (chain.network.rollup === null || result === undefined || result === null) return answered
  if (method === 'eth_estimateGas' && chain.network.rollup === 'arbitrum') {
    const { data, input } = (params[0] ?? {}) as { data?: Hex; input?: Hex }
    const poster = estimatedPosterGas(size(input ?? data ?? '0x'), chain.head.height + 1)
    return { ...answered, result: toHex(BigInt(result as Hex) + poster) }
  }
  const of = (receipt: { transactionHash: Hex; gasUsed: Hex }) =>
    charged(receipt, chain.chargeOf(receipt.transactionHash))
  if (method === 'eth_getTransactionReceipt')
    return { ...answered, result: of(result as Parameters<typeof of>[0]) }
  if (method === 'eth_getBlockReceipts')
    return { ...answered, result: (result as Parameters<typeof of>[0][]).map(of) }
  return answered
}

async function sendRawTransaction(
  chain: EthereumChain,
  faults: Faults,
  params: unknown[],
): Promise<RpcAnswer> {
  if (faults.mode === 'reject') throw new RpcError(REFUSED, 'txpool is full')
  const read = await readTransaction(params[0])
  if (faults.mode === 'price' && read && read.pending.tip < POOL_TIP)
    throw new RpcError(
      REFUSED,
      `transaction gas price below minimum: gas tip cap ${read.pending.tip}, minimum needed ${POOL_TIP}`,
    )
  const refusal = read && (await poolRefusal(chain, read))
  if (refusal) throw new RpcError(REFUSED, refusal)
  const response = await forward(chain, 'eth_sendRawTransaction', params)
  if (response.error && read && isBelowBaseFee(response.error.message)) {
    chain.held.add(read.pending.hash, read.pending)
    return success(read.pending.hash)
  }
  if (response.error) return { ...response, error: asGeth(response.error) }
  if (read) chain.broadcast(response.result as Hex, read.pending)
  return response
}

async function forward(
  chain: EthereumChain,
  method: string,
  params: unknown[],
): Promise<RpcAnswer> {
  return (await chain.anvil.send({ jsonrpc: '2.0', id: 1, method, params })) as RpcAnswer
}

const success = (result: unknown): RpcAnswer => ({ jsonrpc: '2.0', id: null, result })

function failure(id: unknown, code: number, message: string): RpcAnswer {
  return { jsonrpc: '2.0', id, error: { code, message } }
}
