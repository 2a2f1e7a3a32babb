import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type * as Scalus from 'scalus'
import { parseAmount } from '../amount.ts'
import { RequestError } from '../errors.ts'
import { Journal } from '../journal.ts'
import { Producer } from '../producer.ts'
import { REAL_TIME, type Timing } from '../timing.ts'
import { addressOf, FAUCET, genesis, GENESIS_LOVELACE, pay } from './faucet.ts'
import { readTransaction, type Transaction } from './transaction.ts'

// The package is one bundled file, whose exports a static import does not find.
const { Emulator, SlotConfig } = createRequire(import.meta.url)('scalus') as typeof Scalus
type Ledger = Scalus.Emulator

const ADA_DECIMALS = 6
const BUSY_MS = 400
const IDLE_MS = 30_000
/**
 * Number of blocks that follow the last transaction at the busy pace, slightly more than the
 * confirmations of a payment.
 */
const QUIET_BLOCKS = 18
/** Time of slot 0 in Unix milliseconds; a slot lasts one second. */
export const SLOT_ZERO_MS = Date.UTC(2020, 0, 1)
export const SLOT_MS = 1000
/** Number of ledger states that are kept for a reorganization; older ones are computed again. */
const STATES_KEPT = 128
const FAUCET_LIFE_SLOTS = 100_000
const QUANTITY_MAX = (1n << 63n) - 1n

interface Line {
  slot: number
  raw: string[]
}
/** `after`: height of the block that these blocks follow, if it is not the head. */
interface ChainRecord {
  after?: number
  blocks: Line[]
}
export interface Block {
  height: number
  slot: number
  hash: string
  parent: string
  transactions: Transaction[]
}
export interface Place {
  transaction: Transaction
  block: Block
  order: number
}
export interface Unspent {
  hash: string
  index: number
  coin: bigint
  address: string
}

/** A transaction was rejected; the message is the ledger's. */
export class NotTaken extends Error {
  override readonly name = 'NotTaken'
}

/**
 * Returns the output that the faucet spends next after a transaction: its change, if it belongs to
 * the faucet.
 */
function afterPayment(faucet: Unspent, { hash: of, inputs, outputs }: Transaction): Unspent {
  if (!inputs.some(({ hash, index }) => hash === faucet.hash && index === faucet.index))
    return faucet
  const change = outputs.findLast(({ address }) => address === FAUCET)
  return change ? { hash: of, index: change.index, coin: change.coin, address: FAUCET } : faucet
}

/**
 * The local Cardano network. The ledger's rules come from scalus; blocks, slots and the journal are
 * implemented here.
 */
export class CardanoChain {
  readonly blocks: Block[] = []
  readonly places = new Map<string, Place>()
  /** Hash of the transaction in a block that spent an output, by `hash#index`. */
  readonly spenders = new Map<string, string>()
  #states = new Map<number, Ledger>()
  #waiting: Transaction[] = []
  /** Ledger state after the waiting transactions. */
  #open: Ledger
  readonly #journal: Journal<ChainRecord>
  readonly #producer: Producer
  readonly timing: Timing
  #quiet = 0
  #faucet: Unspent = { ...genesis().outpoint, coin: GENESIS_LOVELACE, address: FAUCET }

  private constructor(timing: Timing, journal: Journal<ChainRecord>, records: ChainRecord[]) {
    this.timing = timing
    this.#journal = journal
    this.#begin()
    let lines: Line[] = []
    for (const { after, blocks } of records)
      lines = [...(after === undefined ? lines : lines.slice(0, after)), ...blocks]
    for (const line of lines) this.#connect(line)
    this.#open = this.#state(this.head.height).snapshot()
    this.#producer = new Producer({
      timing,
      busyMs: BUSY_MS,
      idleMs: IDLE_MS,
      isBusy: () => this.#waiting.length > 0 || this.#quiet < QUIET_BLOCKS,
      produce: async () => {
        this.#produce()
      },
    })
    this.#producer.wake()
  }

  static async open(home: string, timing: Timing = REAL_TIME): Promise<CardanoChain> {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    const { journal, records } = Journal.open<ChainRecord>(join(home, 'blocks.journal'))
    return new CardanoChain(timing, journal, records)
  }

  get head(): Block {
    return this.blocks.at(-1) as Block
  }

  /** Transactions that wait for a block. */
  get waiting(): readonly Transaction[] {
    return this.#waiting
  }

  close(): void {
    this.#producer.stop()
    this.#journal.close()
  }

  /**
   * Adds a transaction to the next block and returns its hash.
   * @throws NotTaken
   */
  submit(raw: string): string {
    let transaction: Transaction
    try {
      transaction = readTransaction(raw)
    } catch {
      throw new NotTaken('DecoderFailure: the bytes are not a transaction')
    }
    this.#open.setSlot(this.#nextSlot())
    const refusal = apply(this.#open, transaction)
    if (refusal !== null) throw new NotTaken(refusal)
    this.#waiting.push(transaction)
    this.#producer.wake()
    return transaction.hash
  }

  /** Pays from the faucet, with tokens minted for the payment, and produces a block. */
  fund(address: unknown, amount: unknown, tokens: unknown): string {
    if (typeof address !== 'string' || !addressOf(address)) {
      throw new RequestError(`address ${JSON.stringify(address)} is not an address of ADA`)
    }
    const coin = parseAmount(amount, ADA_DECIMALS)
    const from = this.#waiting.reduce(afterPayment, this.#faucet)
    if (coin > from.coin / 2n)
      throw new RequestError(`amount ${String(amount)} is more than the faucet has`)
    const { raw, hash } = pay({
      from,
      to: address,
      coin,
      tokens: tokensOf(tokens),
      ttl: this.#nextSlot() + FAUCET_LIFE_SLOTS,
    })
    try {
      this.submit(raw)
    } catch (error) {
      if (error instanceof NotTaken)
        throw new RequestError(`the faucet's payment failed: ${error.message.slice(0, 500)}`)
      throw error
    }
    this.#produce()
    return hash
  }

  /**
   * Produces blocks.
   * @param seconds by which the first block moves the slots forward
   */
  mine(count: number, seconds: number): Block {
    for (let made = 0; made < count; made++) this.#produce(made === 0 ? seconds : 0)
    return this.head
  }

  /**
   * Replaces the last `depth` blocks by `depth + 1` empty ones. Their transactions return to the
   * mempool unless `drop` is set.
   */
  reorg(depth: number, drop: boolean): Block {
    const after = this.head.height - depth
    if (after < 0) throw new RequestError(`the chain has only ${this.head.height} blocks`)
    const removed = this.blocks.slice(after + 1)
    const again = [
      ...(drop ? [] : removed.flatMap(({ transactions }) => transactions)),
      ...this.#waiting,
    ]
    const first = Math.max(this.#nextSlot(), this.head.slot + 1)
    const lines = Array.from({ length: depth + 1 }, (_, at): Line => ({
      slot: first + at,
      raw: [],
    }))
    this.#journal.append([{ after, blocks: lines }])
    this.#rewind(after)
    for (const line of lines) this.#connect(line)
    this.#open = this.#state(this.head.height).snapshot()
    this.#open.setSlot(this.#nextSlot())
    this.#waiting = again.filter((transaction) => apply(this.#open, transaction) === null)
    this.#quiet = 0
    this.#producer.wake()
    return this.head
  }

  /** Returns the unspent outputs of an address after the last block. */
  unspent(address: string): (Unspent & { place: Place })[] {
    return [...this.places.values()].flatMap((place) =>
      place.transaction.outputs
        .filter(
          (output) =>
            output.address === address &&
            !this.spenders.has(`${place.transaction.hash}#${output.index}`),
        )
        .map(({ index, coin }) => ({ hash: place.transaction.hash, index, coin, address, place })),
    )
  }

  /**
   * Creates a block and writes it to the journal. There is no await in between, so no request can
   * see the block earlier.
   */
  #produce(seconds = 0): void {
    const slot = this.#nextSlot() + seconds
    const state = this.#state(this.head.height).snapshot()
    state.setSlot(slot)
    const taken = this.#waiting.filter((transaction) => apply(state, transaction) === null)
    const line: Line = { slot, raw: taken.map(({ raw }) => raw) }
    this.#journal.append([{ blocks: [line] }])
    this.#waiting = []
    this.#connect(line)
    this.#open = this.#state(this.head.height).snapshot()
    this.#quiet = taken.length > 0 ? 0 : this.#quiet + 1
    this.#producer.wake()
  }

  #begin(): void {
    const state = new Emulator(genesis().utxos, new SlotConfig(SLOT_ZERO_MS, 0, SLOT_MS))
    this.blocks.push({
      height: 0,
      slot: 0,
      hash: hashOf('', 0, 0, []),
      parent: '',
      transactions: [],
    })
    this.#states.set(0, state)
  }

  /**
   * Appends a block.
   * @throws Error if the ledger rejects a transaction that it accepted before
   */
  #connect({ slot, raw }: Line): void {
    const { height, hash: parent } = this.head
    const state = this.#state(height).snapshot()
    state.setSlot(slot)
    const transactions = raw.map((each) => readTransaction(each))
    for (const transaction of transactions) {
      const refusal = apply(state, transaction)
      if (refusal !== null)
        throw new Error(
          `ADA: block ${height + 1} of the journal does not apply: ${refusal.slice(0, 300)}`,
        )
    }
    const block: Block = {
      height: height + 1,
      slot,
      parent,
      transactions,
      hash: hashOf(parent, height + 1, slot, transactions),
    }
    this.blocks.push(block)
    this.#states.set(block.height, state)
    this.#states.delete(block.height - STATES_KEPT)
    for (const [order, transaction] of transactions.entries()) {
      this.places.set(transaction.hash, { transaction, block, order })
      for (const { hash, index } of transaction.inputs)
        this.spenders.set(`${hash}#${index}`, transaction.hash)
      this.#faucet = afterPayment(this.#faucet, transaction)
    }
  }

  #rewind(height: number): void {
    const remaining = this.blocks.slice(1, height + 1)
    this.blocks.length = 0
    this.places.clear()
    this.spenders.clear()
    this.#faucet = { ...genesis().outpoint, coin: GENESIS_LOVELACE, address: FAUCET }
    this.#states = new Map()
    this.#begin()
    for (const { slot, transactions } of remaining)
      this.#connect({ slot, raw: transactions.map(({ raw }) => raw) })
  }

  #state(height: number): Ledger {
    return this.#states.get(height) as Ledger
  }

  /** Never before the head's slot, because an operator may have moved the slots forward. */
  #nextSlot(): number {
    return Math.max(this.head.slot + 1, Math.floor((this.timing.now() - SLOT_ZERO_MS) / SLOT_MS))
  }
}

function hashOf(parent: string, height: number, slot: number, transactions: Transaction[]): string {
  return createHash('sha256')
    .update(`ADA ${parent} ${height} ${slot} ${transactions.map(({ hash }) => hash).join(' ')}`)
    .digest('hex')
}

/** Applies a transaction; returns null if it was accepted. */
function apply(state: Ledger, { raw }: Transaction): string | null {
  try {
    const { isSuccess, error } = state.submitTx(Uint8Array.from(Buffer.from(raw, 'hex')))
    return isSuccess ? null : (error ?? 'refused')
  } catch (error) {
    return `DecoderFailure: ${(error as Error).message}`
  }
}

function tokensOf(tokens: unknown): Record<string, string> {
  if (tokens === undefined) return {}
  const entries =
    typeof tokens === 'object' && tokens !== null && !Array.isArray(tokens)
      ? Object.entries(tokens)
      : []
  if (entries.length === 0)
    throw new RequestError('tokens must be an object of names with whole numbers in strings')
  for (const [name, quantity] of entries) {
    if (
      Buffer.byteLength(name) > 32 ||
      typeof quantity !== 'string' ||
      !/^[1-9]\d{0,18}$/.test(quantity) ||
      BigInt(quantity) > QUANTITY_MAX
    ) {
      throw new RequestError(`tokens.${name} is not a whole number in a string`)
    }
  }
  return Object.fromEntries(entries) as Record<string, string>
}
