import { checkBlock, heightScript, parseBlock, type ParsedBlock } from './block.ts'
import type { UtxoNetwork } from './networks.ts'
import { verifyScripts } from './script.ts'
import { isAssetUnlock, unlockFee } from './dash-transactions.ts'
import { outpoint, type Tx } from './transaction.ts'

export type Coin = { value: bigint; script: Buffer; height: number; coinbase: boolean }
export type Block = ParsedBlock & {
  height: number
  /**
   * Coins that each transaction except the coinbase spends, by input. They are used to undo the
   * block and to return prevouts.
   */
  spent: Coin[][]
  medianTime: number
}

const HALVING = 150
const SEQUENCE_DISABLED = 0x80000000
const SEQUENCE_TIME = 0x00400000

export function subsidy(height: number, first: bigint): bigint {
  const halvings = Math.floor(height / HALVING)
  return halvings >= 64 ? 0n : first >> BigInt(halvings)
}

/** The active chain and its unspent outputs. `connect` checks every rule of a block. */
export class Ledger {
  readonly blocks: Block[] = []
  readonly coins = new Map<string, Coin>()
  /** Every block ever received, including those of replaced branches, by hash. */
  readonly byHash = new Map<string, Block>()
  readonly txIndex = new Map<string, { block: Block; index: number }>()

  readonly network: UtxoNetwork

  constructor(network: UtxoNetwork) {
    this.network = network
    const genesis = parseBlock(network.genesis, network)
    // As in Core, the genesis coinbase can never be spent, so it is not added to the coins.
    const block = { ...genesis, height: 0, spent: [], medianTime: genesis.header.time }
    this.blocks.push(block)
    this.byHash.set(block.hash, block)
    this.txIndex.set(genesis.txs[0]!.txid, { block, index: 0 })
  }

  get tip(): Block {
    return this.blocks.at(-1)!
  }

  isActive(block: Block): boolean {
    return this.blocks[block.height] === block
  }

  medianTimeAt(height: number): number {
    return this.blocks[Math.max(0, height)]!.medianTime
  }

  /** Returns why a script of the inputs fails; undefined if none does or needs to be verified. */
  #scriptFault(tx: Tx, coins: readonly Coin[]): string | undefined {
    return isAssetUnlock(tx) || tx.isHogEx
      ? undefined
      : verifyScripts(this.network, tx, coins, 'consensus')
  }

  connect(parsed: ParsedBlock, scripts: boolean): Block {
    const tip = this.tip
    const height = tip.height + 1
    const fail = (reason: string): never => {
      throw new Error(`block ${height} ${parsed.hash}: ${reason}`)
    }
    const reason = checkBlock(parsed)
    if (reason !== undefined) fail(reason)
    if (parsed.header.previous !== tip.hash) fail('prev-blk-not-found')
    if (parsed.header.time <= tip.medianTime) fail('time-too-old')
    if (
      !parsed.txs[0]!.ins[0]!.script.subarray(0, heightScript(height).length).equals(
        heightScript(height),
      )
    )
      fail('bad-cb-height')

    const created = new Map<string, Coin>()
    const used = new Set<string>()
    const spent: Coin[][] = []
    let fees = 0n
    for (const [index, tx] of parsed.txs.entries()) {
      if (!isFinal(tx, height, tip.medianTime)) fail('bad-txns-nonfinal')
      if (index > 0) {
        const coins = tx.ins.map(({ txid, vout }) => {
          const key = outpoint(txid, vout)
          const coin = created.get(key) ?? this.coins.get(key)
          if (!coin || used.has(key)) return fail(`bad-txns-inputs-missingorspent ${key}`)
          if (coin.coinbase && height - coin.height < this.network.maturity)
            fail('bad-txns-premature-spend-of-coinbase')
          used.add(key)
          return coin
        })
        // A withdrawal from Dash's credit pool contains its fee; on the real network quorums sign
        // its value.
        const fee = isAssetUnlock(tx) ? unlockFee(tx) : sum(coins) - sum(tx.outs)
        if (fee < 0n) fail('bad-txns-in-belowout')
        if (!this.sequenceLocksHold(tx, coins, height)) fail('bad-txns-nonfinal')
        const script = scripts ? this.#scriptFault(tx, coins) : undefined
        if (script !== undefined) fail(`mandatory-script-verify-flag-failed (${script})`)
        fees += fee
        spent.push(coins)
      }
      for (const [vout, { value, script }] of tx.outs.entries()) {
        if (script[0] !== 0x6a)
          created.set(outpoint(tx.txid, vout), { value, script, height, coinbase: index === 0 })
      }
    }
    if (sum(parsed.txs[0]!.outs) > subsidy(height, this.network.subsidy) + fees)
      fail('bad-cb-amount')

    for (const [key, coin] of created) this.coins.set(key, coin)
    for (const key of used) this.coins.delete(key)
    const times = [
      ...this.blocks.slice(-10).map((block) => block.header.time),
      parsed.header.time,
    ].sort((a, b) => a - b)
    const block: Block = { ...parsed, height, spent, medianTime: times[times.length >> 1]! }
    this.blocks.push(block)
    this.byHash.set(block.hash, block)
    for (const [index, tx] of block.txs.entries()) this.txIndex.set(tx.txid, { block, index })
    return block
  }

  disconnect(): Block {
    const block = this.blocks.pop()!
    for (const [index, tx] of [...block.txs.entries()].reverse()) {
      for (const vout of tx.outs.keys()) this.coins.delete(outpoint(tx.txid, vout))
      if (index > 0) {
        for (const [at, { txid, vout }] of tx.ins.entries())
          this.coins.set(outpoint(txid, vout), block.spent[index - 1]![at]!)
      }
      this.txIndex.delete(tx.txid)
    }
    return block
  }

  /** Checks relative lock times (BIP68) of a transaction for a block of this height. */
  sequenceLocksHold(tx: Tx, coins: readonly Coin[], height: number): boolean {
    if (tx.version >>> 0 < 2) return true
    return tx.ins.every(({ sequence }, index) => {
      if (sequence & SEQUENCE_DISABLED) return true
      const since = Math.min(coins[index]!.height, height)
      const amount = sequence & 0xffff
      if (sequence & SEQUENCE_TIME)
        return this.medianTimeAt(since - 1) + amount * 512 - 1 < this.medianTimeAt(height - 1)
      return since + amount - 1 < height
    })
  }
}

export function isFinal(tx: Tx, height: number, medianTime: number): boolean {
  if (tx.locktime === 0 || tx.locktime < (tx.locktime < 500_000_000 ? height : medianTime))
    return true
  return tx.ins.every(({ sequence }) => sequence === 0xffffffff)
}

export function sum(parts: readonly { value: bigint }[]): bigint {
  return parts.reduce((total, { value }) => total + value, 0n)
}
