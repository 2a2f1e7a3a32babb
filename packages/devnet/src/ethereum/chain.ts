import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, readdirSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Hex } from 'viem'
import { encodeDeployData, encodeFunctionData, getAddress, isAddress, toHex } from 'viem/utils'
import { privateKeyToAccount } from 'viem/accounts'
import { parseAmount } from '../amount.ts'
import { RequestError } from '../errors.ts'
import { Gate } from '../gate.ts'
import { Journal, syncFolder } from '../journal.ts'
import { Producer } from '../producer.ts'
import { REAL_TIME, type Timing } from '../timing.ts'
import { Anvil } from './anvil.ts'
import { Held } from './held-transactions.ts'
import { artefact, deployedAddress, deployerKey, FAUCET_KEY, type EvmNetwork, type Token } from './networks.ts'
import type { Pending } from './policy.ts'

/**
 * A block as it is journalled: with these the engine makes the same block again, to the hash.
 * `base_fee`: what the operator set it to; else it follows from the block before.
 */
export type BlockRecord = { height: number; time: number; hash: Hex; raw: Hex[]; base_fee?: Hex }
/** `after`: height of the last block that stays. A reorganisation is one record, so it is all or nothing. */
export type ChainRecord = { blocks: BlockRecord[]; after?: number }

type Block = { number: Hex; hash: Hex; parentHash: Hex; timestamp: Hex; transactions: Hex[] }

const BUSY_MS = 1000
const IDLE_MS = 15_000
/** Pending transactions that cannot be mined (fee below the base fee) must not drive blocks for ever. */
const STALLED_BLOCKS = 30
/**
 * The engine hashes its whole state in each block, so replaying costs up to 6 ms a block once the
 * history contract (EIP-2935) has filled: a start may replay few.
 */
const SNAPSHOT_EVERY = 64
/** Enough for the deepest reorganisation on demand to start from one. */
const SNAPSHOTS_KEPT = 4
/** A snapshot holds only its newest state, so this many blocks are always replayed on top of one. */
const REPLAY_MIN = 32
/** The genesis phase: the first contract, coins for the deployers of the others, and those. */
const GENESIS_BLOCKS = 2
const GENESIS_SPACING_SECONDS = 12
const DEPLOYER_COINS = 10n ** 18n

export class EthereumChain {
  readonly network: EvmNetwork
  readonly gate = new Gate()
  readonly #timing: Timing
  readonly #home: string
  readonly #journal: Journal<ChainRecord>
  readonly #account = privateKeyToAccount(FAUCET_KEY)
  readonly #producer: Producer
  /** Broadcast and not yet mined: needed as raw bytes for the journal, and again after a reorganisation. */
  readonly #pending = new Map<Hex, Pending>()
  /** Waiting too, for a lower base fee. */
  readonly held = new Held()
  /** Index 0 is the genesis block, which the engine makes itself. */
  #blocks: BlockRecord[] = []
  #anvil!: Anvil
  #slot = 0
  #stopped = false
  /** From zero also at a start, so that what was mined just before the end becomes final at once. */
  #blocksSinceTransaction = 0
  /** Base fee of the block to come where somebody has set it; of each one while the chain is congested. */
  #nextBaseFee: Hex | null = null
  #congested = false
  #calmFee: Hex | null = null

  private constructor(network: EvmNetwork, home: string, timing: Timing, journal: Journal<ChainRecord>, records: ChainRecord[]) {
    this.#timing = timing
    this.network = network
    this.#home = home
    this.#journal = journal
    for (const record of records) this.#remember(record)
    this.#producer = new Producer({
      timing,
      busyMs: BUSY_MS,
      idleMs: IDLE_MS,
      isBusy: () =>
        this.#blocksSinceTransaction < network.quietBlocks || (this.#pending.size > 0 && this.#blocksSinceTransaction < STALLED_BLOCKS),
      produce: async () => void (await this.gate.write(() => this.#produce())),
    })
  }

  static async open(network: EvmNetwork, home: string, timing: Timing = REAL_TIME): Promise<EthereumChain> {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    const { journal, records } = Journal.open<ChainRecord>(join(home, 'blocks.journal'))
    const chain = new EthereumChain(network, home, timing, journal, records)
    chain.#anvil = await chain.#engine(chain.#blocks)
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
      throw new RequestError(`address ${JSON.stringify(address)} is not an address of ${this.network.code}`)
    }
    const to = getAddress(address)
    const token = this.network.tokens.find((candidate) => candidate.asset === asset)
    if (!token) {
      const value = parseAmount(amount, 18)
      return this.gate.write(() => this.#fund({ to, value }))
    }
    const value = parseAmount(amount, token.decimals)
    const data = encodeFunctionData({ abi: artefact(token.artefact).abi, functionName: 'transfer', args: [to, value] })
    return this.gate.write(() => this.#fund({ to: token.address, value: 0n, data }))
  }

  /**
   * From the next block on the base fee is this, so that what pays less waits; null ends it at the fee from before.
   * @param baseFee wei per gas
   */
  async congest(baseFee: bigint | null): Promise<void> {
    if (this.network.legacy) throw new RequestError(`${this.network.code} has no base fee that could rise`)
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
      if (depth > deepest) throw new RequestError(`depth ${depth} would undo the genesis phase: at most ${deepest} blocks can be replaced`)
      const kept = this.#blocks.slice(0, this.#blocks.length - depth)
      const removed = this.#blocks[kept.length]!
      const anvil = await this.#engine(kept)
      try {
        const blocks: BlockRecord[] = []
        // One second later than the block it replaces: the same content would have the same hash.
        for (let index = 0; index <= depth; index += 1) blocks.push(await mineBlock(anvil, removed.time + 1 + index, this.#pending))
        const record = { after: kept.at(-1)!.height, blocks }
        this.#dropSnapshots(record.after)
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
    const block = await mineBlock(this.#anvil, time, this.#pending, this.#nextBaseFee)
    if (!this.#congested) this.#nextBaseFee = null
    try {
      this.#append(block)
    } catch (error) {
      // A full disk: the engine must not show what the journal does not have.
      await this.#adopt(await this.#engine(this.#blocks))
      throw error
    }
    if (block.raw.length > 0) this.#blocksSinceTransaction = 0
    else this.#blocksSinceTransaction += 1
    if (this.#pending.size > 0) await this.#forgetDropped()
    for (const [hash, transaction] of await this.held.offer(this.#anvil)) this.#pending.set(hash, transaction)
    if (block.height % SNAPSHOT_EVERY === 0) await this.#snapshot(block)
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
  }

  /** What the engine threw out of its pool (replaced, nonce used) is no longer pending. */
  async #forgetDropped(): Promise<void> {
    for (const hash of this.#pending.keys()) {
      if ((await this.#anvil.call('eth_getTransactionByHash', hash)) === null) this.#pending.delete(hash)
    }
  }

  async #fund(call: { to: Hex; value: bigint; data?: Hex }): Promise<Hex> {
    const hash = await this.#send(call)
    await this.#produce()
    const receipt = await this.#anvil.call<{ status: Hex } | null>('eth_getTransactionReceipt', hash)
    if (receipt?.status !== '0x1') throw new Error(`the funding transaction of ${this.network.code} was not executed`)
    this.#producer.wake()
    return hash
  }

  async #send(call: { to?: Hex; value: bigint; data?: Hex }, key: Hex = FAUCET_KEY): Promise<Hex> {
    const account = privateKeyToAccount(key)
    const nonce = Number(await this.#anvil.call<Hex>('eth_getTransactionCount', account.address, 'pending'))
    const common = { ...call, chainId: this.network.chainId, nonce, gas: call.to === undefined ? 2_000_000n : 200_000n }
    const raw = await account.signTransaction(
      this.network.legacy
        ? { ...common, type: 'legacy', gasPrice: BigInt(await this.#anvil.call<Hex>('eth_gasPrice')) }
        : {
            ...common, type: 'eip1559', maxFeePerGas: key === FAUCET_KEY ? 1_000_000_000_000n : 100_000_000_000n,
            maxPriorityFeePerGas: 1_000_000_000n,
          }
    )
    return this.#anvil.call<Hex>('eth_sendRawTransaction', raw)
  }

  /** The contracts of the asset registry, in the first blocks. */
  async #genesis(): Promise<void> {
    const blocks = [await blockRecord(this.#anvil, new Map())]
    await this.#deploy(this.network.tokens, async () => {
      blocks.push(await mineBlock(this.#anvil, blocks.at(-1)!.time + GENESIS_SPACING_SECONDS, this.#pending))
    })
    this.#journal.append([{ blocks }])
    this.#remember({ blocks })
  }

  /** A token that joined the registry after this chain began, or that a reorganisation took away. */
  async #deployMissing(): Promise<void> {
    const missing: Token[] = []
    for (const token of this.network.tokens) {
      if ((await this.#anvil.call<Hex>('eth_getCode', token.address, 'latest')) === '0x') missing.push(token)
    }
    if (missing.length === 0) return
    await this.gate.write(() => this.#deploy(missing, async () => void (await this.#produce())))
    for (const token of missing) {
      const code = await this.#anvil.call<Hex>('eth_getCode', token.address, 'latest')
      if (code === '0x') {
        throw new Error(
          `${token.asset} is not at ${token.address}: this home was made by another genesis, or the registry names another address`
        )
      }
    }
  }

  async #deploy(tokens: readonly Token[], mine: () => Promise<void>): Promise<void> {
    if (tokens.length === 0) return
    const keys = new Map(
      tokens.map((token) => [token, token.address === deployedAddress(FAUCET_KEY) ? FAUCET_KEY : deployerKey(token.asset)])
    )
    const create = async (token: Token, key: Hex): Promise<void> => {
      const { abi, bytecode } = artefact(token.artefact)
      await this.#send(
        { value: 0n, data: encodeDeployData({ abi, bytecode, args: [token.supply, token.decimals, this.#account.address] }) }, key
      )
    }
    // The faucet's own contract comes first: its address follows from the faucet's first nonce.
    for (const [token, key] of keys) if (key === FAUCET_KEY) await create(token, key)
    for (const key of keys.values()) {
      if (key !== FAUCET_KEY) await this.#send({ to: privateKeyToAccount(key).address, value: DEPLOYER_COINS })
    }
    await mine()
    for (const [token, key] of keys) if (key !== FAUCET_KEY) await create(token, key)
    await mine()
  }

  /** A fresh engine brought to the end of `blocks`, every hash on the way compared with the journal. */
  async #engine(blocks: BlockRecord[]): Promise<Anvil> {
    const genesis = blocks[0]
    for (;;) {
      this.#slot = 1 - this.#slot
      const anvil = await Anvil.start(this.network, this.#home, `anvil-${this.#slot}`)
      try {
        for (const { address, artefact: name } of this.network.predeploys) {
          await anvil.call('anvil_setCode', address, artefact(name).runtime)
        }
        if (!genesis) return anvil
        const own = await anvil.call<Block>('eth_getBlockByNumber', '0x0', false)
        if (own.hash !== genesis.hash) throw new Error(`the genesis block of ${this.network.code} is not the journal's`)
        const snapshot = this.#snapshots().find((height) => height <= blocks.length - 1 - REPLAY_MIN)
        if (snapshot === undefined || (await this.#load(anvil, blocks[snapshot]!))) {
          for (let next = (snapshot ?? 0) + 1; next < blocks.length; next += 1) await replay(anvil, blocks[next]!)
          return anvil
        }
        // The journal is the truth, a snapshot only saves time: without this one it goes again.
        console.error(`devnet: the snapshot of ${this.network.code} at ${snapshot} does not lead to the journal's block: dropped`)
        rmSync(this.#snapshotPath(snapshot))
        anvil.kill()
      } catch (error) {
        anvil.kill()
        throw error
      }
    }
  }

  async #load(anvil: Anvil, block: BlockRecord): Promise<boolean> {
    try {
      await anvil.call('anvil_loadState', readFileSync(this.#snapshotPath(block.height), 'utf8'))
      return (await anvil.call<Block>('eth_getBlockByNumber', 'latest', false)).hash === block.hash
    } catch {
      return false
    }
  }

  #snapshotPath(height: number): string {
    return join(this.#home, `state-${height}.hex`)
  }

  #snapshots(): number[] {
    return readdirSync(this.#home)
      .flatMap((name) => /^state-(\d+)\.hex$/.exec(name)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => b - a)
  }

  async #snapshot(block: BlockRecord): Promise<void> {
    const state = await this.#anvil.call<Hex>('anvil_dumpState', false)
    const path = this.#snapshotPath(block.height)
    const file = openSync(`${path}.part`, 'w', 0o600)
    writeSync(file, state)
    fsyncSync(file)
    closeSync(file)
    renameSync(`${path}.part`, path)
    syncFolder(this.#home)
    for (const height of this.#snapshots().slice(SNAPSHOTS_KEPT)) rmSync(this.#snapshotPath(height))
  }

  #dropSnapshots(above: number): void {
    for (const height of this.#snapshots()) if (height > above) rmSync(this.#snapshotPath(height))
  }

  /** The engine may be killed like anything else: the journal brings it back. */
  #watch(): void {
    const anvil = this.#anvil
    anvil.onExit(() => {
      if (this.#stopped || anvil !== this.#anvil) return
      void this.gate.write(async () => {
        if (!this.#stopped && anvil === this.#anvil) await this.#adopt(await this.#engine(this.#blocks))
      })
    })
  }
}

async function mineBlock(anvil: Anvil, time: number, pending: Map<Hex, Pending>, baseFee: Hex | null = null): Promise<BlockRecord> {
  if (baseFee !== null) await anvil.call('anvil_setNextBlockBaseFeePerGas', baseFee)
  await anvil.call('evm_mine', { timestamp: time })
  const block = await blockRecord(anvil, pending)
  return baseFee === null ? block : { ...block, base_fee: baseFee }
}

async function blockRecord(anvil: Anvil, pending: Map<Hex, Pending>): Promise<BlockRecord> {
  const block = await anvil.call<Block>('eth_getBlockByNumber', 'latest', false)
  const raw: Hex[] = []
  for (const hash of block.transactions) {
    raw.push(pending.get(hash)?.raw ?? (await anvil.call<Hex>('eth_getRawTransactionByHash', hash)))
    pending.delete(hash)
  }
  return { height: Number(block.number), time: Number(block.timestamp), hash: block.hash, raw }
}

async function replay(anvil: Anvil, block: BlockRecord): Promise<void> {
  for (const raw of block.raw) await anvil.call('eth_sendRawTransaction', raw)
  if (block.base_fee !== undefined) await anvil.call('anvil_setNextBlockBaseFeePerGas', block.base_fee)
  await anvil.call('evm_mine', { timestamp: block.time })
  const made = await anvil.call<Block>('eth_getBlockByNumber', 'latest', false)
  if (made.hash !== block.hash) throw new Error(`block ${block.height} came back as ${made.hash}, the journal has ${block.hash}`)
}
