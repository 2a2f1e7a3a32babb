import { secp256k1 } from '@noble/curves/secp256k1.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { bech32 } from '@scure/base'
import type { Fetch } from '@custody/chains'

interface Sent {
  id: string
  from: string
  to: string
  amount: bigint
  fee: bigint
  sequence: number
  validUntil: number
}
interface Included extends Sent {
  nonce: number
  block: { height: number; hash: string }
}
interface Block {
  height: number
  hash: string
  parent: string
  time: number
  transactions: Sent[]
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const spell = (hash: Uint8Array) => bech32.encode('tmpl', bech32.toWords(hash))
const BYTES = 85

/**
 * The chain in memory, with its own protocol. It decodes transactions with separate code, because
 * shared code would hide errors of the builder.
 */
export class TemplateChain {
  readonly balances = new Map<string, bigint>()
  readonly pool = new Map<string, Sent>()
  readonly mined = new Map<string, Included>()
  readonly #sequences = new Map<string, number>()
  readonly #blocks: Block[] = []
  /** Seconds by which the chain's clock is ahead of the test's clock. */
  ahead = 0

  constructor() {
    for (let count = 0; count <= 10; count++) this.mine()
  }

  get height(): number {
    return this.#blocks.length - 1
  }

  get head(): Block {
    return this.#blocks.at(-1) as Block
  }

  /** Handles the platform's requests. */
  readonly fetch: Fetch = async (_url, { body }) => {
    const {
      id,
      method,
      params: [param],
    } = JSON.parse(String(body)) as { id: number; method: string; params: unknown[] }
    const answer = () => {
      switch (method) {
        case 'head':
          return { network_id: 7, ...this.head }
        case 'block':
          return this.#blocks[param as number] ?? null
        case 'account':
          return {
            balance: this.balances.get(param as string) ?? 0n,
            sequence: String(this.#next(param as string)),
          }
        case 'fee':
          return 1000n
        case 'send':
          return this.#send(param as string)
        default:
          return this.mined.get(param as string) ?? this.pool.get(param as string) ?? null
      }
    }
    let text: unknown
    try {
      text = { result: answer() }
    } catch (error) {
      text = { error: { code: 1, message: (error as Error).message } }
    }
    return new Response(
      JSON.stringify({ id, ...(text as object) }, (_key, value: unknown) =>
        typeof value === 'bigint' ? value.toString() : value,
      ),
    )
  }

  #next = (address: string): number => this.#sequences.get(address) ?? 0

  /** Adds a faucet payment to the next block. */
  pay(to: string, amount: bigint): void {
    const id = hex(sha256(Buffer.from(`faucet ${to} ${this.height}`)))
    this.pool.set(id, {
      id,
      from: spell(new Uint8Array(20).fill(1)),
      to,
      amount,
      fee: 0n,
      sequence: -1,
      validUntil: Infinity,
    })
  }

  #send(raw: string): string {
    const bytes = Buffer.from(raw, 'hex')
    const [message, signature, publicKey] = [
      bytes.subarray(0, BYTES),
      bytes.subarray(BYTES),
      bytes.subarray(32, 65),
    ]
    const digest = sha256(message)
    const sent: Sent = {
      id: hex(digest),
      from: spell(sha256(publicKey).subarray(0, 20)),
      to: spell(message.subarray(65)),
      amount: message.readBigUInt64BE(24),
      fee: message.readBigUInt64BE(16),
      sequence: Number(message.readBigUInt64BE(4)),
      validUntil: message.readUInt32BE(12),
    }
    if (this.mined.has(sent.id)) return sent.id
    if (message.readUInt32BE(0) !== 7) throw new Error('of another network')
    if (!secp256k1.verify(signature, digest, publicKey, { prehash: false }))
      throw new Error('the signature does not verify')
    if (sent.sequence < this.#next(sent.from) || this.#isOver(sent))
      throw new Error('its time or its sequence is over')
    this.pool.set(sent.id, sent)
    return sent.id
  }

  #isOver = ({ validUntil }: Sent): boolean =>
    validUntil < Math.floor(Date.now() / 1000) + this.ahead

  #takes(sent: Sent): boolean {
    if (sent.sequence < 0) return true
    return (
      sent.sequence === this.#next(sent.from) &&
      sent.amount + sent.fee <= (this.balances.get(sent.from) ?? 0n)
    )
  }

  /**
   * Produces a block with the transactions that are next in order; expired transactions are
   * dropped.
   */
  mine(): void {
    const parent = this.#blocks.at(-1)?.hash ?? ''
    const height = this.#blocks.length
    const block: Block = {
      height,
      hash: hex(sha256(Buffer.from(`${parent} ${height}`))),
      parent,
      time: Math.floor(Date.now() / 1000) + this.ahead,
      transactions: [],
    }
    for (const sent of [...this.pool.values()].sort((a, b) => a.sequence - b.sequence)) {
      if (this.#isOver(sent)) this.pool.delete(sent.id)
      if (!this.pool.has(sent.id) || !this.#takes(sent)) continue
      if (sent.sequence >= 0) {
        this.balances.set(sent.from, (this.balances.get(sent.from) ?? 0n) - sent.amount - sent.fee)
        this.#sequences.set(sent.from, sent.sequence + 1)
      }
      this.balances.set(sent.to, (this.balances.get(sent.to) ?? 0n) + sent.amount)
      this.pool.delete(sent.id)
      this.mined.set(sent.id, {
        ...sent,
        nonce: sent.sequence,
        block: { height, hash: block.hash },
      })
      block.transactions.push(sent)
    }
    this.#blocks.push(block)
  }
}
