import type { Hex } from 'viem'
import { toHex } from 'viem/utils'
import type { RpcAnswer } from '../evm/anvil.ts'
import type { EthereumChain } from './chain.ts'

type Fields = Record<string, unknown>

const FAILED = -32000
/** Error by which the engine reports a block beyond its head. */
const BEYOND_HEAD = /^BlockOutOfRangeError/
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null

/** Returns an object without some of its fields. */
const without = (value: unknown, names: readonly string[]): unknown =>
  isFields(value)
    ? Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)))
    : value

const receipt = (value: unknown): unknown =>
  without(
    value,
    // geth reports the price of blobs only for transactions that have some (EIP-4844).
    isFields(value) && value['type'] === '0x3'
      ? ['blockTimestamp']
      : ['blockTimestamp', 'blobGasPrice'],
  )
const block = (value: unknown): unknown => without(value, ['totalDifficulty'])
const transaction = (value: unknown): unknown =>
  isFields(value) && value['blockHash'] === null ? { ...value, blockTimestamp: null } : value

function feeHistory(value: unknown, [count, , percentiles]: unknown[]): unknown {
  if (Number(count) === 0) return { oldestBlock: '0x0', gasUsedRatio: null }
  return Array.isArray(percentiles) && percentiles.length > 0 ? value : without(value, ['reward'])
}

const RESULTS: Record<string, (result: unknown, params: unknown[]) => unknown> = {
  eth_getBlockByHash: block,
  eth_getBlockByNumber: block,
  eth_getBlockReceipts: (receipts) => (Array.isArray(receipts) ? receipts.map(receipt) : receipts),
  eth_getTransactionByHash: transaction,
  eth_getTransactionReceipt: receipt,
  eth_feeHistory: feeHistory,
}

/**
 * Raises the price that the engine suggests to what the network's nodes accept.
 * @param method `eth_maxPriorityFeePerGas` or `eth_gasPrice`
 */
export async function suggestedPrice(
  { anvil, network }: EthereumChain,
  method: string,
  answer: RpcAnswer,
): Promise<RpcAnswer> {
  const { wei } = network.minTip
  if (typeof answer.result !== 'string' || network.legacy) return answer
  const suggested = BigInt(answer.result)
  if (method === 'eth_maxPriorityFeePerGas')
    return { ...answer, result: toHex(suggested > wei ? suggested : wei) }
  const head = await anvil.call<{ baseFeePerGas: Hex }>('eth_getBlockByNumber', 'latest', false)
  const least = BigInt(head.baseFeePerGas) + wei
  return { ...answer, result: toHex(suggested > least ? suggested : least) }
}

/** Turns the engine's response into geth's: its fields, and its error for an unknown state. */
export function gethAnswer(method: string, params: unknown[], answer: RpcAnswer): RpcAnswer {
  const { result, error } = answer
  if (error !== undefined && method !== 'eth_getLogs' && BEYOND_HEAD.test(error.message))
    return { ...answer, error: { code: FAILED, message: 'header not found' } }
  const turn = RESULTS[method]
  return turn === undefined || result === undefined
    ? answer
    : { ...answer, result: turn(result, params) }
}
