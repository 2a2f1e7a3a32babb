import type {
  Asset,
  ChainClient,
  ChainTransfer,
  LevelRates,
  Network,
  PublicKeyAt,
  Registry,
  ReportUnreadable,
  Senders,
  Signed,
  TronAction,
  TronClient,
  TronParameters,
  UnsignedTransaction,
} from '@custody/chains'
import type { Queryable } from '../database/pool.ts'
import type { Environment } from '../environment.ts'
import type { Agreement, Endpoints } from './endpoint-group.ts'
import type { Pace } from './pace.ts'
import type { Plan, TransactionKind, TransactionRow } from './transaction.ts'
import type { WaitCode } from './waiting.ts'

/** Fee levels that a caller may choose from, the cheapest first. */
export type FeeLevel = 'low' | 'medium' | 'high'
export const DEFAULT_LEVEL: FeeLevel = 'medium'

/** Where an address of ours belongs. `subAccountId` is null for a workspace's gas tank. */
export interface Owner {
  workspaceId: string
  subAccountId: string | null
  subAccountIndex: number
}

/**
 * What a chain of any family is given. It writes nothing: `database` is read, and inside {@link
 * Prepared.build} the engine's own.
 */
export interface ChainContext {
  registry: Registry
  database: Queryable
  environment: Environment
  /** The certified public key of a workspace. */
  keys: { get(workspaceId: string, curve: Network['curve']): Promise<{ at: PublicKeyAt }> }
  /** Where change of a wallet returns to. */
  addresses: {
    omnibus(network: Network, owner: Owner): Promise<string>
    change(network: Network, owner: Owner): Promise<string>
  }
  /** Called with what a client could not read and went on without; absent: nobody is to know. */
  report?: ReportUnreadable
}

/** A payment as somebody asks for it. `amount` in the asset's smallest unit. */
export interface Payment {
  to: string
  tag: string | null
  amount: bigint
  asset: Asset
}

/** What the chain knows against a payment, and the field of the request that is at fault. */
export interface Refusal {
  field: 'amount' | 'destination_address' | 'address_tag'
  reason: string
}

/** A payment out of a wallet, before anything is fixed. */
export interface Question extends Omit<Payment, 'tag'> {
  owner: Owner
  walletId: string
  feeRate: string | null
  level: FeeLevel | null
}

/** Smallest native unit. `reserve`: what the sender's own wallet must hold beyond the amount. */
export interface Estimate {
  fee: bigint
  reserve: bigint
}

/**
 * POST /estimate-fee. `amount` and `to` are null where the caller names none; `rate` is the chain's
 * integer.
 */
export interface QuoteQuestion {
  owner: Owner
  asset: Asset
  rate: bigint
  amount: bigint | null
  to: string | null
}

/**
 * `fee`: all that the transfer pays. `extra`: the part of it that a receiver without an account
 * costs.
 */
export interface Quote {
  fee: bigint
  basis: 'wallet' | 'typical'
  l1Fee?: bigint
  extra?: { name: 'rent' | 'activation'; amount: bigint }
}

/** What is to be built: a row, and what its kind makes of it. */
export interface Task<K extends TransactionKind = TransactionKind> {
  row: TransactionRow<K>
  asset: Asset
  /** All that its address holds of the asset goes, instead of the row's amount. */
  sweeps: boolean
  /** A sweep: what the books know at the address; else the row's amount. Smallest unit. */
  amount: bigint
  /** A call of the chain's own instead of a payment. */
  action: TronAction | null
}

/**
 * The transaction cannot be made yet. `code`: why, as the API shows it; null: it is built again
 * immediately. `reason` is the row's last_error, for the operator.
 */
export interface Wait {
  kind: 'wait'
  code: WaitCode | null
  reason: string | null
  inMs: number
}
/** The transaction can never be made. `reason` is shown to its caller. */
export interface Fail {
  kind: 'fail'
  reason: string
}

export const wait = (code: WaitCode, reason: string, inMs: number): Wait => ({
  kind: 'wait',
  code,
  reason,
  inMs,
})
/** Builds it again without anything that it waits for. */
export const again = (inMs: number): Wait => ({ kind: 'wait', code: null, reason: null, inMs })
export const fail = (reason: string): Fail => ({ kind: 'fail', reason })

/** An unsigned transaction, and all that the engine writes with it in one commit. */
export interface Built {
  kind: 'built'
  unsigned: UnsignedTransaction
  /**
   * The most that it costs beyond what it pays, in the smallest native unit: held against the
   * network's cap.
   */
  worst: bigint
  /** Accounts: whose it is, and its number where the chain counts them. */
  account?: string
  nonce?: bigint
  /** The end of its life, in the chain's own unit. */
  validUntil?: number
  /** UTXO families: the coins that it spends. */
  coins?: readonly { txid: string; vout: number }[]
  /** The fee that is shown from now on; absent: it stays. */
  fee?: bigint
  /**
   * What a wallet of the sub-account holds for the fee; absent: fuel, the tank, or what is moved
   * pays.
   */
  hold?: Hold
  /** What a sweep moves. */
  amount?: bigint
  plan?: Plan
}

/**
 * A wallet's part of its sub-account's fee. `noted`: the field of the plan that says how much is
 * held already.
 */
export interface Hold {
  wallet: string
  asset: Asset
  amount: bigint
  noted: 'fee_reserve' | 'fee_held'
  /** What the chain wants to stay on the account. */
  kept: bigint
}

/**
 * What a chain has answered to all that a build asks of it; the rest is done under the engine's
 * lock.
 */
export interface Prepared {
  kind: 'prepared'
  /** The coins of a wallet, or the order of an account's transactions. */
  lock: 'wallet' | 'account'
  /**
   * The most that a sweep costs, and whether out of what it moves; absent: it was asked with {@link
   * Fuelled.price}.
   */
  cost?: { worst: bigint; own: boolean }
  /**
   * Fixes the transaction. @param unswept what the ledger holds at the address of a sweep, under
   * the lock
   */
  build(tx: Queryable, unswept: bigint): Promise<Built | Wait | Fail>
}

/**
 * Stake of the tank whose energy is lent for one transaction, in sun, and what the two calls for it
 * cost at most.
 */
export interface Loan {
  tank: string
  amount: bigint
  /** The stake that the chain would lend; our loans under way are not taken off yet. */
  lendable: bigint
  fee: bigint
  backFee: bigint
}

/** What a planned transaction takes of the tank. Smallest native unit. */
export interface Priced {
  kind: 'priced'
  /** What its source address must hold for the fee. */
  need: bigint
  /** The most that its fee can be. */
  worst: bigint
  /** The plan, as it is kept with the transaction. */
  plan: Plan
  /**
   * A sweep of the native coin pays for itself: nodes give it no fuel, for a hostile platform could
   * draw on the tank by it.
   */
  own: boolean
  /** The most that a fuel transaction costs beyond what it moves, and its own plan. */
  fuel: { cost: bigint; plan: Plan }
  /**
   * Tron, where `need` relies on the account's own stake: what else counted on that when this was
   * planned.
   */
  counted?: string
  /** Tron: stake of the tank whose energy is lent for this. */
  loan?: Loan
}

/** Chains whose fees a workspace's gas tank pays. */
export interface Fuelled {
  /**
   * Plans a transaction and its fuel.
   * @param maxGasPrice the most that the tank pays, in the chain's integer; null: any
   */
  price(task: Task, maxGasPrice: bigint | null): Promise<Priced | Wait | Fail>
  /**
   * What a fuel that has failed costs if it is made again now, and its plan; absent: what it did
   * before.
   */
  again?(failed: TransactionRow<'FUEL'>): Promise<Priced['fuel']>
  /**
   * What sending all of a tank costs at most, and its plan. @param idle nothing else is about to
   * leave the tank
   */
  drain(o: {
    from: string
    to: string
    idle: boolean
  }): Promise<{ kind: 'drain'; worst: bigint; plan: Plan } | Fail>
  /**
   * What a local tank is filled with first, and below what any tank is low. Smallest native unit.
   */
  firstFill: bigint
  threshold: bigint
}

/** One signed transaction of a transfer, as a replacement sees it. */
export interface Waiting {
  id: string
  unsigned: UnsignedTransaction
  fee_max: string
  nonce: string | null
  hash: string
}

/** What a replacement asks for. `feeRate` as the caller spelled it. */
export interface Wanted {
  kind: 'SPEED_UP' | 'CANCEL' | 'AUTO'
  feeRate: string | null
  level: FeeLevel | null
}

/** A replacement that needs more of the tank first. Smallest native unit. */
export interface Dearer {
  kind: 'dearer'
  /** The most that it may cost. */
  worst: bigint
  /**
   * By how much that passes what is held for the transaction; `short`: the refusal where no caller
   * has signed for more.
   */
  more: bigint
  short: string
  /** What must still come to the source address for the fee, and by which fuel. */
  need: bigint
  fuel: Priced['fuel']
}

/** Chains on which something can take the place of a signed transaction that waits. */
export interface Replaceable {
  /** The lowest rate at which something takes the place of what waits, as the chain's integer. */
  leastRate(row: TransactionRow, waiting: readonly Waiting[]): Promise<bigint>
  /**
   * Whether a node's refusal says that what was signed has too little gas, and the chain estimates
   * more; absent: gas is not limited.
   */
  lacksGas?(row: TransactionRow, asset: Asset, newest: Waiting, reason: string): Promise<boolean>
  /** Whether the market pays more than what waits. */
  marketPaysMore(row: TransactionRow, newest: Waiting): Promise<boolean>
  /** @param fuelled more was asked for and has come: `Dearer` is no answer any more */
  prepare(
    row: TransactionRow,
    asset: Asset,
    wanted: Wanted,
    waiting: readonly Waiting[],
    fuelled: boolean,
  ): Promise<Prepared | Dearer | Fail>
}

/** Chains whose wallets are sets of coins. */
export interface Coins {
  /** Whose coins a transaction spends, and who signed for it. */
  senders(txid: string): Promise<Senders>
  /** Value of a coin that the chain shows unspent, null where it does not. */
  unspent(txid: string, vout: number): Promise<bigint | null>
  /**
   * What the spender of a coin shows its signers of where it comes from, in hex. Our own
   * transactions are known without asking.
   * @param signed the transaction itself, where it is at hand
   */
  previous(txid: string, signed?: string): Promise<string>
  /**
   * The coins that an unsigned transaction spends, input by input; `value` null where it does not
   * show what made it.
   */
  of(unsigned: UnsignedTransaction): { txid: string; vout: number; value: bigint | null }[]
}

/**
 * What waits to be mined, as the endpoint's own pool shows it. Any of it may be replaced, or never
 * come.
 */
export interface Mempool {
  /** Ids of all that wait. @throws RpcRefused where the endpoint shows no pool */
  waiting(): Promise<string[]>
  /** What such transactions pay; one that waits no more is left out. */
  transfers(txids: readonly string[]): Promise<ChainTransfer[]>
}

/** Chains that stake (Tron's Stake 2.0). */
export interface Stakes {
  client: TronClient
  /** The chain's prices, at most ten seconds old. */
  parameters(): Promise<TronParameters>
  /** The most that a payment of the native coin costs beyond what it moves. */
  paymentCost(to: string): Promise<bigint>
  /** The fuel of calls that take so many points of bandwidth. */
  fuelFor(account: string, points: bigint): Promise<Priced['fuel']>
}

/**
 * All that the platform asks of one network's chain. Made once at start by its family; it answers
 * values, and the engine alone writes.
 */
export interface Chain {
  readonly network: Network
  readonly client: ChainClient
  /** How often its head is looked at; absent: as often as the platform looks. */
  readonly pace?: Pace
  /** Absent where one endpoint's word is enough. */
  readonly agreement?: Agreement
  /** What the chain calls a tag, where deposits are told apart by one. */
  readonly tagName?: string
  /**
   * Current rates in the chain's integer, as a caller may choose one. An asset may have a price of
   * its own (Tron).
   */
  rates(asset: Asset): Promise<LevelRates>
  /** When they were last read, milliseconds since the Unix Epoch; null: never. */
  ratesReadAt(): number | null
  /**
   * Why the rates that were read last may be wrong, as a sentence; null or absent: nothing speaks
   * against them.
   */
  ratesWarning?(): string | null
  /**
   * Network fee of a transfer, for the answer and the reservation. Never fails because the chain is
   * away.
   */
  estimate(question: Question): Promise<Estimate>
  /** POST /estimate-fee. */
  quote(question: QuoteQuestion): Promise<Quote>
  /** What speaks against a payment without asking anybody. */
  unfit(payment: Payment): Refusal | null
  /** What the chain knows against a payment. @throws where it cannot be asked */
  refusal(payment: Payment): Promise<Refusal | null>
  /**
   * What must stay on an account, in the asset's smallest unit. Never fails because the chain is
   * away.
   */
  kept(address: string, asset: Asset): Promise<bigint>
  /**
   * What of a fee the sub-account's wallet of the native coin pays for a transfer of another asset;
   * 0: nothing.
   */
  feeOfOtherWallet(asset: Asset, fee: bigint): bigint
  /**
   * Asks the chain for all that a build needs, before any lock is held. A transaction's life begins
   * with it.
   */
  prepare(task: Task): Promise<Prepared | Wait | Fail>
  /** Null where the sending wallet pays its own fees. */
  readonly fuelled: Fuelled | null
  /** Null where a signed transaction cannot be replaced. */
  readonly replaceable: Replaceable | null
  /** Null where wallets are accounts. */
  readonly coins: Coins | null
  readonly stakes: Stakes | null
  /**
   * Absent where blocks come so soon that nobody need look, or where nodes do not show what waits.
   */
  readonly mempool?: Mempool
  /**
   * Whether a transaction that was signed can never be included any more; absent: it has no end.
   */
  isDead?(hash: string, validUntil: number): Promise<boolean>
  /** The same message under another signature, where ids cover signatures. */
  findSigned?(account: string, message: string, validUntil: number): Promise<Signed | null>
  /**
   * Whether too little is left of a built transaction's life to sign and send it; absent: it is
   * never built anew for that.
   */
  isStale?(validUntil: number): Promise<boolean>
  /**
   * The latest end of life that a transaction signed by now can have, on chains whose bytes do not
   * tell it.
   */
  latestEnd?(): Promise<number>
  /** The next number that the chain would take of an account; absent: it counts none. */
  nextNonce?(account: string): Promise<bigint>
  /** What the chain holds at an address. Not asked where wallets are coins. */
  balance(address: string, asset: Asset): Promise<bigint>
}

/** @throws where a chain has no staking */
export function stakesOf({ network, stakes }: Chain): Stakes {
  if (!stakes) throw new Error(`${network.code} has no staking`)
  return stakes
}

/** Makes a family's chain of one network. */
export type Connect = (context: ChainContext, network: Network, endpoints: Endpoints) => Chain
