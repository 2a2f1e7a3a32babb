import type { Network, Registry, TransactionStatus, TronAction } from '@custody/chains'
import type { Logger } from 'pino'
import type { Database, Queryable } from '../database/pool.ts'
import type { Environment } from '../environment.ts'
import type { Notifier } from '../ledger/notifier.ts'
import type { Feed } from '../ledger/feed.ts'
import type { Metrics } from '../metrics.ts'
import type { LoadMonitor } from '../load-monitor.ts'
import type { Settings } from '../settings/settings.ts'
import type { WorkspaceKeys } from '../signing/keys.ts'
import type { SignerNodes } from '../signing/nodes.ts'
import type { Receipts } from '../signing/receipts.ts'
import type { Purpose } from '../signing/sign.ts'
import type { Chain, FuelShortfall, Fail, Owner, Priced, Task, Wait } from './chain.ts'
import type { DatabaseHold } from './database-hold.ts'
import type { Networks } from './networks.ts'
import type { Replacement } from './replacement.ts'
import type { Plan, StateOf, TransactionKind, TransactionRow } from './transaction.ts'

/**
 * State of the platform, as its readiness endpoint returns it. `ready`: POST /transaction would be
 * accepted. `signing`: accepted transfers would also be signed. `attended`: a worker and a scanner
 * are running, so transfers would be processed and confirmed. `checks`: the reasons, by component.
 */
export interface Readiness {
  ready: boolean
  signing: boolean
  attended: boolean
  checks: Record<string, string>
}

/**
 * Dependencies of handlers and workers, created once at start. A module above the engine adds its
 * own part by declaration merging (`declare module`), so that this file does not import it.
 */
export interface Services {
  settings: Settings
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  receipts: Receipts
  keys: WorkspaceKeys
  addresses: Addresses
  metrics: Metrics
  log: Logger
  /** Notified when this process has committed events that must be published. */
  outbox: Notifier
  /** Notified when this process has committed something that may make a transaction due. */
  work: Notifier
  pressure: LoadMonitor
  /** Notifies when events have been published. */
  feed: Feed
  hold: DatabaseHold
  kinds: Kinds
  tanks: Tanks
  forwards: Forwards
  invoices: Invoices
  readiness(): Promise<Readiness>
  /** Sends a command to the control API of the local chains; null on mainnet. */
  devnet: ((command: Record<string, unknown>) => Promise<Record<string, unknown>>) | null
}

/** Finds and creates the platform's own addresses. */
export interface Addresses {
  /**
   * Return the omnibus address and the change address of a sub-account, as stored when its wallet
   * was created. Must not be called inside database transactions.
   */
  omnibus(network: Network, owner: Owner): Promise<string>
  change(network: Network, owner: Owner): Promise<string>
  /**
   * Commits the height at which the scan of a network starts, once, before an address on it is
   * stored.
   * @throws ApiError `NETWORK_UNAVAILABLE` if the chain cannot be queried, because an address would
   *   be assigned that no scan covers
   */
  startScan(network: Network): Promise<void>
}

/** One step of a leased transaction. */
export type Step<K extends TransactionKind = TransactionKind> = {
  does(services: Services, row: TransactionRow<K>): Promise<void>
}['does']

/**
 * Result of a transaction's last chain transaction. `staking`: Tron's report about a staking call.
 */
export interface Outcome {
  /** Fee in the smallest unit of the fee asset. */
  fee: bigint
  succeeded: boolean
  cancelled: boolean
  confirmations: number
  staking: Extract<TransactionStatus, { state: 'included' }>['staking']
}

/**
 * A transaction's result in a block. `feeMax` is the maximum fee that its bytes allow; on rollups
 * the L1 fee may be added to it.
 */
export interface Included {
  fee: bigint
  feeMax: bigint
  succeeded: boolean
  final: boolean
}

/** How a failed transaction is reported, where it differs from the default. */
interface Ending<K extends TransactionKind = TransactionKind> {
  state?: 'PARTIAL'
  reason?: string
  fee?: bigint
  plan?: Plan<K>
}

/**
 * Behaviour of one kind of transaction: one object per kind, in its product's folder. It only
 * handles the states and the plan of its own kind.
 */
export interface Kind<K extends TransactionKind = TransactionKind> {
  /** Steps of states that only this kind has or that it handles differently. */
  steps?: Partial<Record<StateOf<K>, Step<K>>>
  /** Whether a transaction of this kind moves the full balance of its address. */
  sweeps?: boolean
  /** Returns the chain-specific call that is due now; null if it is a payment. */
  action?(row: TransactionRow<K>): TronAction | null
  /**
   * Returns a transaction to an earlier state if a new obstacle has arisen.
   * @returns whether the transaction was returned to an earlier state
   */
  heldBack?(services: Services, row: TransactionRow<K>): Promise<boolean>
  /**
   * Whether a transaction may be submitted to the signer nodes, which may sign it from then on.
   * Called within the commit that marks it as submitted, before anything else is locked; events
   * that would forbid it are blocked until the commit ends. If it returns false, the next call of
   * `heldBack` gives the reason. Absent: every transaction may be submitted.
   */
  maySubmit?(services: Services, tx: Queryable, row: TransactionRow<K>): Promise<boolean>
  /**
   * Returns why a transaction can never be built, or null. Called before the transaction is
   * planned, and before each chain-specific call.
   */
  refusal?(services: Services, chain: Chain, task: Task<K>): Promise<string | null>
  /** Plans a transaction, if the chain's plan of a payment does not fit. */
  price?(services: Services, chain: Chain, task: Task<K>): Promise<Priced | Wait | Fail>
  /**
   * Postpones a transaction if it is not worth its fee yet.
   * @returns whether the transaction was postponed
   */
  postpones?(
    services: Services,
    row: TransactionRow<K>,
    chain: Chain,
    o: { amount: bigint; cost: bigint; own: boolean },
  ): Promise<boolean>
  /**
   * Recovery: returns the hash of a transaction's chain transaction if that hash is already known
   * although the chain transaction was not signed here.
   */
  recorded?(services: Services, row: TransactionRow<K>): Promise<{ hash: string } | Fail | null>
  /**
   * Returns the purpose that authorises the signer nodes to sign a transaction. Absent:
   * transactions of this kind are never signed.
   * @param of returns the purpose of another transaction
   */
  purpose?(
    services: Services,
    row: TransactionRow<K>,
    replacement: Replacement | undefined,
    of: AskPurpose,
  ): Promise<Purpose>
  /** Called within the commit that stores the hash of a transaction. */
  broadcast?(services: Services, tx: Queryable, row: TransactionRow<K>): Promise<void>
  /**
   * Called when a block includes a transaction, final or not, so it may be called several times.
   */
  included?(services: Services, tx: Queryable, row: TransactionRow<K>, o: Included): Promise<void>
  /**
   * Books the result of a transaction on the chain and ends the transaction. Absent for deposits,
   * which the scanner ends.
   */
  settle?(services: Services, tx: Queryable, row: TransactionRow<K>, o: Outcome): Promise<void>
  /**
   * Whether the caller's own request asks for exactly this payment. One fuel transaction may then
   * pay for it and for others at its address. Absent: false.
   */
  isOwnPayment?(row: TransactionRow<K>): boolean
  /**
   * Whether the signer nodes sign a transaction in one session with others of the same account and
   * kind that wait behind it. Absent: each transaction is signed alone.
   */
  isSignedTogether?(row: TransactionRow<K>): boolean
  /**
   * Whether signatures for a transaction can still be requested from the signer nodes. Absent: they
   * can.
   */
  isAskedFor?(row: TransactionRow<K>): boolean
  /**
   * Whether a transaction is retried instead of failing, because the funds that it returns must be
   * returned.
   */
  retriesFailure?: boolean
  /** Called before the failure of a transaction locks or books anything. */
  failing?(services: Services, tx: Queryable, row: TransactionRow<K>, reason: string): Promise<void>
  /** Releases every reservation of a transaction that fails. */
  release?(
    services: Services,
    tx: Queryable,
    row: TransactionRow<K>,
    reason: string,
  ): Promise<Ending<K>>
  /** Called at the end of a transaction's failure, after everything else is locked and written. */
  failed?(
    services: Services,
    tx: Queryable,
    row: TransactionRow<K>,
    ending: Ending<K>,
  ): Promise<void>
  /**
   * Milliseconds after which the fee of a transaction is bumped if the market pays more; 0: never.
   */
  bumpAfterMs?(services: Services): number
}

export type AskPurpose = (
  services: Services,
  row: TransactionRow,
  replacement?: Replacement,
) => Promise<Purpose>
export type Kinds = Readonly<Record<TransactionKind, Kind>>

/** Interface of the workspaces' gas tanks for the engine. */
export interface Tanks {
  /**
   * Returns the highest gas price that the tank pays, in the chain's integer unit; null: no limit.
   */
  maxGasPrice(services: Services, row: TransactionRow): Promise<bigint | null>
  /**
   * → FUELING: takes the missing fee of the source address from the tank; otherwise the transaction
   * fails or waits.
   */
  start(services: Services, row: TransactionRow, chain: Chain, priced: Priced): Promise<void>
  /** Whether everything that was taken from the tank for the transaction has arrived. */
  arrived(services: Services, row: TransactionRow): Promise<'arrived' | 'waits' | 'alone' | Fail>
  /**
   * Starts a separate fuel transaction after fuel shared with others has failed, possibly because
   * of one of them (`alone`).
   */
  startAlone(services: Services, row: TransactionRow): Promise<void>
  /**
   * Takes the additional amount for a more expensive replacement from the tank: immediately
   * (`taken`) or with another fuel transaction (`started`).
   */
  startMore(
    services: Services,
    row: TransactionRow,
    replacement: Replacement,
    dearer: FuelShortfall,
  ): Promise<'taken' | 'started' | Fail>
  /**
   * Whether the additional fuel of a replacement has arrived. Once it has, the row's plan includes
   * it.
   */
  arrivedMore(
    services: Services,
    row: TransactionRow,
    replacement: Replacement,
  ): Promise<'arrived' | 'waits' | Fail>
}

/**
 * Standing rules that forward incoming funds. Called within the commit before it locks ledger
 * accounts, because rules are locked first.
 */
export interface Forwards {
  credited(tx: Queryable, row: TransactionRow, now: Date): Promise<void>
  takenBack(tx: Queryable, row: TransactionRow): Promise<void>
  done(tx: Queryable, row: TransactionRow): Promise<void>
  returned(tx: Queryable, row: TransactionRow, reason: string): Promise<void>
}

/** Interface to invoices, which some deposits pay. */
export interface Invoices {
  /**
   * Marks the invoice that owns the deposit's address and tag, if any, for evaluation. Called when
   * a deposit is found, held, credited, assigned or taken back, in the same commit, after
   * everything else is locked and written.
   */
  moved(
    tx: Queryable,
    row: Pick<TransactionRow, 'workspace_id' | 'network' | 'destination_id' | 'address_tag'>,
  ): Promise<void>
}
