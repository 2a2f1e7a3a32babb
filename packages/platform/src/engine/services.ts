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
import type { Chain, Dearer, Fail, Owner, Priced, Task, Wait } from './chain.ts'
import type { DatabaseHold } from './database-hold.ts'
import type { Networks } from './networks.ts'
import type { Replacement } from './replacement.ts'
import type { Plan, StateOf, TransactionKind, TransactionRow } from './transaction.ts'

/**
 * `ready`: POST /transaction would be accepted. `signing`: what was accepted would also be signed.
 * `attended`: a worker and a scanner are there, so that it would be worked on and confirmed.
 * `checks`: why not, part by part.
 */
export interface Readiness {
  ready: boolean
  signing: boolean
  attended: boolean
  checks: Record<string, string>
}

/**
 * What a handler or worker may use; made once at start. A room above the engine adds its own part
 * by declaration (`declare module`), so that this file imports none of them.
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
  /** Rung when events are committed in this process: they are to be published. */
  outbox: Notifier
  /** Rung when something is committed in this process that may make a transaction due. */
  work: Notifier
  pressure: LoadMonitor
  /** Tells when events were published. */
  feed: Feed
  hold: DatabaseHold
  kinds: Kinds
  tanks: Tanks
  forwards: Forwards
  invoices: Invoices
  readiness(): Promise<Readiness>
  /** Speaks to the local chains' control face; null on mainnet. */
  devnet: ((command: Record<string, unknown>) => Promise<Record<string, unknown>>) | null
}

/** Finds and makes the platform's own addresses. */
export interface Addresses {
  /** A sub-account's, as wallet creation stored them. Outside of database transactions only. */
  omnibus(network: Network, owner: Owner): Promise<string>
  change(network: Network, owner: Owner): Promise<string>
  /**
   * Commits where the scan of a network starts, once, before an address on it is stored.
   * @throws ApiError `NETWORK_UNAVAILABLE` where the chain cannot be asked: an address would be
   *   handed out that no scan watches
   */
  startScan(network: Network): Promise<void>
}

/** One step of a leased transaction. */
export type Step<K extends TransactionKind = TransactionKind> = {
  does(services: Services, row: TransactionRow<K>): Promise<void>
}['does']

/** How a transaction's last chain transaction ended. `staking`: what Tron tells of a call. */
export interface Outcome {
  /** Smallest unit of the fee asset. */
  fee: bigint
  succeeded: boolean
  cancelled: boolean
  confirmations: number
  staking: Extract<TransactionStatus, { state: 'included' }>['staking']
}

/**
 * What a block shows of a transaction. `feeMax` is the most that its bytes name; the fee of a chain
 * below may come on top.
 */
export interface Included {
  fee: bigint
  feeMax: bigint
  succeeded: boolean
  final: boolean
}

/** How a transaction that failed is shown, where it is not as usual. */
interface Ending<K extends TransactionKind = TransactionKind> {
  state?: 'PARTIAL'
  reason?: string
  fee?: bigint
  plan?: Plan<K>
}

/**
 * What a kind of transaction means: one object a kind, in its product's folder. It sees the states
 * and the plan of its own kind alone. "It" below is a transaction of that kind.
 */
export interface Kind<K extends TransactionKind = TransactionKind> {
  /** Steps of states that only this kind has, or does in its own way. */
  steps?: Partial<Record<StateOf<K>, Step<K>>>
  /** Moves all that its address holds. */
  sweeps?: boolean
  /** A call of the chain's own instead of a payment: the one that is due now. */
  action?(row: TransactionRow<K>): TronAction | null
  /**
   * Sends it back to an earlier state where something stands against it that did not before. True:
   * it was.
   */
  heldBack?(services: Services, row: TransactionRow<K>): Promise<boolean>
  /**
   * Whether it may be shown to the signer nodes, who may sign it from then on. Asked within the
   * commit that notes that it is, before anything else is locked; what would speak against it is
   * kept off until that ends. Not: `heldBack` says why when it is asked next. Absent: it may.
   */
  mayBeShown?(services: Services, tx: Queryable, row: TransactionRow<K>): Promise<boolean>
  /**
   * Why it cannot be built now and never will: asked before it is planned, and before each call of
   * the chain's own.
   */
  refusal?(services: Services, chain: Chain, task: Task<K>): Promise<string | null>
  /** Plans it where the chain's own plan of a payment does not fit. */
  price?(services: Services, chain: Chain, task: Task<K>): Promise<Priced | Wait | Fail>
  /** Lets it wait because it is not worth its fee yet. True: it waits. */
  postpones?(
    services: Services,
    row: TransactionRow<K>,
    chain: Chain,
    o: { amount: bigint; cost: bigint; own: boolean },
  ): Promise<boolean>
  /**
   * A chain transaction of it that is known already without having been signed here (recovery): its
   * hash.
   */
  recorded?(services: Services, row: TransactionRow<K>): Promise<{ hash: string } | Fail | null>
  /**
   * Under whose authority the nodes sign. Absent: it is never signed. @param of asks another
   * transaction's kind
   */
  purpose?(
    services: Services,
    row: TransactionRow<K>,
    replacement: Replacement | undefined,
    of: AskPurpose,
  ): Promise<Purpose>
  /** Called within the commit that shows its hash. */
  broadcast?(services: Services, tx: Queryable, row: TransactionRow<K>): Promise<void>
  /** Called when a block holds it, final or not, so more than once. */
  included?(services: Services, tx: Queryable, row: TransactionRow<K>, o: Included): Promise<void>
  /** Books its end on the chain, and ends it. Absent for deposits, which the scan ends. */
  settle?(services: Services, tx: Queryable, row: TransactionRow<K>, o: Outcome): Promise<void>
  /**
   * Whether its caller's own request asks for just this payment: then one fuel may pay for it and
   * for others at its address. Absent: never.
   */
  isOwnPayment?(row: TransactionRow<K>): boolean
  /**
   * Whether the nodes sign it together with others of its account and kind that wait behind each
   * other. Absent: alone.
   */
  isSignedTogether?(row: TransactionRow<K>): boolean
  /** Whether the nodes can still be asked to sign for it; absent: they can. */
  isAskedFor?(row: TransactionRow<K>): boolean
  /** It is tried again instead of failing, since what it brings back must come back. */
  retriesFailure?: boolean
  /** Called before its failure locks or books anything. */
  failing?(services: Services, tx: Queryable, row: TransactionRow<K>, reason: string): Promise<void>
  /** Gives every reservation back when it fails. */
  release?(
    services: Services,
    tx: Queryable,
    row: TransactionRow<K>,
    reason: string,
  ): Promise<Ending<K>>
  /** Called last in its failure, after everything else is locked and written. */
  failed?(
    services: Services,
    tx: Queryable,
    row: TransactionRow<K>,
    ending: Ending<K>,
  ): Promise<void>
  /** After this time a waiting transaction is bumped where the market pays more; 0: never. */
  bumpAfterMs?(services: Services): number
}

export type AskPurpose = (
  services: Services,
  row: TransactionRow,
  replacement?: Replacement,
) => Promise<Purpose>
export type Kinds = Readonly<Record<TransactionKind, Kind>>

/** The workspaces' gas tanks, as the engine asks for fuel. */
export interface Tanks {
  /** The most that the tank pays for gas, in the chain's integer; null: any. */
  maxGasPrice(services: Services, row: TransactionRow): Promise<bigint | null>
  /**
   * → FUELING: what is missing at the source address is taken from the tank, or the transaction
   * fails or waits.
   */
  start(services: Services, row: TransactionRow, chain: Chain, priced: Priced): Promise<void>
  /** Whether all that was taken of the tank for the transaction has come. */
  arrived(services: Services, row: TransactionRow): Promise<'arrived' | 'waits' | 'alone' | Fail>
  /**
   * The fuel that it shared with others has failed, perhaps for one of them (`alone`): it gets one
   * of its own.
   */
  startAlone(services: Services, row: TransactionRow): Promise<void>
  /**
   * What a dearer replacement needs beyond what is held: at once (`taken`), or by further fuel that
   * is under way (`started`).
   */
  startMore(
    services: Services,
    row: TransactionRow,
    replacement: Replacement,
    dearer: Dearer,
  ): Promise<'taken' | 'started' | Fail>
  /** Whether the further fuel of a replacement has come. Once it has, the row's plan counts it. */
  arrivedMore(
    services: Services,
    row: TransactionRow,
    replacement: Replacement,
  ): Promise<'arrived' | 'waits' | Fail>
}

/**
 * Standing rules that forward what comes in: told within the commit, before it locks accounts, for
 * rules are locked first.
 */
export interface Forwards {
  credited(tx: Queryable, row: TransactionRow, now: Date): Promise<void>
  takenBack(tx: Queryable, row: TransactionRow): Promise<void>
  done(tx: Queryable, row: TransactionRow): Promise<void>
  returned(tx: Queryable, row: TransactionRow, reason: string): Promise<void>
}

/** Invoices, of which some deposits are payments. */
export interface Invoices {
  /**
   * A deposit was found, held, credited, assigned or taken back: the invoice that owns its address
   * and tag, if one does, is to be looked at. Called in the same commit, after everything else is
   * locked and written.
   */
  moved(
    tx: Queryable,
    row: Pick<TransactionRow, 'workspace_id' | 'network' | 'destination_id' | 'address_tag'>,
  ): Promise<void>
}
