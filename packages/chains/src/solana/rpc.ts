import {
  checkCount,
  jsonRpc,
  priceOf,
  RpcRefused,
  RpcUnavailable,
  type BroadcastResult,
  type ChainBlock,
  type ChainClient,
  type ChainTip,
  type EndpointHead,
  type ExpectedTransfer,
  type Fetch,
  type Holdings,
  type JsonRpc,
  type LevelRates,
  type RpcEndpoint,
  type ResignedClient,
  type Signed,
  type TransactionStatus,
} from '../rpc.ts'
import { checkedClient } from '../checked-client.ts'
import { reasonOf } from '../reason.ts'
import { ChainError, type Asset, type Network } from '../types.ts'
import { SYSTEM_PROGRAM, TOKEN_PROGRAM, tokenAccountOf } from './address.ts'
import { readBalances } from './balances.ts'
import { BLOCKS_TO_LIVE } from './build.ts'
import { finalized, findMessage } from './history.ts'
import { Lives } from './life.ts'
import {
  amountOf,
  asideIn,
  isAmount,
  transfersIn,
  type Amount,
  type BlockTransaction,
  type Meta,
  type TokenBalance,
} from './payments.ts'
import { callAnyVersion } from './versions.ts'

/**
 * Prices above this value are outliers and are capped, because a higher price does not speed up
 * inclusion.
 */
const PRICE_MAX = 5_000_000n
const RENT_FRESH_MS = 600_000
const SAFE_DIGITS = 15
/**
 * Number of blocks that are fetched ahead. The chain produces two and a half per second, and one
 * response may take as long as that.
 */
const AHEAD = 4

/** Error codes of a node: the block is not available yet; the slot has no block. */
const NOT_AVAILABLE = new Set([-32004, -32014])
const SKIPPED = new Set([-32007, -32009])

interface BlockHead {
  blockhash: string
  previousBlockhash: string
  parentSlot: number
  blockHeight: number | null
}
interface Block extends BlockHead {
  transactions: BlockTransaction[]
}
interface SignatureStatus {
  slot: number
  err: unknown
  confirmationStatus?: string | null
}
interface Context<T> {
  context: { slot: number }
  value: T
}

export interface Lifetime {
  blockhash: string
  /** Highest block that may contain a transaction with this blockhash. */
  validUntil: number
}

/** Reviver that reads integers beyond 2^53 exactly. */
const exactNumbers = (_key: string, value: unknown, source: string | undefined): unknown =>
  typeof value === 'number' &&
  source !== undefined &&
  source.length > SAFE_DIGITS &&
  /^\d+$/.test(source)
    ? BigInt(source)
    : value

/**
 * Client of a Solana node. Heights are slots. Only finalized blocks are read, so none is ever
 * reorganized.
 */
export class SolanaClient implements ChainClient, ResignedClient {
  readonly network: Network
  readonly #assets: readonly Asset[]
  readonly #call: JsonRpc
  readonly #now: () => number
  readonly #lives: Lives
  /** Blocks that are being fetched ahead. Finalized blocks never change. */
  readonly #ahead = new Map<number, Promise<ChainBlock | null>>()
  #tip = 0
  #rent: { value: bigint; at: number } | null = null

  constructor(
    network: Network,
    assets: readonly Asset[],
    endpoint: RpcEndpoint,
    fetch: Fetch,
    now: () => number = Date.now,
  ) {
    this.network = network
    this.#assets = assets
    this.#call = jsonRpc(endpoint, fetch, exactNumbers)
    this.#now = now
    this.#lives = new Lives(now)
    return checkedClient(this, network.code)
  }

  async probe(): Promise<void> {
    const genesis = await this.#call<string>('getGenesisHash', [])
    if (genesis !== this.network.genesis) {
      throw new ChainError(
        'WRONG_NETWORK',
        `${this.network.code}: the endpoint's first block is ${genesis}, not ${this.network.genesis ?? ''}`,
      )
    }
  }

  async tip(): Promise<ChainTip> {
    const { context, value } = await this.#call<Context<{ blockhash: string }>>(
      'getLatestBlockhash',
      [{ commitment: 'finalized' }],
    )
    this.#tip = context.slot
    return { height: context.slot, hash: value.blockhash, finalHeight: context.slot }
  }

  async head(): Promise<EndpointHead> {
    const { height } = await this.tip()
    let seconds: number | null = null
    try {
      seconds = await this.#call<number | null>('getBlockTime', [height])
    } catch (error) {
      // The slot has no block, or the endpoint does not keep times.
      if (!(error instanceof RpcRefused)) throw error
    }
    return {
      height,
      timeMs: Number.isSafeInteger(seconds) ? Number(seconds) * 1000 : null,
      lacks: null,
    }
  }

  /**
   * Reads the block of a slot. A slot without a block results in an empty block with its
   * predecessor's hash.
   */
  async block(slot: number): Promise<ChainBlock | null> {
    const pending = this.#ahead.get(slot) ?? this.#read(slot)
    for (const existing of this.#ahead.keys())
      if (existing <= slot || existing > slot + AHEAD) this.#ahead.delete(existing)
    for (let next = slot + 1; next <= Math.min(slot + AHEAD, this.#tip); next++) {
      if (this.#ahead.has(next)) continue
      const reading = this.#read(next)
      this.#ahead.set(next, reading)
      void this.#keep(next, reading)
    }
    return pending
  }

  /** Caches a read until it fails, so that the next caller reads the block again. */
  async #keep(slot: number, reading: Promise<ChainBlock | null>): Promise<void> {
    const block = await reading.catch(() => null)
    if (!block && this.#ahead.get(slot) === reading) this.#ahead.delete(slot)
  }

  async #read(slot: number): Promise<ChainBlock | null> {
    let block: Block | null
    try {
      block = await callAnyVersion<Block | null>(this.#call, 'getBlock', slot, {
        commitment: 'finalized',
        encoding: 'json',
        transactionDetails: 'accounts',
        rewards: false,
      })
    } catch (error) {
      if (!(error instanceof RpcRefused)) throw error
      if (NOT_AVAILABLE.has(error.rpcCode)) return null
      if (SKIPPED.has(error.rpcCode)) return this.#skipped(slot)
      throw new RpcUnavailable(
        `${this.network.code}: the endpoint does not retain slot ${slot} (${error.message})`,
      )
    }
    if (!block) return this.#skipped(slot)
    this.#check(slot, block)
    return {
      height: slot,
      hash: block.blockhash,
      parent: block.previousBlockhash,
      txids: block.transactions.map(({ transaction }) => transaction.signatures[0] as string),
      transfers: block.transactions.flatMap((each) =>
        transfersIn(each, this.network, this.#assets),
      ),
      aside: block.transactions.flatMap((each) => asideIn(each, this.#assets)),
    }
  }

  /**
   * Checks a block.
   * @throws RpcUnavailable if the block contradicts itself, or lacks the data from which its
   *   payments are read
   */
  #check(slot: number, { blockhash, previousBlockhash, parentSlot, transactions }: Block): void {
    const refuse = (problem: string): never => {
      throw new RpcUnavailable(`${this.network.code}: getBlock returned ${slot} ${problem}`)
    }
    if (typeof blockhash !== 'string' || typeof previousBlockhash !== 'string')
      refuse('without blockhash or previousBlockhash')
    // The first block is its own parent.
    if (!Number.isSafeInteger(parentSlot) || (parentSlot >= slot && slot > 0))
      refuse('with a parentSlot that is not before it')
    if (!Array.isArray(transactions)) refuse('without transactions')
    const seen = new Set<string>()
    for (const { transaction, meta } of transactions) {
      const id = transaction?.signatures?.[0]
      if (typeof id !== 'string') return refuse('with a transaction without signatures')
      if (seen.has(id)) refuse(`with ${id} twice`)
      seen.add(id)
      const keys = transaction.accountKeys
      if (!Array.isArray(keys) || keys.some((key) => typeof key?.pubkey !== 'string'))
        refuse(`with ${id} without accountKeys`)
      if (!meta || meta.err === undefined) return refuse(`with ${id} without meta.err`)
      if (meta.err !== null) continue
      this.#checkBalances(id, keys, meta, refuse)
    }
  }

  /** Checks the balances of a successful transaction, from which its payments are read. */
  #checkBalances(
    id: string,
    keys: readonly { pubkey: string }[],
    meta: NonNullable<Block['transactions'][number]['meta']>,
    refuse: (problem: string) => never,
  ): void {
    const { preBalances, postBalances, preTokenBalances, postTokenBalances } = meta
    if (preBalances?.length !== keys.length || postBalances?.length !== keys.length) {
      refuse(`with ${id} without the balances of its accounts`)
    }
    if (![...preBalances, ...postBalances].every(isAmount))
      refuse(`with ${id} with a balance that is not a whole number`)
    const isRegistered = ({ mint }: TokenBalance) =>
      this.#assets.some(({ contract_address: contract }) => contract === mint)
    const registered = [preTokenBalances ?? [], postTokenBalances ?? []].map((each) =>
      each.filter(isRegistered),
    )
    if (registered.flat().some((each) => amountOf(each) === null)) {
      refuse(`with ${id} without uiTokenAmount.amount`)
    }
    if (registered[1]?.some(({ owner }) => owner === undefined))
      refuse(`with ${id} without an owner of tokens`)
    const usesTokens = keys.some(({ pubkey }) => pubkey === TOKEN_PROGRAM)
    if (usesTokens && (!Array.isArray(preTokenBalances) || !Array.isArray(postTokenBalances)))
      refuse(`with ${id} without token balances`)
  }

  /**
   * Handles a slot without a block. The endpoint may have lost the block, so a slot counts as
   * skipped only if the next block's parent is an earlier one.
   */
  async #skipped(slot: number): Promise<ChainBlock | null> {
    const [next] = await this.#call<number[]>('getBlocksWithLimit', [
      slot,
      1,
      { commitment: 'finalized' },
    ])
    if (next === undefined || next <= slot) return null
    const head = await callAnyVersion<BlockHead | null>(this.#call, 'getBlock', next, {
      commitment: 'finalized',
      transactionDetails: 'none',
      rewards: false,
    })
    if (!head) return null
    if (!Number.isSafeInteger(head.parentSlot) || typeof head.previousBlockhash !== 'string') {
      throw new RpcUnavailable(
        `${this.network.code}: getBlock returned ${next} without parentSlot or previousBlockhash`,
      )
    }
    if (head.parentSlot >= slot) {
      throw new RpcUnavailable(
        `${this.network.code}: the endpoint has lost the block of slot ${slot}; use one with a longer history to catch up`,
      )
    }
    return {
      height: slot,
      hash: head.previousBlockhash,
      parent: head.previousBlockhash,
      txids: [],
      transfers: [],
    }
  }

  /**
   * @param expected for a token transfer, the fee includes the rent of an account that it created
   */
  async status(hash: string, expected?: ExpectedTransfer): Promise<TransactionStatus> {
    const status = await this.#status(hash)
    if (!status) return { state: 'absent' }
    if (status.confirmationStatus !== 'finalized' && status.confirmationStatus !== 'confirmed')
      return { state: 'mempool' }
    const place = await callAnyVersion<{ slot: number; meta: Meta | null } | null>(
      this.#call,
      'getTransaction',
      hash,
      { commitment: 'confirmed', encoding: 'json' },
    )
    if (!place?.meta) {
      throw new RpcUnavailable(
        `${this.network.code}: the endpoint does not return the transaction, which it reports as ${status.confirmationStatus}`,
      )
    }
    const { meta } = place
    const succeeded = meta.err === null
    const fee =
      succeeded && expected
        ? BigInt(meta.preBalances[0] ?? 0) - BigInt(meta.postBalances[0] ?? 0)
        : BigInt(meta.fee)
    return { state: 'included', height: place.slot, blockHash: '', succeeded, fee }
  }

  async #status(hash: string): Promise<SignatureStatus | null> {
    return (await this.#statuses(hash)).value[0] ?? null
  }

  async #statuses(hash: string): Promise<Context<(SignatureStatus | null)[]>> {
    return this.#call('getSignatureStatuses', [[hash], { searchTransactionHistory: true }])
  }

  async broadcast(raw: string): Promise<BroadcastResult> {
    this.#lives.sent(raw)
    try {
      await this.#call<string>('sendTransaction', [
        Buffer.from(raw, 'hex').toString('base64'),
        { encoding: 'base64', preflightCommitment: 'confirmed', maxRetries: 5 },
      ])
      return { kind: 'accepted' }
    } catch (error) {
      if (error instanceof RpcRefused) return { kind: 'rejected', reason: error.message }
      return { kind: 'unknown', reason: reasonOf(error) }
    }
  }

  /** Returns the blockhash and lifetime for a new transaction. Call it last. */
  async lifetime(): Promise<Lifetime> {
    const { value } = await this.#call<
      Context<{ blockhash: string; lastValidBlockHeight: number }>
    >('getLatestBlockhash', [{ commitment: 'confirmed' }])
    this.#lives.began(value.blockhash, value.lastValidBlockHeight)
    return { blockhash: value.blockhash, validUntil: value.lastValidBlockHeight }
  }

  /**
   * Returns whether an unsigned transaction could probably not be sent in time, because too few
   * blocks of its lifetime are left.
   */
  async isStale(validUntil: number): Promise<boolean> {
    if ((await this.lifetime()).validUntil - validUntil > BLOCKS_TO_LIVE - this.#lives.blocksNeeded)
      return true
    this.#lives.signing(validUntil)
    return false
  }

  /**
   * Returns true if the transaction can provably never be included any more: a finalized block is
   * past its end, and a history that reaches back before its beginning does not contain it. This is
   * queried twice, each time from a node that has that finalized block, because nodes in different
   * states may share one address.
   */
  async isDead(hash: string, validUntil: number): Promise<boolean> {
    if (!(await this.#isAbsentPast(hash, validUntil))) return false
    const first = await this.#call<number>('getFirstAvailableBlock', [])
    const oldest = await callAnyVersion<BlockHead | null>(this.#call, 'getBlock', first, {
      commitment: 'finalized',
      transactionDetails: 'none',
      rewards: false,
    })
    if (!oldest || (oldest.blockHeight ?? Infinity) > Math.max(0, validUntil - BLOCKS_TO_LIVE))
      return false
    return this.#isAbsentPast(hash, validUntil)
  }

  async #isAbsentPast(hash: string, validUntil: number): Promise<boolean> {
    const { slot, height } = await finalized(this.#call)
    if (height <= validUntil) return false
    const { context, value } = await this.#statuses(hash)
    return context.slot >= slot && value[0] === null
  }

  /**
   * See {@link ResignedClient}. The id is a signature, and two signatures over one message are both
   * valid.
   */
  async findSigned(account: string, message: string, validUntil: number): Promise<Signed | null> {
    return findMessage(this.#call, account, message, validUntil)
  }

  async balance(address: string, asset: Asset): Promise<bigint> {
    return (await this.holdings(address, asset)).balance
  }

  /**
   * Returns the balance of an address, and the tokens in its other token accounts. One request
   * returns all accounts of a mint.
   */
  async holdings(address: string, asset: Asset): Promise<Holdings> {
    if (asset.type === 'native') {
      const { value } = await this.#call<Context<Amount>>('getBalance', [
        address,
        { commitment: 'finalized' },
      ])
      return { balance: BigInt(value), elsewhere: [] }
    }
    const usual = tokenAccountOf(address, asset.contract_address as string)
    interface TokenAccount {
      pubkey: string
      account: { data: { parsed: { info: { tokenAmount: { amount: string } } } } }
    }
    const { value } = await this.#call<Context<TokenAccount[]>>('getTokenAccountsByOwner', [
      address,
      { mint: asset.contract_address },
      { commitment: 'finalized', encoding: 'jsonParsed' },
    ])
    const accounts = value.map(({ pubkey, account }) => ({
      place: pubkey,
      amount: BigInt(account.data.parsed.info.tokenAmount.amount),
    }))
    return {
      balance: accounts.find(({ place }) => place === usual)?.amount ?? 0n,
      elsewhere: accounts
        .filter(({ place, amount }) => place !== usual && amount > 0n)
        .map((each) => ({ ...each, reason: 'TOKEN_ACCOUNT' as const })),
    }
  }

  /**
   * See {@link ChainClient.balances}.
   * @throws RpcRefused if a height is given: nodes have only the newest state
   */
  async balances(addresses: readonly string[], asset: Asset, height?: number): Promise<bigint[]> {
    checkCount(addresses)
    if (height !== undefined)
      throw new RpcRefused(0, 'the balances of an earlier block cannot be read on Solana')
    return readBalances(this.network, this.#call, addresses, asset)
  }

  /**
   * Returns the balance of an address; `wallet` is true if only its owner's signature is needed to
   * spend from it. Null if the account does not exist yet.
   */
  async account(address: string): Promise<{ balance: bigint; wallet: boolean } | null> {
    const { value } = await this.#call<
      Context<{ lamports: Amount; owner: string; executable: boolean } | null>
    >('getAccountInfo', [
      address,
      { commitment: 'confirmed', encoding: 'base64', dataSlice: { offset: 0, length: 0 } },
    ])
    return (
      value && {
        balance: BigInt(value.lamports),
        wallet: value.owner === SYSTEM_PROGRAM && !value.executable,
      }
    )
  }

  /** Returns the minimum balance in lamports of an account without data. */
  async rent(): Promise<bigint> {
    if (!this.#rent || this.#now() - this.#rent.at > RENT_FRESH_MS) {
      const value = BigInt(await this.#call<Amount>('getMinimumBalanceForRentExemption', [0]))
      this.#rent = { value, at: this.#now() }
    }
    return this.#rent.value
  }

  /**
   * Returns the prices of recent blocks in millionths of a lamport per compute unit; if there are
   * none, the minimum of each level.
   */
  async unitPrices(): Promise<LevelRates> {
    const [method, code] = ['getRecentPrioritizationFees', this.network.code]
    const recent = await this.#call<{ prioritizationFee?: unknown }[] | null>(method, [[]])
    if (!Array.isArray(recent)) throw new RpcUnavailable(`${code}: ${method} returned no list`)
    const prices = recent
      .map((each) =>
        priceOf(code, method, 'prioritizationFee', (each as typeof each | null)?.prioritizationFee),
      )
      .sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
    const at = (share: number): bigint => {
      const price = prices[Math.min(prices.length - 1, Math.floor(prices.length * share))] ?? 0n
      return price < PRICE_MAX ? price : PRICE_MAX
    }
    return { low: at(0.5), medium: at(0.75), high: at(0.95) }
  }
}
