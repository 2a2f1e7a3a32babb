import {
  getAddress,
  keccak256,
  parseTransaction,
  recoverTransactionAddress,
  type Hex,
  type TransactionSerialized,
} from 'viem'
import type { Asset } from '@custody/chains'

interface Waiting {
  hash: string
  from: string
  to: string
  value: bigint
  nonce: number
  price: bigint
  tip: bigint
  gas: bigint
}

export const BASE_FEE = 10n ** 9n
const GAS = 21_000n
const CONFIRMATIONS = 3

/**
 * An EVM chain in memory: nonces in order, balances, blocks, and a pool that keeps the transaction
 * with the higher fee of two with the same nonce. Native coin only.
 */
export class ScriptedEvm {
  readonly balances = new Map<string, bigint>()
  readonly nonces = new Map<string, number>()
  readonly pool = new Map<string, Waiting>()
  readonly mined = new Map<string, { height: number; fee: bigint; nonce: number; from: string }>()
  height = 10

  #place = (from: string, nonce: number) => `${from} ${nonce}`

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
    nonce: async (address: string) => BigInt(this.nonces.get(address) ?? 0),
    balance: async (address: string, asset: Asset) =>
      asset.type === 'native' ? (this.balances.get(address) ?? 0n) : 0n,
    balances: async (addresses: readonly string[], asset: Asset) =>
      addresses.map((each) => (asset.type === 'native' ? (this.balances.get(each) ?? 0n) : 0n)),
    gasLimit: async () => GAS,
    status: async (hash: string) => {
      const result = this.mined.get(hash)
      if (result)
        return {
          state: 'included',
          height: result.height,
          blockHash: `b${result.height}`,
          succeeded: true,
          fee: result.fee,
        }
      return {
        state: [...this.pool.values()].some((each) => each.hash === hash) ? 'mempool' : 'absent',
      }
    },
    broadcast: async (raw: string) => {
      const signed = `0x${raw}` as TransactionSerialized
      const hash = keccak256(signed as Hex)
      if (this.mined.has(hash)) return { kind: 'accepted' }
      const parsed = parseTransaction(signed)
      const from = await recoverTransactionAddress({ serializedTransaction: signed })
      const nonce = parsed.nonce ?? 0
      if (nonce < (this.nonces.get(from) ?? 0)) return { kind: 'rejected', reason: 'nonce too low' }
      const price = parsed.maxFeePerGas as bigint
      const existing = this.pool.get(this.#place(from, nonce))
      if (existing && existing.hash !== hash && price * 10n < existing.price * 11n)
        return { kind: 'rejected', reason: 'replacement transaction underpriced' }
      this.pool.set(this.#place(from, nonce), {
        hash,
        from,
        to: getAddress(parsed.to as string),
        value: parsed.value ?? 0n,
        nonce,
        price,
        tip: parsed.maxPriorityFeePerGas ?? 0n,
        gas: parsed.gas as bigint,
      })
      return { kind: 'accepted' }
    },
  }

  /** Removes some of the waiting transactions, as nodes do. */
  drop(chosen: () => boolean): number {
    const gone = [...this.pool.keys()].filter(() => chosen())
    for (const place of gone) this.pool.delete(place)
    return gone.length
  }

  /**
   * Produces a block with the transactions that are next in order and whose sender can pay for
   * them.
   */
  mine(): void {
    this.height++
    for (let moved = true; moved;) {
      moved = false
      for (const [place, each] of this.pool) {
        if (each.nonce !== (this.nonces.get(each.from) ?? 0)) continue
        const fee = GAS * (BASE_FEE + each.tip < each.price ? BASE_FEE + each.tip : each.price)
        const held = this.balances.get(each.from) ?? 0n
        if (held < each.value + each.gas * each.price) continue
        this.balances.set(each.from, held - each.value - fee)
        this.balances.set(each.to, (this.balances.get(each.to) ?? 0n) + each.value)
        this.nonces.set(each.from, each.nonce + 1)
        this.pool.delete(place)
        this.mined.set(each.hash, { height: this.height, fee, nonce: each.nonce, from: each.from })
        moved = true
      }
    }
  }
}
