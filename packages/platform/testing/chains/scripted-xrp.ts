import { decode, hashes } from 'xrpl'

interface Waiting {
  hash: string
  from: string
  to: string
  amount: bigint
  sequence: number
  fee: bigint
}

const FIRST_SEQUENCE = 5
const CONFIRMATIONS = 1

/**
 * An XRP Ledger in memory: sequence numbers in order, balances, ledgers. Waiting transactions are
 * not dropped until `kill` is called.
 */
export class ScriptedXrp {
  readonly balances = new Map<string, bigint>()
  readonly pool = new Map<string, Waiting>()
  readonly mined = new Map<string, { height: number; fee: bigint; nonce: number; from: string }>()
  readonly sequences = new Map<string, number>()
  readonly #dead = new Set<string>()
  height = 10

  readonly client = {
    probe: async () => undefined,
    tip: async () => ({
      height: this.height,
      hash: `b${this.height}`,
      finalHeight: this.height - CONFIRMATIONS + 1,
    }),
    block: async (height: number) => ({
      height,
      hash: `b${height}`,
      parent: `b${height - 1}`,
      txids: [],
      transfers: [],
    }),
    account: async (address: string) => ({
      balance: this.balances.get(address) ?? 0n,
      sequence: BigInt(this.#next(address)),
      reserve: 0n,
      requiresTag: false,
      closed: false,
    }),
    activation: async () => 1n,
    balance: async (address: string) => this.balances.get(address) ?? 0n,
    validUntil: async () => 1_000_000 + this.height,
    isDead: async (hash: string) => this.#dead.has(hash),
    findSigned: async () => null,
    status: async (hash: string) => {
      const result = this.mined.get(hash)
      return result
        ? {
            state: 'included',
            height: result.height,
            blockHash: `b${result.height}`,
            succeeded: true,
            fee: result.fee,
          }
        : { state: this.pool.has(hash) ? 'mempool' : 'absent' }
    },
    broadcast: async (raw: string) => {
      const hash = hashes.hashSignedTx(raw.toUpperCase())
      const {
        Account: from,
        Destination: to,
        Amount: amount,
        Fee: fee,
        Sequence: sequence,
      } = decode(raw.toUpperCase()) as unknown as {
        Account: string
        Destination: string
        Amount: string
        Fee: string
        Sequence: number
      }
      if (this.mined.has(hash)) return { kind: 'accepted' }
      if (this.#dead.has(hash)) return { kind: 'rejected', reason: 'tefMAX_LEDGER' }
      if (sequence < this.#next(from)) return { kind: 'rejected', reason: 'tefPAST_SEQ' }
      this.pool.set(hash, { hash, from, to, amount: BigInt(amount), sequence, fee: BigInt(fee) })
      return { kind: 'accepted' }
    },
  }

  #next(address: string): number {
    return this.sequences.get(address) ?? FIRST_SEQUENCE
  }

  /** Expires all waiting transactions. */
  kill(): void {
    for (const hash of this.pool.keys()) this.#dead.add(hash)
    this.pool.clear()
    this.height++
  }

  /** Produces a ledger with the transactions that are next in order. */
  mine(): void {
    this.height++
    for (let moved = true; moved;) {
      moved = false
      for (const each of this.pool.values()) {
        if (each.sequence !== this.#next(each.from)) continue
        this.balances.set(each.from, (this.balances.get(each.from) ?? 0n) - each.amount - each.fee)
        this.balances.set(each.to, (this.balances.get(each.to) ?? 0n) + each.amount)
        this.sequences.set(each.from, each.sequence + 1)
        this.pool.delete(each.hash)
        this.mined.set(each.hash, {
          height: this.height,
          fee: each.fee,
          nonce: each.sequence,
          from: each.from,
        })
        moved = true
      }
    }
  }
}
