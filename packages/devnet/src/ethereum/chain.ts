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
 * Number of blocks after which waiting transactions that cannot be mined (fee below the base fee)
 * no longer cause further blocks.
 */
const STALLED_BLOCKS = 30
/**
 * Number of blocks of the genesis phase: the first contract and coins for the deployers of the
 * others, then the other contracts.
 */
const GENESIS_BLOCKS = 2
const GENESIS_SPACING_SECONDS = 12

/** One EVM chain: an engine whose blocks are journaled before any request can read them. */
export class EthereumChain {
  readonly network: EvmNetwork
  readonly lock = new ReadWriteLock()
  readonly #timing: Timing
  readonly #snapshots: Snapshots
  readonly #engines: Engines
  readonly #journal: Journal<ChainRecord>
  readonly #producer: Producer
  /**
   * Transactions that were broadcast and not mined. Their raw bytes are needed for the journal, and
   * after a reorganization.
   */
  readonly #pending = new Map<Hex, Pending>()
  /** Fees that a roll-up charged, by transaction hash. */
  readonly #charges = new Map<Hex, Charge>()
  /** Transactions that wait for a lower base fee. */
  readonly held = new Held()
  /** Index 0 is the genesis block, which the engine creates itself. */
  #blocks: BlockRecord[] = []
  #anvil!: Anvil
  #stopped = false
  /**
   * Zero at a start too, so that transactions mined just before the stop become final immediately.
   */
  #blocksSinceTransaction = 0
  /** Base fee of the next block if it was set, or of every block while the chain is congested. */
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
      produce: async () => void (await this.lock.write(() => this.#produce())),
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

  /**
   * Returns the fees of a mined transaction in addition to its gas; undefined if there are none.
   */
  chargeOf(hash: Hex): Charge | undefined {
    return this.#charges.get(hash)
  }

  close(): void {
    this.#stopped = true
    this.#producer.stop()
    this.#anvil.kill()
    this.#journal.close()
  }

  /** Records a transaction that the engine accepted. */
  broadcast(hash: Hex, transaction: Pending): void {
    this.held.replacedBy(transaction)
    this.#pending.set(hash, transaction)
    if (this.#blocksSinceTransaction >= this.network.quietBlocks) this.#blocksSinceTransaction = 0
    this.#producer.wake()
  }

  get pending(): Pending[] {
    return [...this.#pending.values(), ...this.held.values()]
  }

  isWaiting(hash: Hex): boolean {
    return this.#pending.has(hash) || this.held.get(hash) !== undefined
  }

  /** Returns the nonce of an account's next transaction in a block. */
  async nonceOf(address: Hex): Promise<number> {
    return Number(await this.#anvil.call<Hex>('eth_getTransactionCount', address, 'latest'))
  }

  /** Returns an account's coins in wei. */
  async balanceOf(address: Hex): Promise<bigint> {
    return BigInt(await this.#anvil.call<Hex>('eth_getBalance', address, 'latest'))
  }

  /** Drops a waiting transaction. Returns false if it does not wait. */
  async drop(hash: Hex): Promise<boolean> {
    return this.lock.write(async () => {
      if (this.held.delete(hash)) return true
      if (!this.#pending.delete(hash)) return false
      return (await this.#anvil.call('anvil_dropTransaction', hash)) !== null
    })
  }

  #addressOf(text: unknown): Hex {
    if (typeof text === 'string' && isAddress(text)) return getAddress(text)
    throw new RequestError(
      `address ${JSON.stringify(text)} is not an address of ${this.network.code}`,
    )
  }

  /**
   * Pays an address by a contract, so that no block lists the payment: the contract's constructor calls
   * the address with all that it receives.
   */
  async payByContract(address: unknown, amount: unknown): Promise<Hex> {
    const to = this.#addressOf(address).slice(2).toLowerCase()
    const value = parseAmount(amount, 18)
    // CALL(gas, to, callvalue, 0, 0, 0, 0); STOP
    const data = `0x60006000600060003473${to}5af100` as const
    return this.lock.write(() => this.#fund({ value, data }))
  }

  async fund(asset: string, address: unknown, amount: unknown): Promise<Hex> {
    const to = this.#addressOf(address)
    const token = this.network.tokens.find((candidate) => candidate.asset === asset)
    if (!token) {
      const value = parseAmount(amount, 18)
      return this.lock.write(() => this.#fund({ to, value }))
    }
    const value = parseAmount(amount, token.decimals)
    const data = encodeFunctionData({
      abi: artefact(token.artefact).abi,
      functionName: 'transfer',
      args: [to, value],
    })
    return this.lock.write(() => this.#fund({ to: token.address, value: 0n, data }))
  }

  /**
   * Sets the base fee from the next block on, so that transactions with lower fees wait. Null ends
   * this and restores the previous fee.
   * @param baseFee wei per gas
   */
  async congest(baseFee: bigint | null): Promise<void> {
    if (this.network.legacy)
      throw new RequestError(`${this.network.code} has no base fee that could rise`)
    await this.lock.write(async () => {
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
    for (let made = 0; made < count; made += 1) block = await this.lock.write(() => this.#produce())
    this.#producer.wake()
    return block
  }

  /**
   * Replaces the last `depth` blocks by `depth + 1` empty ones. A second engine replays the journal
   * up to the fork point and takes over, so no state of the removed branch remains.
   */
  async reorg(depth: number): Promise<BlockRecord> {
    await this.lock.write(async () => {
      const deepest = this.head.height - (this.network.tokens.length > 0 ? GENESIS_BLOCKS : 0)
      if (depth > deepest)
        throw new RequestError(
          `depth ${depth} would undo the genesis phase: at most ${deepest} blocks can be replaced`,
        )
      const remaining = this.#blocks.slice(0, this.#blocks.length - depth)
      const removed = this.#blocks[remaining.length]!
      const anvil = await this.#engines.start(remaining)
      try {
        const blocks: BlockRecord[] = []
        // One second later than the block it replaces, because identical content would have the
        // same hash.
        for (let index = 0; index <= depth; index += 1) {
          blocks.push(await mineBlock(anvil, removed.time + 1 + index, this.#pending, this.network))
        }
        const record = { after: remaining.at(-1)!.height, blocks }
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

  /** Switches to another engine, and sends it the waiting transactions of the previous one. */
  async #adopt(anvil: Anvil): Promise<void> {
    this.#anvil.kill()
    this.#anvil = anvil
    this.#watch()
    for (const [hash, { raw }] of this.#pending) {
      await anvil.call('eth_sendRawTransaction', raw).catch(() => this.#pending.delete(hash))
    }
  }

  /** Produces one block and writes it to disk. Call it only with the write lock. */
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
      // On a full disk the engine is replaced, so that it contains only blocks of the journal.
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
      const remaining = this.#blocks.findIndex((block) => block.height === record.after)
      this.#blocks = this.#blocks.slice(0, remaining + 1)
    }
    this.#blocks.push(...record.blocks)
    for (const { charges = [] } of record.blocks)
      for (const charge of charges) this.#charges.set(charge.hash, charge)
  }

  /** Removes transactions that the engine dropped from its pool (replaced, nonce used). */
  async #forgetDropped(): Promise<void> {
    for (const hash of this.#pending.keys()) {
      if ((await this.#anvil.call('eth_getTransactionByHash', hash)) === null)
        this.#pending.delete(hash)
    }
  }

  async #fund(call: { to?: Hex; value: bigint; data?: Hex }): Promise<Hex> {
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

  /** Deploys the contracts of the asset registry in the first blocks. */
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
   * Deploys a token that was added to the registry after this chain began, or that a reorganization
   * removed.
   */
  async #deployMissing(): Promise<void> {
    const missing = await this.#missing()
    if (missing.length === 0) return
    await this.lock.write(() =>
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

  /** Restarts the engine from the journal if it is killed. */
  #watch(): void {
    const anvil = this.#anvil
    anvil.onExit(() => {
      if (this.#stopped || anvil !== this.#anvil) return
      void this.lock.write(async () => {
        if (!this.#stopped && anvil === this.#anvil)
          await this.#adopt(await this.#engines.start(this.#blocks))
      })
    })
  }
}
