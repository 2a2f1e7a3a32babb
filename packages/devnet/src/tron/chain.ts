import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseAmount } from '../amount.ts'
import { RequestError } from '../errors.ts'
import { ReadWriteLock } from '../read-write-lock.ts'
import { Journal } from '../journal.ts'
import { endLeftover } from '../processes.ts'
import { Producer } from '../producer.ts'
import { REAL_TIME, type Timing } from '../timing.ts'
import { addressOfSecret, recover, sha256, sign, toHex } from './address.ts'
import { FORWARDER, forwardData } from './forwarder.ts'
import { apply, Draft, Refusal, SLOT_MS, type Outcome, type Run } from './rules.ts'
import { writeBytes, writeNumber } from './protobuf.ts'
import { readTransaction, signedHex, writeRaw, type Tx, type Value } from './transaction.ts'
import { tokensOf, Tvm, type Call, type TronToken, type TvmResult } from './tvm.ts'

export type Included = { tx: Tx; outcome: Outcome }
export type Block = {
  number: number
  time: number
  id: string
  parent: string
  root: string
  header: Buffer
  transactions: Included[]
}
type BlockRecord = {
  number: number
  time: number
  id: string
  txs: { hex: string; tvm?: TvmResult }[]
}
/**
 * `after`: number of the last block that is kept. `clock`: milliseconds by which the operator moved
 * the chain's time.
 */
type ChainRecord = { blocks?: BlockRecord[]; after?: number; clock?: number }
/** State that results from the blocks. For a branch it is computed again from its blocks. */
type State = {
  draft: Draft
  blocks: Block[]
  places: Map<string, { block: Block; included: Included }>
}

const GENESIS_TIME = 1_699_999_998_000
const BUSY_MS = 1000
const IDLE_MS = 30_000
/** Number of blocks after which a block is final: a short round of block producers. */
export const SOLID_DEPTH = 2
const QUIET_BLOCKS = SOLID_DEPTH + 2
const REFERENCE_BLOCKS = 65_536
const LIFE_MAX_MS = 86_400_000
const OWN_LIFE_MS = 60_000
const BYTES_MAX = 512_000
const FUND_FEE_LIMIT = 1_000_000_000n
export const BLOCK_VERSION = 31
const RICH_SUN = 9_000_000_000n * 1_000_000n
const ADVANCE_MAX_MS = 400 * 86_400_000
const CONTRACT_RET: Record<Outcome['contractRet'], number> = {
  SUCCESS: 1,
  REVERT: 2,
  OUT_OF_ENERGY: 10,
}

/** Secret of the account with all coins. It is public, so they are worthless by design. */
const RICH_SECRET = sha256(Buffer.from('local Tron: the rich account'))
const WITNESS_SECRET = sha256(Buffer.from('local Tron: the witness'))
const RICH = addressOfSecret(RICH_SECRET)
export const TRON_TOKENS: readonly TronToken[] = tokensOf(RICH)
export const WITNESS = addressOfSecret(WITNESS_SECRET)

/** A ledger of our own with Tron's rules; a real EVM executes contracts. */
export class TronChain {
  readonly lock = new ReadWriteLock()
  readonly tokens = TRON_TOKENS
  readonly tvm: Tvm
  readonly #timing: Timing
  readonly #journal: Journal<ChainRecord>
  readonly #producer: Producer
  #state: State = genesis()
  #clock = 0
  #pending: Tx[] = []
  /** Accounts after the waiting transactions. */
  #open = new Draft()
  #last: Promise<unknown> = Promise.resolve()
  #quiet = 0
  #funds = 0

  private constructor(home: string, timing: Timing, journal: Journal<ChainRecord>) {
    this.#timing = timing
    this.#journal = journal
    this.tvm = new Tvm(home, this.tokens, () => this.#calls())
    this.#producer = new Producer({
      timing,
      busyMs: BUSY_MS,
      idleMs: IDLE_MS,
      isBusy: () => this.#pending.length > 0 || this.#quiet < QUIET_BLOCKS,
      produce: async () => void (await this.lock.write(() => this.#produce())),
    })
  }

  static async open(home: string, timing: Timing = REAL_TIME): Promise<TronChain> {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    // Engine of a killed process; this process may never need one.
    await endLeftover(join(home, 'tvm.pid'))
    const { journal, records } = Journal.open<ChainRecord>(join(home, 'blocks.journal'))
    const chain = new TronChain(home, timing, journal)
    let blocks: BlockRecord[] = []
    for (const { after, blocks: more = [], clock } of records) {
      if (after !== undefined) blocks = blocks.filter(({ number }) => number <= after)
      blocks.push(...more)
      chain.#clock = clock ?? chain.#clock
    }
    chain.#state = await chain.#replay(blocks)
    chain.#open = new Draft(chain.#state.draft)
    chain.#producer.wake()
    return chain
  }

  close(): void {
    this.#producer.stop()
    this.tvm.close()
    this.#journal.close()
  }

  get head(): Block {
    return this.#state.blocks.at(-1)!
  }

  get solid(): Block {
    return this.#state.blocks[Math.max(0, this.head.number - SOLID_DEPTH)]!
  }

  get accounts(): Draft {
    return new Draft(this.#state.draft)
  }

  get delegations(): Draft {
    return this.#state.draft
  }

  get pending(): readonly Tx[] {
    return this.#pending
  }

  block(number: number): Block | undefined {
    return this.#state.blocks[number]
  }

  place(id: string): { block: Block; included: Included } | undefined {
    return this.#state.places.get(id)
  }

  *#calls(): Iterable<Call> {
    for (const { transactions } of this.#state.blocks)
      for (const { outcome } of transactions) if (outcome.call) yield outcome.call
  }

  /** Builds a transaction for a caller, as a node does. */
  build(type: string, value: Value, feeLimit = 0n): Tx {
    const { number, id, time } = this.head
    const raw = writeRaw({
      type,
      value,
      feeLimit,
      expiration: time + OWN_LIFE_MS,
      timestamp: this.#timing.now() + this.#funds++,
      refBlockBytes: (number % REFERENCE_BLOCKS).toString(16).padStart(4, '0'),
      refBlockHash: id.slice(16, 32),
    })
    return readTransaction(signedHex(raw, []))
  }

  /**
   * Adds a transaction, which is checked after the waiting ones. Calls are processed one after
   * another.
   * @throws Refusal
   */
  async broadcast(hex: string): Promise<Tx> {
    let tx: Tx
    try {
      tx = readTransaction(hex)
    } catch (error) {
      throw new Refusal(
        'OTHER_ERROR',
        `the transaction cannot be read: ${(error as Error).message}`,
      )
    }
    const turn = this.#last.then(() => this.#admit(tx))
    this.#last = turn.catch(() => undefined)
    await turn
    this.#producer.wake()
    return tx
  }

  async #admit(tx: Tx): Promise<void> {
    if (this.#state.places.has(tx.id) || this.#pending.some(({ id }) => id === tx.id)) {
      throw new Refusal('DUP_TRANSACTION_ERROR', 'Dup transaction.')
    }
    if (tx.size > BYTES_MAX)
      throw new Refusal('TOO_BIG_TRANSACTION_ERROR', 'Transaction size is too big.')
    const [signature, more] = tx.signatures
    if (!signature || more)
      throw new Refusal('SIGERROR', 'Validate signature error: miss sig or contract')
    if (tx.contracts !== 1 || tx.typeUrl !== `type.googleapis.com/protocol.${tx.type}`) {
      throw new Refusal(
        'CONTRACT_VALIDATE_ERROR',
        'Contract validate error : contract size should be exactly 1',
      )
    }
    if (tx.permission !== 0n)
      throw new Refusal('SIGERROR', "Validate signature error: permission isn't exit")
    const signer = recover(signature, sha256(tx.raw))
    if (signer !== tx.value['owner_address']) {
      throw new Refusal(
        'SIGERROR',
        `Validate signature error: ${Buffer.from(signature).toString('hex')} is signed by ${signer ?? 'nobody'} ` +
          'but it is not contained of permission.',
      )
    }
    const referred = this.#state.blocks[this.#referred(tx.refBlockBytes)]
    if (tx.refBlockBytes.length !== 4 || referred?.id.slice(16, 32) !== tx.refBlockHash) {
      throw new Refusal('TAPOS_ERROR', 'Tapos failed, different block hash.')
    }
    const { time } = this.head
    if (tx.expiration <= time || tx.expiration > time + LIFE_MAX_MS) {
      throw new Refusal(
        'TRANSACTION_EXPIRATION_ERROR',
        `Transaction expired, transaction expiration time is ${tx.expiration}, but headBlockTime is ${time}`,
      )
    }
    const draft = new Draft(this.#open)
    await apply(
      draft,
      tx,
      time,
      (address) => this.tvm.isContract(address),
      (call) => this.tvm.simulate(call),
    )
    this.#open.keep(draft)
    this.#pending.push(tx)
  }

  /** Returns the newest block whose number ends with the two bytes. */
  #referred(bytes: string): number {
    const low = Number.parseInt(bytes, 16)
    const { number } = this.head
    const candidate = number - (number % REFERENCE_BLOCKS) + low
    return candidate > number ? candidate - REFERENCE_BLOCKS : candidate
  }

  async fund(asset: string, address: unknown, amount: unknown): Promise<string> {
    const to = toHex(address)
    if (to === undefined)
      throw new RequestError(`address ${JSON.stringify(address)} is not an address of TRX`)
    const token = this.tokens.find((candidate) => candidate.asset === asset)
    const value = parseAmount(amount, token?.decimals ?? 6)
    const data = `a9059cbb${to.slice(2).padStart(64, '0')}${value.toString(16).padStart(64, '0')}`
    return this.lock.write(async () => {
      const unsigned = token
        ? this.build(
            'TriggerSmartContract',
            { owner_address: RICH, contract_address: token.address, data },
            FUND_FEE_LIMIT,
          )
        : this.build('TransferContract', { owner_address: RICH, to_address: to, amount: value })
      try {
        await this.broadcast(signedHex(unsigned.raw, [sign(sha256(unsigned.raw), RICH_SECRET)]))
      } catch (error) {
        if (error instanceof Refusal) throw new RequestError(error.message)
        throw error
      }
      await this.#produce()
      const place = this.place(unsigned.id)
      if (place?.included.outcome.contractRet !== 'SUCCESS')
        throw new Error(`the funding transaction of ${asset} was not executed`)
      return unsigned.id
    })
  }

  /**
   * Lets a contract pay TRX in the next block.
   * @returns the id of the transaction that calls the contract
   */
  async payByContract(address: unknown, amount: unknown): Promise<string> {
    const to = toHex(address)
    if (to === undefined)
      throw new RequestError(`address ${JSON.stringify(address)} is not an address of TRX`)
    const value = {
      owner_address: RICH,
      contract_address: FORWARDER,
      data: forwardData(to),
      call_value: parseAmount(amount, 6),
    }
    const { raw } = this.build('TriggerSmartContract', value, FUND_FEE_LIMIT)
    try {
      return (await this.broadcast(signedHex(raw, [sign(sha256(raw), RICH_SECRET)]))).id
    } catch (error) {
      if (error instanceof Refusal) throw new RequestError(error.message)
      throw error
    }
  }

  async mine(count: number): Promise<Block> {
    for (let made = 0; made < count; made += 1) await this.lock.write(() => this.#produce())
    return this.head
  }

  /**
   * Moves the chain's time forward permanently, and produces a block with the new time. Unstaked
   * amounts are still subject to their waiting period.
   */
  async advance(ms: number): Promise<Block> {
    if (!Number.isInteger(ms) || ms <= 0 || ms > ADVANCE_MAX_MS)
      throw new RequestError('the clock can only be moved forward, by at most 400 days')
    return this.lock.write(async () => {
      // Relative to the head, because blocks in quick succession are ahead of the clock.
      const clock = Math.max(this.#clock, this.head.time - this.#timing.now()) + ms
      this.#journal.append([{ clock }])
      this.#clock = clock
      // More blocks follow soon, because an expiry is certain only in a final block.
      this.#quiet = 0
      return this.#produce()
    })
  }

  /** Replaces the last blocks, also final ones, by one more empty ones. */
  async reorg(depth: number, drop: boolean): Promise<Block> {
    return this.lock.write(async () => {
      if (depth > this.head.number)
        throw new RequestError(`depth ${depth} would undo the first block`)
      const remaining = this.#state.blocks.slice(1, this.#state.blocks.length - depth)
      const removed = this.#state.blocks.slice(remaining.length + 1)
      const state = await this.#replay(remaining.map(recordOf))
      const first = removed[0]!.time + SLOT_MS
      const blocks: Block[] = []
      for (let index = 0; index <= depth; index += 1) {
        const block = seal(state.blocks.at(-1)!, first + index * SLOT_MS, [])
        connect(state, block)
        blocks.push(block)
      }
      this.#journal.append([{ after: remaining.length, blocks: blocks.map(recordOf) }])
      this.tvm.reset()
      this.#state = state
      this.#pending = [
        ...(drop ? [] : removed.flatMap(({ transactions }) => transactions.map(({ tx }) => tx))),
        ...this.#pending,
      ]
      this.#open = new Draft(state.draft)
      this.#quiet = 0
      this.#producer.wake()
      return this.head
    })
  }

  /** Produces one block and writes it to disk. Call it only with the write lock. */
  async #produce(): Promise<Block> {
    const { time: before } = this.head
    const nominal = Math.floor((this.#timing.now() + this.#clock) / SLOT_MS) * SLOT_MS
    const time = Math.max(before + SLOT_MS, nominal)
    const draft = new Draft(this.#state.draft)
    const transactions: Included[] = []
    const run: Run = async (call, limit) => {
      const result = await this.tvm.simulate(call)
      if (!result.reverted && BigInt(result.energy) <= limit) await this.tvm.execute(call)
      return result
    }
    try {
      for (const tx of this.#pending) {
        // A transaction is dropped if it waited too long, or if an earlier one made it invalid.
        if (tx.expiration <= before) continue
        const each = new Draft(draft)
        try {
          transactions.push({
            tx,
            outcome: await apply(each, tx, time, (address) => this.tvm.isContract(address), run),
          })
          draft.keep(each)
        } catch (error) {
          // A Refusal occurs before a call is executed, because the limit of the call is computed
          // first.
          if (!(error instanceof Refusal)) throw error
        }
      }
      const block = seal(this.head, time, transactions)
      this.#journal.append([{ blocks: [recordOf(block)] }])
      this.#state.draft.keep(draft)
      connect(this.#state, block)
    } catch (error) {
      // The engine must not contain blocks that are not in the journal.
      this.tvm.reset()
      throw error
    }
    this.#pending = []
    this.#open = new Draft(this.#state.draft)
    this.#quiet = transactions.length > 0 ? 0 : this.#quiet + 1
    this.#producer.wake()
    return this.head
  }

  async #replay(records: readonly BlockRecord[]): Promise<State> {
    const state = genesis()
    for (const record of records) {
      const draft = new Draft(state.draft)
      const transactions: Included[] = []
      for (const { hex, tvm } of record.txs) {
        const tx = readTransaction(hex)
        const outcome = await apply(
          draft,
          tx,
          record.time,
          (address) => this.tvm.isContract(address),
          async () => tvm as TvmResult,
        )
        transactions.push({ tx, outcome })
      }
      const block = seal(state.blocks.at(-1)!, record.time, transactions)
      if (block.id !== record.id || block.number !== record.number) {
        throw new Error(
          `block ${record.number} of TRX was restored as ${block.id}, but the journal has ${record.id}`,
        )
      }
      state.draft.keep(draft)
      connect(state, block)
    }
    return state
  }
}

function genesis(): State {
  const draft = new Draft()
  draft.create(RICH, GENESIS_TIME).balance = RICH_SUN
  draft.create(WITNESS, GENESIS_TIME)
  const block = seal(undefined, GENESIS_TIME, [])
  return { draft, blocks: [block], places: new Map() }
}

export const GENESIS_ID = genesis().blocks[0]!.id

function connect(state: State, block: Block): void {
  state.blocks.push(block)
  for (const included of block.transactions) state.places.set(included.tx.id, { block, included })
}

function recordOf({ number, time, id, transactions }: Block): BlockRecord {
  return {
    number,
    time,
    id,
    txs: transactions.map(({ tx, outcome }) => ({
      hex: tx.hex,
      ...(outcome.tvm ? { tvm: outcome.tvm } : {}),
    })),
  }
}

function seal(parent: Block | undefined, time: number, transactions: Included[]): Block {
  const number = parent ? parent.number + 1 : 0
  const parentId = parent?.id ?? '0'.repeat(64)
  const root = merkleRoot(
    transactions.map(({ tx, outcome }) =>
      sha256(
        Buffer.from(tx.hex, 'hex'),
        writeBytes(5, writeNumber(3, CONTRACT_RET[outcome.contractRet])),
      ),
    ),
  )
  const header = Buffer.concat([
    writeNumber(1, time),
    writeBytes(2, root),
    writeBytes(3, Buffer.from(parentId, 'hex')),
    writeNumber(7, number),
    writeBytes(9, Buffer.from(WITNESS, 'hex')),
    writeNumber(10, BLOCK_VERSION),
  ])
  return {
    number,
    time,
    parent: parentId,
    root: root.toString('hex'),
    header,
    transactions,
    id: number.toString(16).padStart(16, '0') + sha256(header).toString('hex').slice(16),
  }
}

const signatures = new WeakMap<Block, string>()

/**
 * Computes the block producer's signature on first use, because a start creates every block again.
 */
export function witnessSignature(block: Block): string {
  const signature =
    signatures.get(block) ?? sign(sha256(block.header), WITNESS_SECRET).toString('hex')
  signatures.set(block, signature)
  return signature
}

/** The last node of a level without a partner is passed to the next level unchanged. */
function merkleRoot(leaves: Buffer[]): Buffer {
  if (leaves.length === 0) return Buffer.alloc(32)
  let level = leaves
  while (level.length > 1) {
    const [below, pairs] = [level, Math.ceil(level.length / 2)]
    level = Array.from({ length: pairs }, (_, at) =>
      below[2 * at + 1] ? sha256(below[2 * at]!, below[2 * at + 1]!) : below[2 * at]!,
    )
  }
  return level[0]!
}
