import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Hex } from 'viem'
import { encodeFunctionData, getAddress, isAddress, toHex } from 'viem/utils'
import { parseAmount } from '../amount.ts'
import { RequestError } from '../errors.ts'
import { ReadWriteLock } from '../read-write-lock.ts'
import { Journal } from '../journal.ts'
import { Producer } from '../producer.ts'
import { REAL_TIME, type Timing } from '../timing.ts'
import type { Anvil } from '../evm/anvil.ts'
import { blockRecord, mineBlock, type BlockRecord, type ChainRecord } from './blocks.ts'
import { deploy, isDeployed, send } from './deploy.ts'
import { Engines } from './engine.ts'
import { Held } from './held-transactions.ts'
import { artefact } from '../evm/contracts.ts'
import type { EvmNetwork, Token } from './networks.ts'
import type { Pending } from './policy.ts'
import type { Charge } from './rollup.ts'
import { Snapshots } from './snapshots.ts'

const BUSY_MS = 1000
const IDLE_MS = 15_000
/**
 * Pending transactions that cannot be mined (fee below the base fee) must not drive blocks for
 * ever.
 */
const STALLED_BLOCKS = 30
/** The genesis phase: the first contract, coins for the deployers of the others, and those. */
const GENESIS_BLOCKS = 2
const GENESIS_SPACING_SECONDS = 12

/** One EVM chain: an engine of which every block is journalled before anybody sees it. */
export class EthereumChain {
  readonly network: EvmNetwork
  readonly gate = new ReadWriteLock()
  readonly #timing: Timing
  readonly #snapshots: Snapshots
  readonly #engines: Engines
  readonly #journal: Journal<ChainRecord>
  readonly #producer: Producer
  /**
   * Broadcast and not yet mined: needed as raw bytes for the journal, and again after a
   * reorganisation.
   */
  readonly #pending = new Map<Hex, Pending>()
  /** What a roll-up charged, by the transaction's hash. */
  readonly #charges = new Map<Hex, Charge>()
  /** Waiting too, for a lower base fee. */
  readonly held = new Held()
  /** Index 0 is the genesis block, which the engine makes itself. */
  #blocks: BlockRecord[] = []
  #anvil!: Anvil
  #stopped = false
  /**
   * From zero also at a start, so that what was mined just before the end becomes final at once.
   */
  #blocksSinceTransaction = 0
  /**
   * Base fee of the block to come where somebody has set it; of each one while the chain is
   * congested.
   */
  #nextBaseFee: Hex | null = null
  #congested = false
  #calmFee: Hex | null = null

  private constructor(
    network: EvmNetwork,
    home: string,
    timing: Timing,
    journal: Journal<ChainRecord>,
    records: ChainRecord[],
  ) {
    this.#timing = timing
    this.network = network
    this.#snapshots = new Snapshots(home)
    this.#engines = new Engines(network, home, this.#snapshots)
    this.#journal = journal
    for (const record of records) this.#remember(record)
    this.#producer = new Producer({
      timing,
      busyMs: BUSY_MS,
      idleMs: IDLE_MS,
      isBusy: () =>
        this.#blocksSinceTransaction < network.quietBlocks ||
        (this.#pending.size > 0 && this.#blocksSinceTransaction < STALLED_BLOCKS),
      produce: async () => void (await this.gate.write(() => this.#produce())),
    })
  }

  static async open(
    network: EvmNetwork,
    home: string,
    timing: Timing = REAL_TIME,
  ): Promise<EthereumChain> {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    const { journal, records } = Journal.open<ChainRecord>(join(home, 'blocks.journal'))
    const chain = new EthereumChain(network, home, timing, journal, records)
    chain.#anvil = await chain.#engines.start(chain.#blocks)
    chain.#watch()
    if (chain.#blocks.length === 0) await chain.#genesis()
    await chain.#deployMissing()
    chain.#producer.wake()
    return chain
  }

  get head(): BlockRecord {
    return this.#blocks.at(-1)!
  }

  get anvil(): Anvil {
    return this.#anvil
  }

  /** What a mined transaction was charged on top of its gas; undefined: nothing. */
  chargeOf(hash: Hex): Charge | undefined {
    return this.#charges.get(hash)
  }

  close(): void {
    this.#stopped = true
    this.#producer.stop()
    this.#anvil.kill()
    this.#journal.close()
  }

  /** After the engine took a transaction. */
  broadcast(hash: Hex, transaction: Pending): void {
    this.held.replacedBy(transaction)
    this.#pending.set(hash, transaction)
    if (this.#blocksSinceTransaction >= this.network.quietBlocks) this.#blocksSinceTransaction = 0
    this.#producer.wake()
  }

  get pending(): Pending[] {
    return [...this.#pending.values(), ...this.held.values()]
  }

  /** The node forgets a waiting transaction. False: it does not wait. */
  async drop(hash: Hex): Promise<boolean> {
    return this.gate.write(async () => {
      if (this.held.delete(hash)) return true
      if (!this.#pending.delete(hash)) return false
      return (await this.#anvil.call('anvil_dropTransaction', hash)) !== null
    })
  }

  async fund(asset: string, address: unknown, amount: unknown): Promise<Hex> {
    if (typeof address !== 'string' || !isAddress(address)) {
      throw new RequestError(
        `address ${JSON.stringify(address)} is not an address of ${this.network.code}`,
      )
    }
    const to = getAddress(address)
    const token = this.network.tokens.find((candidate) => candidate.asset === asset)
    if (!token) {
      const value = parseAmount(amount, 18)
      return this.gate.write(() => this.#fund({ to, value }))
    }
    const value = parseAmount(amount, token.decimals)
    const data = encodeFunctionData({
      abi: artefact(token.artefact).abi,
      functionName: 'transfer',
      args: [to, value],
    })
    return this.gate.write(() => this.#fund({ to: token.address, value: 0n, data }))
  }

  /**
   * From the next block on the base fee is this, so that what pays less waits; null ends it at the
   * fee from before.
   * @param baseFee wei per gas
   */
  async congest(baseFee: bigint | null): Promise<void> {
    if (this.network.legacy)
      throw new RequestError(`${this.network.code} has no base fee that could rise`)
    await this.gate.write(async () => {
      this.#calmFee ??= await this.#anvil
        .call<Hex>('eth_getBlockByNumber', 'latest', false)
        .then((block) => (block as unknown as { baseFeePerGas: Hex }).baseFeePerGas)
      this.#nextBaseFee = baseFee === null ? this.#calmFee : toHex(baseFee)
      this.#congested = baseFee !== null
      if (!this.#congested) this.#calmFee = null
      await this.#produce()
    })
    this.#blocksSinceTransaction = 0
    this.#producer.wake()
  }

  async mine(count: number): Promise<BlockRecord> {
    let block = this.head
    for (let made = 0; made < count; made += 1) block = await this.gate.write(() => this.#produce())
    this.#producer.wake()
    return block
  }

  /**
   * The last `depth` blocks give way to `depth + 1` empty ones. A second engine is brought to the
   * fork point from the journal and takes over, so nothing of the removed branch can linger.
   */
  async reorg(depth: number): Promise<BlockRecord> {
    await this.gate.write(async () => {
      const deepest = this.head.height - (this.network.tokens.length > 0 ? GENESIS_BLOCKS : 0)
      if (depth > deepest)
        throw new RequestError(
          `depth ${depth} would undo the genesis phase: at most ${deepest} blocks can be replaced`,
        )
      const kept = this.#blocks.slice(0, this.#blocks.length - depth)
      const removed = this.#blocks[kept.length]!
      const anvil = await this.#engines.start(kept)
      try {
        const blocks: BlockRecord[] = []
        // One second later than the block it replaces: the same content would have the same hash.
        for (let index = 0; index <= depth; index += 1) {
          blocks.push(await mineBlock(anvil, removed.time + 1 + index, this.#pending, this.network))
        }
        const record = { after: kept.at(-1)!.height, blocks }
        this.#snapshots.dropAbove(record.after)
        this.#journal.append([record])
        this.#remember(record)
      } catch (error) {
        anvil.kill()
        throw error
      }
      await this.#adopt(anvil)
      this.#blocksSinceTransaction = 0
    })
    await this.#deployMissing()
    this.#producer.wake()
    return this.head
  }

  /** Another engine takes over, with what waited in the one before. */
  async #adopt(anvil: Anvil): Promise<void> {
    this.#anvil.kill()
    this.#anvil = anvil
    this.#watch()
    for (const [hash, { raw }] of this.#pending) {
      await anvil.call('eth_sendRawTransaction', raw).catch(() => this.#pending.delete(hash))
    }
  }

  /** Makes one block and makes it durable. Only under the gate's write side. */
  async #produce(): Promise<BlockRecord> {
    const time = Math.max(Math.floor(this.#timing.now() / 1000), this.head.time + 1)
    const block = await mineBlock(this.#anvil, time, this.#pending, {
      baseFee: this.#nextBaseFee,
      rollup: this.network.rollup,
    })
    if (!this.#congested) this.#nextBaseFee = null
    try {
      this.#append(block)
    } catch (error) {
      // A full disk: the engine must not show what the journal does not have.
      await this.#adopt(await this.#engines.start(this.#blocks))
      throw error
    }
    if (block.raw.length > 0) this.#blocksSinceTransaction = 0
    else this.#blocksSinceTransaction += 1
    if (this.#pending.size > 0) await this.#forgetDropped()
    for (const [hash, transaction] of await this.held.offer(this.#anvil))
      this.#pending.set(hash, transaction)
    await this.#snapshots.keep(this.#anvil, block)
    return block
  }

  #append(block: BlockRecord): void {
    const record = { blocks: [block] }
    this.#journal.append([record])
    this.#remember(record)
  }

  #remember(record: ChainRecord): void {
    if (record.after !== undefined) {
      const kept = this.#blocks.findIndex((block) => block.height === record.after)
      this.#blocks = this.#blocks.slice(0, kept + 1)
    }
    this.#blocks.push(...record.blocks)
    for (const { charges = [] } of record.blocks)
      for (const charge of charges) this.#charges.set(charge.hash, charge)
  }

  /** What the engine threw out of its pool (replaced, nonce used) is no longer pending. */
  async #forgetDropped(): Promise<void> {
    for (const hash of this.#pending.keys()) {
      if ((await this.#anvil.call('eth_getTransactionByHash', hash)) === null)
        this.#pending.delete(hash)
    }
  }

  async #fund(call: { to: Hex; value: bigint; data?: Hex }): Promise<Hex> {
    const hash = await send(this.#anvil, this.network, call)
    await this.#produce()
    const receipt = await this.#anvil.call<{ status: Hex } | null>(
      'eth_getTransactionReceipt',
      hash,
    )
    if (receipt?.status !== '0x1')
      throw new Error(`the funding transaction of ${this.network.code} was not executed`)
    this.#producer.wake()
    return hash
  }

  /** The contracts of the asset registry, in the first blocks. */
  async #genesis(): Promise<void> {
    const blocks = [await blockRecord(this.#anvil, new Map())]
    await deploy(this.#anvil, this.network, this.network.tokens, async () => {
      blocks.push(
        await mineBlock(this.#anvil, blocks.at(-1)!.time + GENESIS_SPACING_SECONDS, this.#pending),
      )
    })
    this.#journal.append([{ blocks }])
    this.#remember({ blocks })
  }

  /**
   * A token that joined the registry after this chain began, or that a reorganisation took away.
   */
  async #deployMissing(): Promise<void> {
    const missing = await this.#missing()
    if (missing.length === 0) return
    await this.gate.write(() =>
      deploy(this.#anvil, this.network, missing, async () => void (await this.#produce())),
    )
    const [lost] = await this.#missing()
    if (!lost) return
    throw new Error(
      `${lost.asset} is not at ${lost.address}: this home was made by another genesis, or the registry names another address`,
    )
  }

  async #missing(): Promise<Token[]> {
    const missing: Token[] = []
    for (const token of this.network.tokens)
      if (!(await isDeployed(this.#anvil, token))) missing.push(token)
    return missing
  }

  /** The engine may be killed like anything else: the journal brings it back. */
  #watch(): void {
    const anvil = this.#anvil
    anvil.onExit(() => {
      if (this.#stopped || anvil !== this.#anvil) return
      void this.gate.write(async () => {
        if (!this.#stopped && anvil === this.#anvil)
          await this.#adopt(await this.#engines.start(this.#blocks))
      })
    })
  }
}
