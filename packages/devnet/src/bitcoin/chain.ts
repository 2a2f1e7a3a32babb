import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { formatAmount, parseAmount } from '../amount.ts'
import { RequestError } from '../errors.ts'
import { Journal } from '../journal.ts'
import { Producer } from '../producer.ts'
import { REAL_TIME, type Timing } from '../timing.ts'
import { scriptOf } from './address.ts'
import { tokenPrefix, type Token } from './cash-tokens.ts'
import { internal } from './encoding.ts'
import { ExtensionBlocks } from './extension-blocks.ts'
import { assetUnlock, isAssetUnlock, unlockFee } from './dash-transactions.ts'
import { makeBlock, parseBlock } from './block.ts'
import { Ledger, subsidy, type Block } from './ledger.ts'
import { Mempool, type Outcome } from './mempool.ts'
import { BTC, type UtxoNetwork } from './networks.ts'
import { dustLimit } from './policy.ts'
import type { Tx, TxOut } from './transaction.ts'
import { NodeWallet } from './node-wallet.ts'
import { MinerWallet, type OwnPlace } from './miner-wallet.ts'

/**
 * Blocks in hex. `after`: height of the last block that is kept; a reorganization is one record.
 */
export type ChainRecord = { blocks: string[]; after?: number }

/**
 * Number of initial blocks. With regtest's halving every 150 blocks, the mature ones contain more
 * than 11,000 BTC.
 */
const INITIAL_BLOCKS = 440
const INITIAL_SPACING_SECONDS = 60
/**
 * Number of newest blocks whose scripts are executed at a start. Scripts are also executed before a
 * block is journaled. All other rules are checked again for every block; Core's own default is 6,
 * and the limit keeps the start fast.
 */
const SCRIPT_BLOCKS = 6
const SCRIPT_INPUTS = 64
const BLOCK_WEIGHT_MAX = 3_996_000
/** Fee in satoshi of a withdrawal from Dash's credit pool. */
const UNLOCK_FEE = 190

export class BitcoinChain {
  readonly network: UtxoNetwork
  readonly ledger: Ledger
  readonly mempool: Mempool
  readonly extension = new ExtensionBlocks()
  readonly timing: Timing
  readonly started: number
  /** The node's own wallet, which its RPC methods use. */
  readonly wallet: NodeWallet
  readonly #wallet: MinerWallet
  readonly #journal: Journal<ChainRecord>
  readonly #producer: Producer
  /**
   * Zero at a start too, so that transactions mined just before the stop are confirmed immediately.
   */
  #blocksSinceTransaction = 0
  /**
   * Fee rate in satoshi per vbyte below which blocks leave a transaction out. It is kept in memory
   * only, so a restart ends the congestion.
   */
  congestionRate = 0n
  #unlocks = 0

  private constructor(
    network: UtxoNetwork,
    wallet: NodeWallet,
    { journal, records }: { journal: Journal<ChainRecord>; records: ChainRecord[] },
    fullRbf: boolean,
    timing: Timing,
  ) {
    this.network = network
    this.timing = timing
    this.started = timing.now()
    this.ledger = new Ledger(network)
    this.wallet = wallet
    this.#wallet = new MinerWallet(network)
    this.#journal = journal
    this.mempool = new Mempool(this.ledger, fullRbf)
    this.#reload(records)
    this.#initialBlocks()
    this.#producer = new Producer({
      timing,
      busyMs: network.blocks.busyMs,
      idleMs: network.blocks.idleMs,
      isBusy: () =>
        this.mempool.entries.size + this.extension.waiting.size > 0 ||
        this.#blocksSinceTransaction < network.blocks.quiet,
      produce: async () => void this.#produce(),
    })
  }

  static open(
    home: string,
    options: { fullRbf?: boolean; network?: UtxoNetwork; timing?: Timing } = {},
  ): BitcoinChain {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    const network = options.network ?? BTC
    const chain = new BitcoinChain(
      network,
      NodeWallet.open(network, home),
      Journal.open<ChainRecord>(join(home, 'blocks.journal')),
      options.fullRbf ?? true,
      options.timing ?? REAL_TIME,
    )
    chain.#producer.wake()
    return chain
  }

  get head(): Block {
    return this.ledger.tip
  }

  get genesisHash(): string {
    return this.ledger.blocks[0]!.hash
  }

  close(): void {
    this.#producer.stop()
    this.#journal.close()
    this.wallet.close()
  }

  submit(tx: Tx): Outcome {
    const outcome = this.mempool.accept(tx, this.#now())
    this.#producer.wake()
    return outcome
  }

  /**
   * Makes blocks leave out transactions with a lower fee rate, and adapts the fee estimates; 0 ends
   * it.
   * @param rate satoshi per vbyte
   */
  congest(rate: bigint): void {
    this.congestionRate = rate
    this.#blocksSinceTransaction = 0
    this.#producer.wake()
  }

  fund(address: unknown, amount: unknown): string {
    const txid = this.#pay(this.outputOf(address, amount))
    this.#produce(this.#wallet.script, txid)
    this.#producer.wake()
    return txid
  }

  /**
   * Returns the output for an operator's request.
   * @throws RequestError if its address or amount is invalid
   */
  outputOf(address: unknown, amount: unknown): TxOut {
    const script = this.#scriptOf(address)
    const value = parseAmount(amount, 8)
    const least = dustLimit(script, this.network)
    if (value < least)
      throw new RequestError(
        `amount ${formatAmount(value, 8)} is dust: at least ${formatAmount(least, 8)}`,
      )
    return { value, script }
  }

  /**
   * Adds a payment of the miner to the mempool.
   * @param first a coin that it must spend
   * @returns its id
   */
  #pay(to: TxOut, first?: OwnPlace): string {
    const tx = this.#wallet.pay(this.ledger, (key) => this.mempool.spenders.has(key), to, first)
    if ('available' in tx) {
      throw new RequestError(
        `amount ${formatAmount(to.value, 8)} is more than the miner can pay now: ${formatAmount(tx.available, 8)}`,
      )
    }
    const outcome = this.mempool.accept(tx, this.#now())
    if ('rejection' in outcome)
      throw new Error(`the funding transaction was refused: ${outcome.rejection.reason}`)
    return tx.txid
  }

  /**
   * Dash: adds a block with a withdrawal from the credit pool of its platform.
   * @returns the withdrawal's id
   */
  unlock(to: TxOut): string {
    const tx = assetUnlock(to, {
      index: BigInt(this.#unlocks++),
      fee: UNLOCK_FEE,
      height: this.head.height,
    })
    this.mempool.insert(tx, unlockFee(tx), this.#now())
    this.#produce(this.#wallet.script, tx.txid)
    this.#producer.wake()
    return tx.txid
  }

  /**
   * Bitcoin Cash: adds a block with an output that has a new token. Its category is the id of the
   * transaction that the first input spends from.
   */
  issue({ value, script }: TxOut, token: Omit<Token, 'category'>): string {
    const place = this.#wallet.genesisPlace(this.ledger, (key) => this.mempool.spenders.has(key))
    if (!place) throw new RequestError('the miner has no coin from which a token can be made')
    const prefix = tokenPrefix({ ...token, category: internal(place.txid) })
    const txid = this.#pay({ value, script: Buffer.concat([prefix, script]) }, place)
    this.#produce(this.#wallet.script, txid)
    this.#producer.wake()
    return txid
  }

  /**
   * Litecoin: adds a transaction within the extension blocks, which waits until the next block.
   * @param to output that leaves the extension blocks; the miner funds them beforehand
   * @returns its id
   */
  extend(to: TxOut | undefined): string {
    if (to) this.#pay(this.extension.pegIn(to.value))
    const id = this.extension.add(to)
    this.#producer.wake()
    return id
  }

  /**
   * Mines blocks.
   * @param count number of blocks
   * @param address receiver of the coinbase, by default the miner
   */
  mine(count: number, address?: unknown): Block {
    const payTo = address === undefined ? this.#wallet.script : this.#scriptOf(address)
    for (let made = 0; made < count; made += 1) this.#produce(payTo)
    this.#producer.wake()
    return this.head
  }

  /**
   * Replaces the last `depth` blocks by `depth + 1` empty ones. Their transactions return to the
   * mempool unless `drop` is set.
   */
  reorg(depth: number, drop: boolean): Block {
    const removed: Block[] = []
    const waiting = this.mempool.clear()
    for (let left = depth; left > 0; left -= 1) removed.unshift(this.ledger.disconnect())
    const after = this.head.height
    const made: Block[] = []
    try {
      for (let index = 0; index <= depth; index += 1)
        made.push(this.ledger.connect(this.#candidate([], this.#now()), false))
      this.#journal.append([{ after, blocks: made.map(({ raw }) => raw.toString('hex')) }])
    } catch (error) {
      while (this.head.height > after) this.ledger.disconnect()
      for (const block of removed) this.ledger.connect(block, false)
      throw error
    }
    const returned = drop ? [] : removed.flatMap(({ txs }) => txs.slice(1))
    for (const tx of [...returned, ...waiting]) {
      if (isAssetUnlock(tx)) this.mempool.insert(tx, unlockFee(tx), this.#now())
      else if (!tx.isHogEx) this.mempool.accept(tx, this.#now())
    }
    this.#blocksSinceTransaction = 0
    this.#producer.wake()
    return this.head
  }

  /** Returns Unix seconds. */
  #now(): number {
    return Math.floor(this.timing.now() / 1000)
  }

  #scriptOf(address: unknown): Buffer {
    const script =
      typeof address === 'string' ? scriptOf(address, this.network) : { error: 'not a string' }
    if (!Buffer.isBuffer(script)) {
      throw new RequestError(
        `address ${JSON.stringify(address)} is not an address of ${this.network.code}: ${script.error}`,
      )
    }
    return script
  }

  /**
   * Creates a block and writes it to the journal. There is no await in between, so no request can
   * see the block earlier.
   */
  #produce(payTo = this.#wallet.script, first?: string): void {
    const txs: Tx[] = []
    let weight = 4000
    const left = new Set<string>()
    for (const entry of this.mempool.entries.values()) {
      const { tx } = entry
      // A congested chain leaves out transactions that pay too little, and those that spend from
      // them.
      if (
        (entry.fee < this.congestionRate * BigInt(tx.vsize) && tx.txid !== first) ||
        tx.ins.some(({ txid }) => left.has(txid))
      ) {
        left.add(tx.txid)
        continue
      }
      if (weight + tx.weight > BLOCK_WEIGHT_MAX) break
      weight += tx.weight
      txs.push(tx)
    }
    const hogEx = this.extension.hogEx(this.ledger, txs)
    const block = this.ledger.connect(
      this.#candidate(hogEx ? [...txs, hogEx] : txs, this.#now(), payTo),
      false,
    )
    try {
      this.#journal.append([{ blocks: [block.raw.toString('hex')] }])
    } catch (error) {
      this.ledger.disconnect()
      throw error
    }
    this.mempool.blockConnected(block.txs)
    if (hogEx) this.extension.taken()
    if (txs.length > 0) this.#blocksSinceTransaction = 0
    else this.#blocksSinceTransaction += 1
  }

  #candidate(txs: Tx[], time: number, payTo = this.#wallet.script) {
    const { tip } = this.ledger
    const height = tip.height + 1
    const fees = txs.reduce(
      (total, { txid }) => total + (this.mempool.entries.get(txid)?.fee ?? 0n),
      0n,
    )
    return makeBlock({
      previous: tip.hash,
      height,
      time: Math.max(time, tip.medianTime + 1),
      reward: subsidy(height, this.network.subsidy) + fees,
      payTo,
      // Random, so that blocks of different branches have different hashes.
      extraNonce: this.timing.bytes?.(8) ?? randomBytes(8),
      segwit: this.network.segwit,
      forms: this.network,
      txs,
    })
  }

  #reload(records: ChainRecord[]): void {
    let blocks: string[] = []
    for (const record of records) {
      // The journal begins at height 1, because the genesis block is fixed.
      if (record.after !== undefined) blocks = blocks.slice(0, record.after)
      for (const block of record.blocks) blocks.push(block)
    }
    const parsed = blocks.map((hex) => parseBlock(Buffer.from(hex, 'hex'), this.network))
    let scriptsFrom = parsed.length
    let inputs = 0
    while (scriptsFrom > 0 && parsed.length - scriptsFrom < SCRIPT_BLOCKS) {
      inputs += parsed[scriptsFrom - 1]!.txs.reduce((count, tx) => count + tx.ins.length, 0)
      if (inputs > SCRIPT_INPUTS) break
      scriptsFrom -= 1
    }
    for (const [index, block] of parsed.entries()) this.ledger.connect(block, index >= scriptsFrom)
  }

  #initialBlocks(): void {
    if (this.head.height > 0) return
    const start = this.#now() - INITIAL_BLOCKS * INITIAL_SPACING_SECONDS
    const blocks: string[] = []
    for (let index = 1; index <= INITIAL_BLOCKS; index += 1) {
      blocks.push(
        this.ledger
          .connect(this.#candidate([], start + index * INITIAL_SPACING_SECONDS), false)
          .raw.toString('hex'),
      )
    }
    this.#journal.append([{ blocks }])
  }
}
