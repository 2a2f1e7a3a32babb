import { RpcUnavailable } from '../rpc.ts'

export const METHOD_NOT_FOUND = -32601
/**
 * How endpoints say that they do not serve a method, or not by a block's hash (JSON-RPC 2.0,
 * EIP-1474).
 */
export const NOT_SERVED: readonly number[] = [METHOD_NOT_FOUND, -32602, -32004]

// What an EVM endpoint answers, as far as it is read here. Every field may be absent: endpoints
// leave out some, and answer null.

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
  logsBloom?: string
  baseFeePerGas?: string | null
  transactionsRoot?: string
  transactions: RpcTransaction[]
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
 * Root of the trie without entries (Yellow Paper, appendix D), and what some networks write in its
 * place.
 */
const EMPTY_ROOTS = new Set([
  '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421',
  `0x${'0'.repeat(64)}`,
  '',
  '0x',
])

/** Reads the fields of one answer. Errors name the network, the method and the field. */
export class Answer {
  readonly #where: string

  constructor(network: string, method: string) {
    this.#where = `${network}: ${method}`
  }

  /** @throws RpcUnavailable always */
  refuse(problem: string): never {
    throw new RpcUnavailable(`${this.#where} ${problem}`)
  }

  /** A number in hex, such as `0x5208`. @throws RpcUnavailable */
  quantity(value: unknown, field: string): bigint {
    if (value === undefined || value === null) return this.refuse(`returned no ${field}`)
    if (typeof value !== 'string' || !QUANTITY.test(value))
      return this.refuse(`returned a ${field} that is not a hexadecimal number`)
    return BigInt(value)
  }

  /** @throws RpcUnavailable */
  text(value: unknown, field: string): string {
    if (value === undefined || value === null) return this.refuse(`returned no ${field}`)
    if (typeof value !== 'string' || value === '')
      return this.refuse(`returned a ${field} that is not a string`)
    return value
  }

  /** The hash of a block or transaction. @throws RpcUnavailable */
  hash(value: unknown, field: string): string {
    const text = this.text(value, field)
    return text.startsWith('0x') ? text : this.refuse(`returned a ${field} that is not hexadecimal`)
  }

  /** @throws RpcUnavailable */
  list<T>(value: unknown, field: string): T[] {
    if (value === undefined || value === null) return this.refuse(`returned no ${field}`)
    if (!Array.isArray(value)) return this.refuse(`returned ${field} that are not a list`)
    return value as T[]
  }
}

/** The number, where an answer has one and it is above zero. */
export function positive(value: unknown): bigint | null {
  if (typeof value !== 'string' || !QUANTITY.test(value)) return null
  const number = BigInt(value)
  return number > 0n ? number : null
}

/**
 * The block, each field that is needed being there, of the height that was asked for and with
 * transactions of its own only.
 * @param height what was asked for; null: whatever is newest
 * @throws RpcUnavailable
 */
export function checkBlock(network: string, block: RpcBlock, height: number | null): RpcBlock {
  const answer = new Answer(network, 'eth_getBlockByNumber')
  const number = answer.quantity(block.number, 'number')
  if (height !== null && number !== BigInt(height)) answer.refuse('returned another height')
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
 * Whom a transaction pays; null where it creates a contract. @throws RpcUnavailable where it does
 * not say
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
 * of OP Stack and Arbitrum. Each names what it pays.
 */
const KNOWN_TYPES = /^0x0*(?:[0-4]|7e|6[4-6]|6[89a])$/i

/**
 * Whether a transaction has a type that is not known here: it may lack `to` and `value`, and is no
 * fault of the endpoint.
 */
export const isOfUnknownType = ({ type }: RpcTransaction): boolean =>
  type !== undefined && type !== null && !KNOWN_TYPES.test(String(type))

/**
 * An address that an answer may lack: who is behind a payment is screened, and nothing else depends
 * on it.
 */
export const partyOf = (value: unknown): string | undefined =>
  typeof value === 'string' && ADDRESS.test(value) ? value : undefined

/**
 * Whether a block that shows no transaction has the root of some. Some networks' roots cover other
 * things too: the endpoint is asked.
 */
export const mayHideTransactions = ({ transactions, transactionsRoot }: RpcBlock): boolean =>
  transactions.length === 0 &&
  typeof transactionsRoot === 'string' &&
  !EMPTY_ROOTS.has(transactionsRoot.toLowerCase())

/** Transactions that logs name and that the block does not show. */
export function foreignLogs(block: RpcBlock, logs: readonly RpcLog[]): string[] {
  const transactions = new Set(block.transactions.map(({ hash }) => hash))
  return [...new Set(logs.map(({ transactionHash }) => transactionHash))].filter(
    (hash) => !transactions.has(hash),
  )
}

/**
 * Logs, each of which is of this block, and none of which comes twice.
 * @param method that answered them @throws RpcUnavailable
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
