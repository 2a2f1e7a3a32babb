import type { Hex } from 'viem'
import { getAddress } from 'viem/utils'
import { RpcError } from '../errors.ts'
import type { Faults } from '../faults.ts'
import type { EthereumChain } from './chain.ts'

// Requests that geth 1.17 refuses and the engine answers, with geth's codes and words.

const FAILED = -32000
const INVALID_PARAMS = -32602
/** Gas limit with which geth simulates a call that names none: the most that a transaction has. */
const SIMULATION_GAS = 16_777_216n
/** Gas limit of geth's `--rpc.gascap`. */
const CALL_GAS = 50_000_000n
const ZERO_ADDRESS: Hex = `0x${'0'.repeat(40)}`
const TAGS = new Set(['latest', 'earliest', 'pending', 'safe', 'finalized'])
/** Position of the parameter that selects a block by number or tag. */
const BLOCK_PARAMETER: Record<string, number> = {
  eth_getBlockByNumber: 0,
  eth_getBlockReceipts: 0,
  eth_getBlockTransactionCountByNumber: 0,
  eth_call: 1,
  eth_estimateGas: 1,
  eth_feeHistory: 1,
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
  eth_getStorageAt: 2,
}

interface Call {
  from?: Hex
  value?: Hex
  gas?: Hex
  gasPrice?: Hex
  maxFeePerGas?: Hex
}
interface Filter {
  blockHash?: unknown
  fromBlock?: unknown
  toBlock?: unknown
}

/**
 * Checks a request before the engine answers it.
 * @throws RpcError if geth refuses it
 */
export async function checkRequest(
  chain: EthereumChain,
  faults: Faults,
  method: string,
  params: unknown[],
): Promise<void> {
  checkBlockParameter(faults, method, params)
  if (method === 'eth_sendRawTransaction') checkBytes(params)
  if (method === 'eth_getLogs') checkFilter(chain.head.height, params[0])
  if (method === 'eth_feeHistory') checkFeeHistory(chain.head.height, params)
  if (method === 'eth_estimateGas' || method === 'eth_call') await checkFunds(chain, method, params)
}

function checkBlockParameter(faults: Faults, method: string, params: unknown[]): void {
  const at = BLOCK_PARAMETER[method]
  const block = at === undefined ? undefined : params[at]
  if (typeof block !== 'string') return
  if (!TAGS.has(block) && !block.startsWith('0x'))
    throw new RpcError(INVALID_PARAMS, `invalid argument ${at}: hex string without 0x prefix`)
  if (faults.mode === 'no-final' && (block === 'finalized' || block === 'safe'))
    throw new RpcError(FAILED, `${block} block not found`)
}

function checkBytes(params: unknown[]): void {
  const [raw] = params
  const reads = (what: string) =>
    new RpcError(
      INVALID_PARAMS,
      `invalid argument 0: json: cannot unmarshal ${what} into Go value of type hexutil.Bytes`,
    )
  if (raw === undefined || raw === null)
    throw new RpcError(INVALID_PARAMS, 'missing value for required argument 0')
  if (typeof raw !== 'string') throw reads('non-string')
  if (!raw.startsWith('0x')) throw reads('hex string without 0x prefix')
}

/** @param head height of the newest block */
function checkFilter(head: number, filter: unknown): void {
  if (typeof filter !== 'object' || filter === null) return
  const { blockHash, fromBlock, toBlock } = filter as Filter
  if (blockHash !== undefined && blockHash !== null) {
    if (fromBlock !== undefined || toBlock !== undefined)
      throw new RpcError(
        INVALID_PARAMS,
        'invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other',
      )
    return
  }
  const [from, to] = [heightOf(fromBlock, head), heightOf(toBlock, head)]
  if (from === null || to === null) return
  if (from > to) throw new RpcError(INVALID_PARAMS, 'invalid block range params')
  if (to > head) throw new RpcError(INVALID_PARAMS, 'block range extends beyond current head block')
}

/** Returns the height that a number or tag names; null if it depends on finality. */
function heightOf(block: unknown, head: number): number | null {
  if (block === undefined || block === null || block === 'latest') return head
  if (block === 'earliest') return 0
  return typeof block === 'string' && block.startsWith('0x') ? Number(block) : null
}

/** @param head height of the newest block */
function checkFeeHistory(head: number, [, newest, percentiles]: unknown[]): void {
  if (percentiles === null)
    throw new RpcError(INVALID_PARAMS, 'missing value for required argument 2')
  const numbers = Array.isArray(percentiles) ? percentiles.map(Number) : []
  for (const [at, percentile] of numbers.entries()) {
    if (!(percentile >= 0 && percentile <= 100))
      throw new RpcError(FAILED, `invalid reward percentile: ${percentile.toFixed(6)}`)
    const previous = numbers[at - 1]
    if (previous !== undefined && percentile <= previous)
      throw new RpcError(
        FAILED,
        `invalid reward percentile: #${at - 1}:${previous.toFixed(6)} >= #${at}:${percentile.toFixed(6)}`,
      )
  }
  const height = typeof newest === 'string' && newest.startsWith('0x') ? Number(newest) : head
  if (height > head)
    throw new RpcError(FAILED, `request beyond head block: requested ${height}, head ${head}`)
}

/** A simulated call needs the coins that it pays, even if it names no gas price. */
async function checkFunds(
  chain: EthereumChain,
  method: 'eth_call' | 'eth_estimateGas',
  [call, block = 'latest', overrides]: unknown[],
): Promise<void> {
  if (typeof call !== 'object' || call === null || overrides !== undefined) return
  const { from = ZERO_ADDRESS, value, gas, gasPrice, maxFeePerGas } = call as Call
  const paid = quantityOf(value)
  if (paid === 0n) return
  const held = await chain.anvil.call<Hex>('eth_getBalance', from, block).then(BigInt, () => null)
  // The engine reports what is wrong with the address or the block.
  if (held === null) return
  const price = quantityOf(maxFeePerGas ?? gasPrice)
  if (method === 'eth_estimateGas' && price > 0n && paid >= held)
    throw new RpcError(FAILED, 'insufficient funds for transfer')
  if (paid <= held) return
  const lacks = `insufficient funds for gas * price + value: address ${getAddress(from)} have ${held} want ${paid}`
  throw new RpcError(
    FAILED,
    method === 'eth_estimateGas'
      ? `failed with ${quantityOf(gas) || SIMULATION_GAS} gas: ${lacks}`
      : `err: ${lacks} (supplied gas ${quantityOf(gas) || CALL_GAS})`,
  )
}

/** Returns a number in hex; 0 if there is none. */
const quantityOf = (value: unknown): bigint =>
  typeof value === 'string' && /^0x[0-9a-f]+$/i.test(value) ? BigInt(value) : 0n
