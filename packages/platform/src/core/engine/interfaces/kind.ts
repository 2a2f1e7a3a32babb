import type { TransactionStatus, TronAction } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
import type { Purpose } from '../../signing/sign.ts'
import type { Chain, Fail, Priced, Task, Wait } from '../chain.ts'
import type { Replacement } from '../replacement.ts'
import type { Plan, StateOf, TransactionKind, TransactionRow } from '../transaction.ts'

/** One step of a leased transaction. */
type Step<K extends TransactionKind = TransactionKind> = {
  does(row: TransactionRow<K>): Promise<void>
}['does']

/**
 * Steps of the engine, which every kind can use; each is described in the engine's file of this
 * name (`awaitFuel`: `fuel.ts`; `void`: `fail.ts`).
 */
export type EngineStep =
  | 'build'
  | 'awaitFuel'
  | 'sign'
  | 'broadcast'
  | 'confirm'
  | 'replace'
  | 'void'

/** One state of a kind, and what happens to a transaction in it. */
export interface StateRule<K extends TransactionKind = TransactionKind> {
  state: StateOf<K>
  /**
   * What a worker does with a transaction in this state: a step of the engine or of the kind.
   * Absent: no worker continues it, because it has ended or the scanner continues it.
   */
  run?: EngineStep | Step<K>
  /** States that may follow. */
  next: readonly StateOf<K>[]
  /**
   * A cancellation ends the transaction in this state, because nothing can have been signed for it.
   */
  endsIfCancelled?: true
}

/**
 * States in which a block has ended a transaction. If a reorganisation removes the block, the
 * transaction waits for another one.
 */
export const ENDED_IN_BLOCK = [
  { state: 'CONFIRMED', next: ['CONFIRMING'] },
  { state: 'REVERTED', next: ['CONFIRMING'] },
] as const satisfies readonly StateRule[]

/** Returns the rule of a transaction's state. */
export const ruleOf = (kinds: Kinds, row: TransactionRow): StateRule | undefined =>
  kinds[row.kind].states.find(({ state }) => state === row.state)

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

/** A settled chain transaction whose block has left the chain. `step`: a staking call. */
export interface Undone {
  succeeded: boolean
  step: TronAction['kind'] | null
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

/** Refusal of a transaction by the signer nodes. */
export interface SigningRefusal {
  /** Code of a node. */
  code: string
  message: string
  /** Whether no node has ever started to sign the transaction. */
  isUntouched: boolean
  /**
   * Unix seconds from which the nodes that refused would sign it; null: never, as the windows of the
   * policy are now. Absent: the reason is not a full window.
   */
  freesAt?: readonly (number | null)[]
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
  /**
   * All states of the kind, in the order in which a transaction usually passes through them. A
   * transaction that fails releases everything that it has reserved in one commit (`release`),
   * whatever its state, so a state has no undo of its own.
   */
  states: readonly StateRule<K>[]
  /** Whether a transaction of this kind moves the full balance of its address. */
  sweeps?: boolean
  /** Returns the chain-specific call that is due now; null if it is a payment. */
  action?(row: TransactionRow<K>): TronAction | null
  /** Whether the policy of its workspace judges a transaction before it is built. Absent: it does not. */
  isJudged?(row: TransactionRow<K>): boolean
  /**
   * Whether a transaction takes its amount from the balance of its wallet. It is not built while that
   * balance is below zero. Absent: it does not.
   */
  spendsBalance?(row: TransactionRow<K>): boolean
  /**
   * Returns a transaction to an earlier state if a new obstacle has arisen.
   * @returns whether the transaction was returned to an earlier state
   */
  heldBack?(row: TransactionRow<K>): Promise<boolean>
  /**
   * Called when the signer nodes refuse a transaction, before it fails; also if a policy does not
   * allow it now, before it waits.
   * @returns whether the kind has returned the transaction to an earlier state instead
   */
  refused?(row: TransactionRow<K>, refusal: SigningRefusal): Promise<boolean>
  /**
   * Whether a transaction ends if a policy does not allow it now, so that it does not block its
   * account: it only pays for another one, which waits instead and starts it again, or operators start
   * it again. Absent: it waits.
   * @param isJudged whether the policy judges another transaction before that one is built
   */
  endsIfHeld?(
    row: TransactionRow<K>,
    isJudged: (other: TransactionRow) => boolean,
  ): Promise<boolean>
  /**
   * Whether a transaction may be submitted to the signer nodes, which may sign it from then on.
   * Called within the commit that marks it as submitted, before anything else is locked; events
   * that would forbid it are blocked until the commit ends. If it returns false, the next call of
   * `heldBack` gives the reason. Absent: every transaction may be submitted.
   */
  maySubmit?(tx: Queryable, row: TransactionRow<K>): Promise<boolean>
  /**
   * Returns why a transaction can never be built, or null. Called before the transaction is
   * planned, and before each chain-specific call.
   */
  refusal?(chain: Chain, task: Task<K>): Promise<string | null>
  /** Plans a transaction, if the chain's plan of a payment does not fit. */
  price?(chain: Chain, task: Task<K>): Promise<Priced | Wait | Fail>
  /**
   * Postpones a transaction if it is not worth its fee yet.
   * @returns whether the transaction was postponed
   */
  postpones?(
    row: TransactionRow<K>,
    chain: Chain,
    o: { amount: bigint; cost: bigint; own: boolean },
  ): Promise<boolean>
  /**
   * Recovery: returns the hash of a transaction's chain transaction if that hash is already known
   * although the chain transaction was not signed here.
   */
  recorded?(row: TransactionRow<K>): Promise<{ hash: string } | Fail | null>
  /**
   * Returns the purpose that authorises the signer nodes to sign a transaction. Absent:
   * transactions of this kind are never signed.
   * @param of returns the purpose of another transaction
   */
  purpose?(
    row: TransactionRow<K>,
    replacement: Replacement | undefined,
    of: AskPurpose,
  ): Promise<Purpose>
  /** Called within the commit that stores the hash of a transaction. */
  broadcast?(tx: Queryable, row: TransactionRow<K>): Promise<void>
  /**
   * Called when a block includes a transaction, final or not, so it may be called several times.
   */
  included?(tx: Queryable, row: TransactionRow<K>, o: Included): Promise<void>
  /**
   * Books the result of a transaction on the chain and ends the transaction. Absent for deposits,
   * which the scanner ends.
   */
  settle?(tx: Queryable, row: TransactionRow<K>, o: Outcome): Promise<void>
  /**
   * Takes back what `settle`, and `included` of the same block, booked and wrote, because the block has
   * left the chain; also what the transaction's end wrote since. The engine makes the transaction pending
   * again and keeps its signed bytes.
   * @returns changes of its plan
   */
  undo?(tx: Queryable, row: TransactionRow<K>, o: Undone): Promise<Plan<K>>
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
  failing?(tx: Queryable, row: TransactionRow<K>, reason: string): Promise<void>
  /** Releases every reservation of a transaction that fails. */
  release?(tx: Queryable, row: TransactionRow<K>, reason: string): Promise<Ending<K>>
  /** Called at the end of a transaction's failure, after everything else is locked and written. */
  failed?(tx: Queryable, row: TransactionRow<K>, ending: Ending<K>): Promise<void>
  /**
   * Milliseconds after which the fee of a transaction is bumped if the market pays more; 0: never.
   */
  bumpAfterMs?(): number
}

export type AskPurpose = (row: TransactionRow, replacement?: Replacement) => Promise<Purpose>
export type Kinds = Readonly<Record<TransactionKind, Kind>>
