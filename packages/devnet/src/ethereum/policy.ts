import type { Hex } from 'viem'
import {
  keccak256,
  parseTransaction,
  recoverAddress,
  serializeTransaction,
  toHex,
} from 'viem/utils'

/**
 * Data of a waiting transaction that the rules for further ones need. `cost`: the most wei that it
 * may take from its sender.
 */
export type Pending = {
  hash: Hex
  raw: Hex
  sender: Hex
  nonce: number
  maxFee: bigint
  tip: bigint
  cost: bigint
}
/** A signed transaction that was read. */
export type ReadTransaction = { pending: Pending; highS: boolean }

const HALF_ORDER = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n
const BUMP_PERCENT = 10n

/**
 * Reads a signed transaction. The engine accepts signatures with a high s, which the main network
 * rejects since 2016 (EIP-2). Undefined: not a transaction, so the engine's response is used.
 */
export async function readTransaction(raw: unknown): Promise<ReadTransaction | undefined> {
  try {
    const { r, s, v, yParity, ...tx } = parseTransaction(raw as Hex)
    if (r === undefined || s === undefined) return undefined
    const sender = await recoverAddress({
      hash: keccak256(serializeTransaction(tx as Parameters<typeof serializeTransaction>[0])),
      signature: { r, s, v, yParity } as Parameters<typeof recoverAddress>[0]['signature'],
    })
    const price = tx.gasPrice ?? 0n
    const maxFee = tx.maxFeePerGas ?? price
    return {
      highS: BigInt(s) > HALF_ORDER,
      pending: {
        hash: keccak256(raw as Hex),
        raw: raw as Hex,
        sender,
        nonce: tx.nonce ?? 0,
        maxFee,
        tip: tx.maxPriorityFeePerGas ?? price,
        cost: (tx.value ?? 0n) + (tx.gas ?? 0n) * maxFee,
      },
    }
  } catch {
    return undefined
  }
}

/** Returns whether `next` pays too little to replace a waiting transaction with the same nonce. */
export function isUnderpriced(next: Pending, waiting: Iterable<Pending>): boolean {
  for (const old of waiting) {
    if (old.sender !== next.sender || old.nonce !== next.nonce || old.raw === next.raw) continue
    const bumped = (field: 'maxFee' | 'tip') =>
      next[field] * 100n >= old[field] * (100n + BUMP_PERCENT) && next[field] > old[field]
    if (!bumped('maxFee') || !bumped('tip')) return true
  }
  return false
}

/** Returns whether the engine rejected a transaction that a production node would keep waiting. */
export function isBelowBaseFee(message: string): boolean {
  return message === 'max fee per gas less than block base fee'
}

/** Returns a waiting transaction as `eth_getTransactionByHash` does. */
export function waitingTransaction(hash: Hex, { raw, sender }: Pending): Record<string, unknown> {
  const {
    type,
    chainId,
    nonce,
    gas,
    to,
    value,
    data,
    gasPrice,
    maxFeePerGas,
    maxPriorityFeePerGas,
    accessList,
    r,
    s,
    v,
    yParity,
  } = parseTransaction(raw)
  const hex = (number: bigint | number | undefined) =>
    number === undefined ? undefined : toHex(number)
  return {
    hash,
    from: sender,
    to: to ?? null,
    type: type === 'legacy' ? '0x0' : '0x2',
    chainId: hex(chainId),
    nonce: toHex(nonce ?? 0),
    gas: toHex(gas ?? 0n),
    value: toHex(value ?? 0n),
    input: data ?? '0x',
    accessList: type === 'legacy' ? undefined : (accessList ?? []),
    gasPrice: hex(gasPrice ?? maxFeePerGas),
    maxFeePerGas: hex(maxFeePerGas),
    maxPriorityFeePerGas: hex(maxPriorityFeePerGas),
    r,
    s,
    v: hex(v ?? yParity),
    yParity: hex(yParity),
    blockHash: null,
    blockNumber: null,
    blockTimestamp: null,
    transactionIndex: null,
  }
}

/** Maps the engine's messages for a rejected broadcast to geth's, which clients match on. */
const GETH_WORDS: Record<string, string> = {
  'transaction already imported': 'already known',
  'Insufficient funds for gas * price + value': 'insufficient funds for gas * price + value',
}

export function asGeth({ message }: { code: number; message: string }): {
  code: number
  message: string
} {
  return { code: -32000, message: GETH_WORDS[message] ?? message }
}
