import { RpcUnavailable } from '../rpc.ts'

const METHOD_NOT_FOUND = -32601
/**
 * Error codes of endpoints that do not serve a method, or not by a block's hash (JSON-RPC 2.0,
 * EIP-1474).
 */
export const NOT_SERVED: readonly number[] = [METHOD_NOT_FOUND, -32602, -32004]

// Responses of an EVM endpoint, limited to the fields that are read here. Every field may be
// absent: endpoints omit some, and return null for others.

export interface RpcTransaction {
  hash: string
  from?: string
  to?: string | null
  value?: string | null
  type?: unknown
  blockHash?: string | null
  gasPrice?: string | null
  maxFeePerGas?: string | null
  maxPriorityFeePerGas?: string | null
}
export interface RpcBlock {
  number: string
  hash: string
  parentHash: string
  timestamp?: string
  logsBloom?: string
  baseFeePerGas?: string | null
  transactionsRoot?: string
  transactions: RpcTransaction[]
  withdrawals?: unknown
}
export interface RpcReceipt {
  transactionHash?: string
  status: string
  gasUsed: string
  effectiveGasPrice?: string | null
  blockNumber: string
  blockHash: string
  l1Fee?: string | null
  operatorFeeScalar?: string | null
  operatorFeeConstant?: string | null
  daFootprintGasScalar?: string | null
  logs?: RpcLog[]
  logsBloom?: string
}
export interface RpcLog {
  address: string
  topics: string[]
  data: string
  logIndex: string
  transactionHash: string
  blockHash: string
  blockNumber?: string
  removed?: boolean
}

const QUANTITY = /^0x[0-9a-fA-F]{1,64}$/
const ADDRESS = /^0x[0-9a-fA-F]{40}$/
const WORD = /^0x[0-9a-fA-F]{64}$/
const BYTES = /^0x(?:[0-9a-fA-F]{2})*$/
/**
 * Roots of an empty trie: the standard one (Yellow Paper, appendix D), and the values that some
 * networks use instead.
 */
const EMPTY_ROOTS = new Set([
  '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421',
  `0x${'0'.repeat(64)}`,
  '',
  '0x',
])

/** Reads the fields of one response. Errors name the network, the method and the field. */
export class Answer {
  readonly #where: string

  constructor(network: string, method: string) {
    this.#where = `${network}: ${method}`
  }

  /**
   * Reports a problem with the response.
   * @throws RpcUnavailable always
   */
  refuse(problem: string): never {
    throw new RpcUnavailable(`${this.#where} ${problem}`)
  }

  /**
   * Reads a number in hex, such as `0x5208`.
   * @throws RpcUnavailable if it is not one
   */
  quantity(value: unknown, field: string): bigint {
    if (value === undefined || value === null) return this.refuse(`returned no ${field}`)
    if (typeof value !== 'string' || !QUANTITY.test(value))
      return this.refuse(`returned a ${field} that is not a hexadecimal number`)
    return BigInt(value)
  }

  /**
   * Reads a text.
   * @throws RpcUnavailable if it is not one
   */
  text(value: unknown, field: string): string {
    if (value === undefined || value === null) return this.refuse(`returned no ${field}`)
    if (typeof value !== 'string' || value === '')
      return this.refuse(`returned a ${field} that is not a string`)
    return value
  }

  /**
   * Reads the hash of a block or transaction.
   * @throws RpcUnavailable if it is not one
   */
  hash(value: unknown, field: string): string {
    const text = this.text(value, field)
    return text.startsWith('0x') ? text : this.refuse(`returned a ${field} that is not hexadecimal`)
  }

  /**
   * Reads an address, with or without a checksum.
   * @throws RpcUnavailable if it is not one
   */
  address(value: unknown, field: string): string {
    const text = this.text(value, field)
    return ADDRESS.test(text) ? text : this.refuse(`returned a ${field} that is not an address`)
  }

  /**
   * Reads a list.
   * @throws RpcUnavailable if it is not one
   */
  list<T>(value: unknown, field: string): T[] {
    if (value === undefined || value === null) return this.refuse(`returned no ${field}`)
    if (!Array.isArray(value)) return this.refuse(`returned ${field} that are not a list`)
    return value as T[]
  }
}

/** Returns the number if a response contains one above zero; otherwise null. */
export function positive(value: unknown): bigint | null {
  if (typeof value !== 'string' || !QUANTITY.test(value)) return null
  const number = BigInt(value)
  return number > 0n ? number : null
}

/**
 * Checks that a block has every required field, the requested height, and only its own
 * transactions.
 * @param height requested height; null: the newest block
 * @throws RpcUnavailable
 */
export function checkBlock(network: string, block: RpcBlock, height: number | null): RpcBlock {
  const answer = new Answer(network, 'eth_getBlockByNumber')
  const number = answer.quantity(block.number, 'number')
  if (height !== null && number !== BigInt(height))
    answer.refuse('returned a block of another height')
  answer.hash(block.hash, 'hash')
  if (height === null) return block
  answer.hash(block.parentHash, 'parentHash')
  if (block.parentHash === block.hash)
    answer.refuse(`returned the block ${block.hash} as its own parent`)
  const hashes = new Set<string>()
  for (const each of answer.list<RpcTransaction>(block.transactions, 'transactions')) {
    const hash = answer.hash((each as RpcTransaction | null)?.hash, 'transactions.hash')
    if (typeof each.blockHash === 'string' && each.blockHash !== block.hash) {
      answer.refuse(`returned the transaction ${hash} of another block than ${block.hash}`)
    }
    if (hashes.has(hash)) answer.refuse(`returned the transaction ${hash} twice in ${block.hash}`)
    hashes.add(hash)
  }
  return block
}

/**
 * Returns the receiver of a transaction; null if it creates a contract.
 * @throws RpcUnavailable if the field is missing
 */
export function payeeOf(answer: Answer, { hash, to }: RpcTransaction): string | null {
  if (to === null || to === '' || to === '0x') return null
  if (to === undefined) return answer.refuse(`returned no transactions.to of ${hash}`)
  return ADDRESS.test(to)
    ? to
    : answer.refuse(`returned transactions.to of ${hash} that is not an address`)
}

/**
 * Transaction types whose fields are known: legacy, EIP-2930, 1559, 4844 and 7702, and the deposits
 * of OP Stack and Arbitrum. Each contains its payment.
 */
const KNOWN_TYPES = /^0x0*(?:[0-4]|7e|6[4-6]|6[89a])$/i

/**
 * Returns whether a transaction has an unknown type. It may lack `to` and `value`, which is not an
 * endpoint's fault.
 */
export const isOfUnknownType = ({ type }: RpcTransaction): boolean =>
  type !== undefined && type !== null && !KNOWN_TYPES.test(String(type))

/**
 * Returns an address that a response may lack. The sender of a payment is used only for screening.
 */
export const partyOf = (value: unknown): string | undefined =>
  typeof value === 'string' && ADDRESS.test(value) ? value : undefined

/**
 * Returns whether a block without transactions has the root of a non-empty list. On some networks
 * the root covers other data too, so the endpoint is queried.
 */
export const mayHideTransactions = ({ transactions, transactionsRoot }: RpcBlock): boolean =>
  transactions.length === 0 &&
  typeof transactionsRoot === 'string' &&
  !EMPTY_ROOTS.has(transactionsRoot.toLowerCase())

/** Returns the transactions that logs name and that the block does not list. */
export function foreignLogs(block: RpcBlock, logs: readonly RpcLog[]): string[] {
  const transactions = new Set(block.transactions.map(({ hash }) => hash))
  return [...new Set(logs.map(({ transactionHash }) => transactionHash))].filter(
    (hash) => !transactions.has(hash),
  )
}

/**
 * Checks that every log belongs to this block, and that none is repeated.
 * @param method that returned them
 * @throws RpcUnavailable
 */
export function checkLogs(
  network: string,
  method: string,
  block: RpcBlock,
  logs: unknown,
): RpcLog[] {
  const answer = new Answer(network, method)
  const places = new Set<bigint>()
  const checked = answer.list<RpcLog>(logs, 'logs')
  for (const log of checked) {
    if (typeof log !== 'object' || log === null)
      answer.refuse('returned a log that is not an object')
    if (log.blockHash !== block.hash)
      answer.refuse(`returned logs of another block than ${block.hash}`)
    if (log.removed === true)
      answer.refuse(`returned a log of ${block.hash} that is removed: the block has left the chain`)
    if (
      typeof log.blockNumber === 'string' &&
      answer.quantity(log.blockNumber, 'blockNumber') !== BigInt(block.number)
    ) {
      answer.refuse(`returned a log of ${block.hash} with another blockNumber`)
    }
    answer.hash(log.transactionHash, 'transactionHash')
    const place = answer.quantity(log.logIndex, 'logIndex')
    if (places.has(place)) answer.refuse(`returned the logIndex ${place} twice in ${block.hash}`)
    places.add(place)
    if (!ADDRESS.test(answer.text(log.address, 'address')))
      answer.refuse('returned a log without a valid address')
    for (const topic of answer.list<string>(log.topics, 'topics')) {
      if (!WORD.test(answer.text(topic, 'topics')))
        answer.refuse('returned a log with topics that are not 32 hexadecimal bytes')
    }
    if (!BYTES.test(answer.text(log.data, 'data')))
      answer.refuse('returned a log whose data are not hexadecimal bytes')
  }
  return checked
}
