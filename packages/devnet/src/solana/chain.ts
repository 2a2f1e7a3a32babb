import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ed25519 } from '@noble/curves/ed25519.js'
import {
  address,
  appendTransactionMessageInstructions,
  blockhash as asBlockhash,
  compileTransaction,
  createNoopSigner,
  createTransactionMessage,
  getBase58Decoder,
  getTransactionEncoder,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  type Address,
  type Instruction,
  type SignatureBytes,
} from '@solana/kit'
import { getTransferSolInstruction } from '@solana-program/system'
import {
  findAssociatedTokenPda,
  getCreateAssociatedTokenIdempotentInstruction,
  getMintToInstruction,
} from '@solana-program/token'
import { FailedTransactionMetadata, LiteSVM } from 'litesvm'
import { parseAmount } from '../amount.ts'
import { RequestError } from '../errors.ts'
import { Journal } from '../journal.ts'
import { Producer } from '../producer.ts'
import { REAL_TIME, type Timing } from '../timing.ts'
import {
  base58,
  digest,
  FAUCET,
  FAUCET_KEY,
  genesisAccounts,
  GENESIS_HASH,
  GENESIS_TIME,
  TOKEN_PROGRAM,
} from './genesis.ts'
import { SOLANA_TOKENS } from './tokens.ts'
import { describe, errorOf, NotTaken, read, verifies, type Read } from './transaction.ts'

/** Number of blocks for which a blockhash is valid. */
export const BLOCKS_TO_LIVE = 150
const SOL_DECIMALS = 9
const BUSY_MS = 500
const IDLE_MS = 15_000
/** One slot in this number has no block, as when leaders miss theirs. */
const SKIPPED_EVERY = 10
const TOKEN_ACCOUNT_BYTES = 165

interface Line {
  slot: number
  time: number
  transactions: string[]
}
export interface TokenBalance {
  accountIndex: number
  mint: string
  owner: string
  amount: bigint
  decimals: number
}
interface Meta {
  err: unknown
  fee: bigint
  preBalances: bigint[]
  postBalances: bigint[]
  preTokenBalances: TokenBalance[]
  postTokenBalances: TokenBalance[]
  logs: string[]
  units: bigint
}
export interface Included {
  raw: string
  signatures: string[]
  keys: string[]
  signers: number
  meta: Meta
  slot: number
}
export interface Block {
  slot: number
  height: number
  hash: string
  parent: string
  parentSlot: number
  time: number
  transactions: Included[]
}
/**
 * The local Solana network. The Solana runtime (litesvm) executes transactions; blocks, blockhashes
 * and their lifetime are implemented here.
 */
export class SolanaChain {
  readonly svm: LiteSVM
  readonly blocks: Block[] = []
  readonly slots = new Map<number, Block>()
  readonly places = new Map<string, Included>()
  readonly #messages = new Set<string>()
  readonly #journal: Journal<Line>
  readonly #producer: Producer
  readonly #timing: Timing
  readonly #waiting: Read[] = []
  readonly #watchers = new Set<(block: Block) => void>()
  #broken = false

  private constructor(timing: Timing, journal: Journal<Line>, lines: Line[]) {
    this.#timing = timing
    this.#journal = journal
    // A blockhash is valid for 150 blocks here; litesvm itself would accept only the last one.
    this.svm = new LiteSVM().withBlockhashCheck(false).withTransactionHistory(0n)
    for (const account of genesisAccounts()) this.svm.setAccount(account)
    this.#add({ slot: 0, time: GENESIS_TIME, transactions: [] }, [])
    for (const line of lines)
      this.#add(line, this.#execute(line.slot, line.time, line.transactions.map(read)))
    this.#producer = new Producer({
      timing,
      busyMs: BUSY_MS,
      idleMs: IDLE_MS,
      isBusy: () => this.#waiting.length > 0 || this.head.transactions.length > 0,
      produce: async () => {
        this.#produce()
      },
    })
    this.#producer.wake()
  }

  static async open(home: string, timing: Timing = REAL_TIME): Promise<SolanaChain> {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    const { journal, records } = Journal.open<Line>(join(home, 'blocks.journal'))
    return new SolanaChain(timing, journal, records)
  }

  get head(): Block {
    return this.blocks.at(-1) as Block
  }

  /** Returns the number of transactions that wait for a block. */
  get waiting(): number {
    return this.#waiting.length
  }

  close(): void {
    this.#producer.stop()
    this.#journal.close()
  }

  /** Returns the block with this blockhash while it is valid for transactions. */
  living(hash: string): Block | undefined {
    return this.blocks.slice(-BLOCKS_TO_LIVE).find((block) => block.hash === hash)
  }

  /**
   * Adds a transaction to the next block and returns its signature.
   * @throws NotTaken
   */
  submit(raw: string, preflight: boolean): string {
    let taken: Read
    try {
      taken = read(raw)
    } catch {
      throw new NotTaken(
        'failed to deserialize solana_transaction::versioned::VersionedTransaction',
      )
    }
    if (taken.keys.length === 0 || !verifies(taken))
      throw new NotTaken('Transaction signature verification failure')
    const isKnown =
      this.#messages.has(taken.message) ||
      this.#waiting.some(({ message }) => message === taken.message)
    if (isKnown && preflight) {
      throw new NotTaken(
        'Transaction simulation failed: This transaction has already been processed',
        'AlreadyProcessed',
      )
    }
    if (!this.living(taken.blockhash)) {
      if (preflight)
        throw new NotTaken(
          'Transaction simulation failed: Blockhash not found',
          'BlockhashNotFound',
        )
      return taken.signature
    }
    if (preflight) {
      const simulated = this.svm.simulateTransaction(taken.transaction)
      if (simulated instanceof FailedTransactionMetadata) {
        throw new NotTaken(
          `Transaction simulation failed: ${describe(simulated)}`,
          errorOf(describe(simulated)),
        )
      }
    }
    if (!isKnown) {
      this.#waiting.push(taken)
      this.#producer.wake()
    }
    return taken.signature
  }

  /**
   * Calls back for every block that is produced from now on.
   * @returns a function that stops this
   */
  watch(made: (block: Block) => void): () => void {
    this.#watchers.add(made)
    return () => void this.#watchers.delete(made)
  }

  mine(count: number): { height: number; hash: string } {
    for (let made = 0; made < count; made++) this.#produce()
    this.#producer.wake()
    return { height: this.head.slot, hash: this.head.hash }
  }

  async fund(asset: string, to: unknown, amount: unknown): Promise<string> {
    let destination: Address
    try {
      destination = address(String(to))
    } catch {
      throw new RequestError(`address ${JSON.stringify(to)} is not an address of SOL`)
    }
    const authority = createNoopSigner(FAUCET)
    const token = SOLANA_TOKENS.find((each) => each.asset === asset)
    const units = parseAmount(amount, token?.decimals ?? SOL_DECIMALS)
    let instructions: Instruction[]
    if (token) {
      const [ata] = await findAssociatedTokenPda({
        owner: destination,
        mint: token.mint as Address,
        tokenProgram: TOKEN_PROGRAM,
      })
      instructions = [
        getCreateAssociatedTokenIdempotentInstruction({
          payer: authority,
          ata,
          owner: destination,
          mint: token.mint as Address,
        }),
        getMintToInstruction({
          mint: token.mint as Address,
          token: ata,
          mintAuthority: authority,
          amount: units,
        }),
      ]
    } else
      instructions = [getTransferSolInstruction({ source: authority, destination, amount: units })]
    // Otherwise two equal payments with the same blockhash would be the same message.
    if (this.head.transactions.some(({ keys }) => keys[0] === FAUCET)) this.#produce()
    const message = pipe(
      createTransactionMessage({ version: 0 }),
      (m) => setTransactionMessageFeePayer(FAUCET, m),
      (m) =>
        setTransactionMessageLifetimeUsingBlockhash(
          {
            blockhash: asBlockhash(this.head.hash),
            lastValidBlockHeight: BigInt(this.head.height + BLOCKS_TO_LIVE),
          },
          m,
        ),
      (m) => appendTransactionMessageInstructions(instructions, m),
    )
    const compiled = compileTransaction(message)
    const signature = ed25519.sign(
      new Uint8Array(compiled.messageBytes),
      FAUCET_KEY,
    ) as SignatureBytes
    const raw = Buffer.from(
      getTransactionEncoder().encode({ ...compiled, signatures: { [FAUCET]: signature } }),
    ).toString('base64')
    let hash: string
    try {
      hash = this.submit(raw, true)
    } catch (error) {
      if (error instanceof NotTaken)
        throw new RequestError(`the faucet's payment failed: ${error.message}`)
      throw error
    }
    this.#produce()
    return hash
  }

  /** Returns the data of an account of the Token program; undefined for every other account. */
  tokenAccount(at: string): { mint: string; owner: string; amount: bigint } | undefined {
    const account = this.svm.getAccount(at as Address)
    if (
      !account.exists ||
      account.programAddress !== TOKEN_PROGRAM ||
      account.data.length !== TOKEN_ACCOUNT_BYTES
    )
      return undefined
    return {
      mint: base58(account.data.slice(0, 32)),
      owner: base58(account.data.slice(32, 64)),
      amount: Buffer.from(account.data).readBigUInt64LE(64),
    }
  }

  #produce(): void {
    if (this.#broken) throw new Error('SOL: the journal could not be written; start again')
    const next = this.head.slot + 1
    const slot = next % SKIPPED_EVERY === 0 ? next + 1 : next
    const time = Math.max(this.head.time, Math.floor(this.#timing.now() / 1000))
    const waiting = this.#waiting
      .splice(0)
      .filter(({ blockhash, message }) => this.living(blockhash) && !this.#messages.has(message))
    const included = this.#execute(slot, time, waiting)
    const line: Line = { slot, time, transactions: included.map(({ raw }) => raw) }
    // No request runs in between, because all of this is synchronous.
    this.#broken = true
    this.#journal.append([line])
    this.#broken = false
    this.#add(line, included)
    for (const made of this.#watchers) made(this.head)
  }

  #execute(slot: number, time: number, transactions: Read[]): Included[] {
    this.svm.warpToSlot(BigInt(slot))
    const clock = this.svm.getClock()
    clock.unixTimestamp = BigInt(time)
    this.svm.setClock(clock)
    return transactions.flatMap((each): Included[] => {
      const [preBalances, preTokenBalances] = [this.#balances(each), this.#tokens(each)]
      const result = this.svm.sendTransaction(each.transaction)
      const [postBalances, postTokenBalances] = [this.#balances(each), this.#tokens(each)]
      const failed = result instanceof FailedTransactionMetadata
      // A transaction that did not even pay its fee is in no block.
      if (failed && preBalances[0] === postBalances[0]) return []
      const meta = failed ? result.meta() : result
      const moved = preBalances.reduce(
        (sum, value, index) => sum + value - (postBalances[index] as bigint),
        0n,
      )
      return [
        {
          raw: each.raw,
          signatures: Object.values(each.transaction.signatures).map((bytes) =>
            getBase58Decoder().decode(bytes as Uint8Array),
          ),
          keys: each.keys,
          signers: each.signers,
          slot,
          meta: {
            err: failed ? errorOf(describe(result)) : null,
            fee: moved,
            preBalances,
            postBalances,
            preTokenBalances,
            postTokenBalances,
            logs: meta.logs(),
            units: meta.computeUnitsConsumed(),
          },
        },
      ]
    })
  }

  #balances({ keys }: Read): bigint[] {
    return keys.map((key) => this.svm.getBalance(key) ?? 0n)
  }

  #tokens({ keys }: Read): TokenBalance[] {
    return keys.flatMap((key, accountIndex): TokenBalance[] => {
      const account = this.tokenAccount(key)
      return account
        ? [
            {
              accountIndex,
              ...account,
              decimals: SOLANA_TOKENS.find(({ mint }) => mint === account.mint)?.decimals ?? 0,
            },
          ]
        : []
    })
  }

  #add({ slot, time }: Line, transactions: Included[]): void {
    const last = this.blocks.at(-1)
    const block: Block = {
      slot,
      time,
      transactions,
      height: this.blocks.length,
      parent: last?.hash ?? base58(new Uint8Array(32)),
      parentSlot: last?.slot ?? 0,
      hash: last
        ? base58(digest(last.hash, `${slot}`, ...transactions.map(({ raw }) => raw)))
        : GENESIS_HASH,
    }
    this.blocks.push(block)
    this.slots.set(slot, block)
    for (const included of transactions) {
      this.places.set(included.signatures[0] as string, included)
      this.#messages.add(read(included.raw).message)
    }
  }
}
