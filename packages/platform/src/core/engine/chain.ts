import type {
  Asset,
  ChainClient,
  ChainTransfer,
  Holdings,
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
import type { Belief } from './endpoints/current.ts'
import type { Agreement, Voters } from './endpoints/agreement.ts'
import type { Endpoints } from './endpoints/group.ts'
import type { HeadPolling } from './endpoints/head-polling.ts'
import type { Plan, TransactionKind, TransactionRow } from './transaction.ts'
import type { WaitCode } from './waiting.ts'

/** Fee levels that a caller may choose from, from low to high. */
export type FeeLevel = 'low' | 'medium' | 'high'
export const DEFAULT_LEVEL: FeeLevel = 'medium'

/** Owner of a platform address. `subAccountId` is null for a workspace's gas tank. */
export interface Owner {
  workspaceId: string
  subAccountId: string | null
  subAccountIndex: number
}

/**
 * Dependencies of a chain of any family. A chain does not write: it only reads `database`, and
 * inside {@link Prepared.build} it uses the engine's database transaction.
 */
export interface ChainContext {
  registry: Registry
  database: Queryable
  environment: Environment
  /** Returns the certified public key of a workspace. */
  keys: { get(workspaceId: string, curve: Network['curve']): Promise<{ at: PublicKeyAt }> }
  /**
   * The platform's own addresses that a chain needs, such as those to which a wallet's change is
   * sent.
   */
  addresses: {
    omnibus(network: Network, owner: Owner): Promise<string>
    change(network: Network, owner: Owner): Promise<string>
  }
  /** Called with data that a client could not decode and skipped; absent: it is not reported. */
  report?: ReportUnreadable
}

/** A requested payment. `amount` is in the asset's smallest unit. */
export interface Payment {
  to: string
  tag: string | null
  amount: bigint
  asset: Asset
}

/** Why the chain does not allow a payment, and the request field that is at fault. */
export interface Refusal {
  field: 'amount' | 'destination_address' | 'address_tag'
  reason: string
}

/** A payment from a wallet whose fee is to be estimated, before inputs or nonce are fixed. */
export interface Question extends Omit<Payment, 'tag'> {
  owner: Owner
  walletId: string
  feeRate: string | null
  level: FeeLevel | null
}

/**
 * Estimated fee in the smallest native unit. `reserve`: the amount that the sender's own wallet
 * must hold in addition to the amount sent.
 */
export interface Estimate {
  fee: bigint
  reserve: bigint
}

/**
 * Parameters of POST /estimate-fee. `amount` and `to` are null if the caller omits them; `rate` is
 * in the chain's integer unit.
 */
export interface QuoteQuestion {
  owner: Owner
  asset: Asset
  rate: bigint
  amount: bigint | null
  to: string | null
}

/**
 * Result of POST /estimate-fee. `fee`: everything that the transfer pays. `extra`: the part of it
 * that a recipient without an account causes.
 */
export interface Quote {
  fee: bigint
  basis: 'wallet' | 'typical'
  l1Fee?: bigint
  extra?: { name: 'rent' | 'activation'; amount: bigint }
}

/** A transaction to build: its row, with the amount and action that its kind determines. */
export interface Task<K extends TransactionKind = TransactionKind> {
  row: TransactionRow<K>
  asset: Asset
  /** Whether the whole balance of the address is moved, instead of the row's amount. */
  sweeps: boolean
  /**
   * Amount in the smallest unit: for a sweep the ledger's balance at the address, otherwise the
   * row's amount.
   */
  amount: bigint
  /** A chain-specific call instead of a payment. */
  action: TronAction | null
}

/**
 * The transaction cannot be built yet. `code`: the reason as the API returns it; null: the
 * transaction is built again without a reported reason. `reason` is the row's last_error, for the
 * operator.
 */
export interface Wait {
  kind: 'wait'
  code: WaitCode | null
  reason: string | null
  inMs: number
}
/** The transaction can never be built. `reason` is returned to its caller. */
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
/** Returns a `Wait` that builds the transaction again after `inMs`, without a reason. */
export const again = (inMs: number): Wait => ({ kind: 'wait', code: null, reason: null, inMs })
export const fail = (reason: string): Fail => ({ kind: 'fail', reason })

/**
 * Returns the answer of a chain to a question, and asks again, at endpoints whose state is current, if
 * the answer would end the transaction: an endpoint that is behind or syncing would refuse payments
 * that the chain allows.
 * @param rounds how often an endpoint must give that answer; absent: as often as an end requires
 * @throws NoCurrentEndpoint if no endpoint is current
 */
export async function assured<Answer>(
  { belief }: Pick<Chain, 'belief'>,
  ask: () => Promise<Answer>,
  ends: (answer: Answer) => boolean,
  rounds?: number,
): Promise<Answer> {
  const answer = await ask()
  return belief && ends(answer) ? belief.assure(ask, ends, rounds) : answer
}

/** Whether an answer ends the transaction. */
export const isFail = (answer: { kind: string }): boolean => answer.kind === 'fail'

/** An unsigned transaction, and everything that the engine writes with it in one commit. */
export interface Built {
  kind: 'built'
  unsigned: UnsignedTransaction
  /**
   * Maximum cost in addition to the amount paid, in the smallest native unit. Must not exceed the
   * network's cap.
   */
  worst: bigint
  /** Account-based chains: the sending account, and the nonce if the chain uses one. */
  account?: string
  nonce?: bigint
  /** Expiry of the transaction, in the chain's own unit. */
  validUntil?: number
  /** UTXO chains: the outputs that the transaction spends. */
  coins?: readonly { txid: string; vout: number }[]
  /** New fee to show; absent: the fee stays as it is. */
  fee?: bigint
  /**
   * Amount that a wallet of the sub-account reserves for the fee; absent: the fee is paid by fuel,
   * by the gas tank, or out of the amount moved.
   */
  hold?: Hold
  /** Amount that a sweep moves. */
  amount?: bigint
  plan?: Plan
}

/**
 * A wallet's reservation for a network fee. `noted`: the field of the plan that stores how much is
 * already reserved.
 */
export interface Hold {
  wallet: string
  asset: Asset
  amount: bigint
  noted: 'fee_reserve' | 'fee_held'
  /** Amount that the chain requires to stay on the account (the chain reserve). */
  reserve: bigint
}

/**
 * Everything that a build needs to read from the chain. The rest of the build happens under the
 * engine's lock.
 */
export interface Prepared {
  kind: 'prepared'
  /**
   * What is locked while building: the wallet's coins, or the order of an account's transactions.
   */
  lock: 'wallet' | 'account'
  /**
   * Maximum cost of a sweep, and whether it is paid out of the amount moved; absent: it was already
   * determined with {@link Fuelled.price}.
   */
  cost?: { worst: bigint; own: boolean }
  /**
   * Whether the chain reverts the transaction if an account exists that the endpoint did not return:
   * only current endpoints decide that.
   */
  needsAbsence?: boolean
  /**
   * Builds the unsigned transaction. Called while the lock is held.
   * @param unswept the ledger's balance at the address of a sweep, read under the lock
   */
  build(tx: Queryable, unswept: bigint): Promise<Built | Wait | Fail>
}

/**
 * Stake of the gas tank, in sun, whose energy is delegated for one transaction, and the maximum
 * fees of the two calls (delegate and undelegate).
 */
export interface Loan {
  tank: string
  amount: bigint
  /**
   * Stake that the chain would allow us to delegate; our pending delegations are not yet
   * subtracted.
   */
  lendable: bigint
  fee: bigint
  backFee: bigint
}

/** Amounts that a planned transaction takes from the gas tank, in the smallest native unit. */
export interface Priced {
  kind: 'priced'
  /** Balance that the source address must hold for the fee. */
  need: bigint
  /** Maximum fee of the transaction. */
  worst: bigint
  /** Plan that is stored with the transaction. */
  plan: Plan
  /**
   * Whether the transaction pays its own fee. A sweep of the native coin does: signer nodes do not
   * sign fuel for it, because a hostile platform could otherwise drain the tank.
   */
  own: boolean
  /** Maximum cost of the fuel transaction in addition to the amount it moves, and its own plan. */
  fuel: { cost: bigint; plan: Plan }
  /**
   * Tron, where `need` relies on the account's own stake: which other transactions counted on that
   * stake when this one was planned.
   */
  counted?: string
  /** Tron: stake of the gas tank whose energy is delegated for this transaction. */
  loan?: Loan
}

/** Operations of chains whose fees a workspace's gas tank pays. */
export interface Fuelled {
  /**
   * Plans a transaction and its fuel.
   * @param maxGasPrice highest gas price that the tank pays, in the chain's integer unit; null: no
   *   limit
   */
  price(task: Task, maxGasPrice: bigint | null): Promise<Priced | Wait | Fail>
  /**
   * Returns the current cost and plan for repeating a failed fuel transaction; absent: the same as
   * before.
   */
  again?(failed: TransactionRow<'FUEL'>): Promise<Priced['fuel']>
  /**
   * Returns the maximum cost and the plan of sending a tank's full balance.
   * @param o.idle whether no other transaction is about to leave the tank
   */
  drain(o: {
    from: string
    to: string
    idle: boolean
  }): Promise<{ kind: 'drain'; worst: bigint; plan: Plan } | Fail>
  /**
   * Amount of the first funding of a local gas tank, and the balance below which any tank is low.
   * Smallest native unit.
   */
  firstFill: bigint
  threshold: bigint
}

/** One signed transaction of a transfer, with the fields that a replacement needs. */
export interface Waiting {
  id: string
  unsigned: UnsignedTransaction
  fee_max: string
  nonce: string | null
  hash: string
}

/** A requested replacement. `feeRate` is the caller's text. */
export interface RequestedReplacement {
  kind: 'SPEED_UP' | 'CANCEL' | 'AUTO'
  /** Whether the nodes refuse the signed transaction for its fee, so that none has it. */
  refused?: boolean
  feeRate: string | null
  level: FeeLevel | null
}

/**
 * A replacement that first needs more fuel from the gas tank. Amounts in the smallest native unit.
 */
export interface FuelShortfall {
  kind: 'dearer'
  /** Maximum fee of the replacement. */
  worst: bigint
  /** Maximum price per gas of the replacement, in the chain's integer unit. */
  price: bigint
  /**
   * Amount by which `worst` exceeds the reservation of the transaction. `short`: the error message
   * if no caller has signed for more.
   */
  more: bigint
  short: string
  /** Amount still missing at the source address for the fee, and the cost and plan of its fuel. */
  need: bigint
  fuel: Priced['fuel']
}

/** Operations of chains on which a pending signed transaction can be replaced. */
export interface Replaceable {
  /**
   * Returns the lowest fee rate at which a replacement is accepted, in the chain's integer unit.
   */
  leastRate(row: TransactionRow, waiting: readonly Waiting[]): Promise<bigint>
  /**
   * Whether the chain now estimates more gas than a signed transaction has that nodes refuse for its
   * gas limit; absent: the chain has no gas limit.
   */
  lacksGas?(row: TransactionRow, asset: Asset, newest: Waiting): Promise<boolean>
  /** Whether the market fee rate is higher than that of the pending transaction. */
  marketPaysMore(row: TransactionRow, newest: Waiting): Promise<boolean>
  /**
   * Prepares the replacement.
   * @param fuelled whether additional fuel was already requested and has arrived; `FuelShortfall`
   *   is then not returned
   */
  prepare(
    row: TransactionRow,
    asset: Asset,
    wanted: RequestedReplacement,
    waiting: readonly Waiting[],
    fuelled: boolean,
  ): Promise<Prepared | FuelShortfall | Fail>
}

/** Coins of a wallet that a request asks to merge. Amounts in the smallest unit. */
export interface MergeQuestion {
  owner: Owner
  walletId: string
  /** From {@link Consolidation.address}. */
  changeAddress: string
  /** In the chain's integer unit. */
  feeRate: bigint
  /** Number of free coins at which merging ends. */
  target: number
  /** Coins below this value are left. */
  least: bigint
  /** Largest sum of the coins. */
  sumMost: bigint
}

/**
 * Coins that one consolidation merges. `lacks`: `few`: too few coins are worth merging; `sum`: their sum
 * is too large; `fee`: the fee is above the cap, or the coins are not worth it.
 */
export type Merge = { sum: bigint; fee: bigint; inputs: number } | { lacks: 'few' | 'sum' | 'fee' }

/** Operations of chains on which the coins of a wallet can be merged. */
export interface Consolidation {
  /** Returns the address that receives the merged coin. Must not be called inside database transactions. */
  address(owner: Owner): Promise<string>
  /** Chooses the coins that one transaction would merge now, the smallest first. Reads the database only. */
  choose(database: Queryable, question: MergeQuestion): Promise<Merge>
}

/** Operations of chains whose wallets are sets of unspent outputs (coins). */
export interface Coins {
  /** Returns whose coins a transaction spends and who signed it. */
  senders(txid: string): Promise<Senders>
  /** Returns the value of an output that the chain reports as unspent, otherwise null. */
  unspent(txid: string, vout: number): Promise<bigint | null>
  /**
   * Returns the transaction that created a coin, in hex, as the signer nodes need it to verify the
   * coin's value. Our own transactions are read without querying the chain.
   * @param signed the transaction itself, if the caller has it
   */
  previous(txid: string, signed?: string): Promise<string>
  /**
   * Returns the coins that an unsigned transaction spends, one per input. `value` is null if the
   * unsigned transaction does not contain the creating transaction.
   */
  of(unsigned: UnsignedTransaction): { txid: string; vout: number; value: bigint | null }[]
  /** SQL condition on `utxos u`: the coin may be chosen for a transaction. */
  readonly choosable: string
  /**
   * Returns the largest amount that one transfer can pay now, at the default fee level and to an address
   * of any kind, in the smallest unit; null if the fee rate is not known.
   * @param of `free`: the part of the wallet's available balance that is not frozen
   */
  payable(of: { owner: Owner; walletId: string; free: bigint }): Promise<bigint | null>
  /** Absent if coins cannot be merged by request. */
  readonly consolidation?: Consolidation
}

/**
 * Unconfirmed transactions in the endpoint's mempool. Any of them may be replaced or never be
 * mined.
 */
export interface Mempool {
  /**
   * Returns the ids of all unconfirmed transactions.
   * @throws RpcRefused if the endpoint does not provide its mempool
   */
  waiting(): Promise<string[]>
  /**
   * Returns the transfers of these transactions; transactions that have left the mempool are
   * omitted.
   */
  transfers(txids: readonly string[]): Promise<ChainTransfer[]>
}

/** Operations of chains with staking (Tron's Stake 2.0). */
export interface Stakes {
  client: TronClient
  /** Returns the chain's price parameters, at most ten seconds old. */
  parameters(): Promise<TronParameters>
  /** Returns the maximum fee of a native payment. */
  paymentCost(to: string): Promise<bigint>
  /** Returns the cost and plan of fuel for calls that use this many bandwidth points. */
  fuelFor(account: string, points: bigint): Promise<Priced['fuel']>
}

/**
 * Interface to one network, created by its family at start. A chain only returns values; only the
 * engine writes to the database.
 */
export interface Chain {
  readonly network: Network
  readonly client: ChainClient
  /** Polling interval of the chain's head; absent: the platform's default interval. */
  readonly pace?: HeadPolling
  /** Quorum of endpoints; absent if the response of one endpoint is sufficient. */
  readonly agreement?: Agreement
  /** The endpoints; absent if there is only one. */
  readonly voters?: Voters
  /** Number of requests a minute that compare balances with the books; absent or 0: none. */
  readonly balanceRequests?: number
  /** Asks only endpoints whose state is current; absent: any endpoint is believed. */
  readonly belief?: Belief
  /** The chain's name for a tag, if deposits are distinguished by tags. */
  readonly tagName?: string
  /**
   * Returns the current fee rates in the chain's integer unit. On Tron the rate depends on the
   * asset.
   */
  rates(asset: Asset): Promise<LevelRates>
  /** Time at which the rates were last read, in milliseconds since the Unix epoch; null: never. */
  ratesReadAt(): number | null
  /**
   * Returns a sentence that explains why the latest rates may be wrong; null or absent: no warning.
   */
  ratesWarning?(): string | null
  /**
   * Estimates the network fee of a transfer for the API response and the reservation. Does not fail
   * if the chain is unreachable.
   */
  estimate(question: Question): Promise<Estimate>
  /** Computes the result of POST /estimate-fee. */
  quote(question: QuoteQuestion): Promise<Quote>
  /** Checks a payment without querying the chain. Returns the reason for a refusal, or null. */
  unfit(payment: Payment): Refusal | null
  /**
   * Checks a payment against the chain's state. Returns the reason for a refusal, or null.
   * @throws if the chain cannot be queried
   */
  refusal(payment: Payment): Promise<Refusal | null>
  /**
   * Returns the chain reserve of an account, in the asset's smallest unit. Does not fail if the
   * chain is unreachable.
   */
  reserveOf(address: string, asset: Asset): Promise<bigint>
  /**
   * Returns the part of the fee that the sub-account's native-coin wallet pays for a transfer of
   * another asset; 0 if it pays nothing.
   */
  feeOfOtherWallet(asset: Asset, fee: bigint): bigint
  /**
   * Reads everything that a build needs from the chain before any lock is acquired. The validity
   * period of the transaction starts here.
   */
  prepare(task: Task): Promise<Prepared | Wait | Fail>
  /** Null if the sending wallet pays its own fees. */
  readonly fuelled: Fuelled | null
  /** Null if a signed transaction cannot be replaced. */
  readonly replaceable: Replaceable | null
  /** Null if wallets are accounts. */
  readonly coins: Coins | null
  readonly stakes: Stakes | null
  /**
   * Absent if block times are so short that reading the mempool is useless, or if nodes do not
   * provide it.
   */
  readonly mempool?: Mempool
  /** Whether a signed transaction can no longer be included; absent: transactions do not expire. */
  isDead?(hash: string, validUntil: number): Promise<boolean>
  /**
   * Finds the same message with another signature, on chains whose transaction ids cover
   * signatures.
   */
  findSigned?(account: string, message: string, validUntil: number): Promise<Signed | null>
  /**
   * Whether the remaining validity of a built transaction is too short to sign and send it; absent:
   * a transaction is never rebuilt for this reason.
   */
  isStale?(validUntil: number): Promise<boolean>
  /**
   * Returns the latest possible expiry of a transaction signed by now, on chains whose transaction
   * bytes do not contain the expiry.
   */
  latestEnd?(): Promise<number>
  /**
   * Returns the next nonce that the chain accepts for an account; absent: the chain has no nonces.
   */
  nextNonce?(account: string): Promise<bigint>
  /** Returns the balance of an address on the chain. Not used if wallets are sets of coins. */
  balance(address: string, asset: Asset): Promise<bigint>
  /**
   * Returns the balances of at most `BALANCES_MAX` addresses, in their order and in the asset's
   * smallest unit; absent: each address needs its own request.
   * @param height block of the balances; absent: the newest
   */
  balances?(addresses: readonly string[], asset: Asset, height?: number): Promise<bigint[]>
  /**
   * Returns the balance, and coins of the address from which the platform does not send; absent: the
   * chain lists none.
   */
  holdings?(address: string, asset: Asset): Promise<Holdings>
}

/**
 * Returns the chain's staking operations.
 * @throws if the chain has no staking
 */
export function stakesOf({ network, stakes }: Chain): Stakes {
  if (!stakes) throw new Error(`${network.code} has no staking`)
  return stakes
}

/** Creates a family's chain for one network. */
export type Connect = (context: ChainContext, network: Network, endpoints: Endpoints) => Chain
