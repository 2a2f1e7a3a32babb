import type { AsideReason } from '@custody/chains'

/**
 * Kind of a difference. `surplus`: the chain or exchange holds more than the ledger, which harms no
 * customer and can be caused by anyone. `deficit`: the ledger promises more than exists, or
 * contradicts itself. `reorganised`: the endpoint contradicts a final block, so it may be on another
 * chain than the ledger. `unknown`: nothing could be compared. `dust`: a surplus on an account-based
 * network that is less than a sweep costs; only the sums are reported.
 */
type DifferenceKind = 'surplus' | 'deficit' | 'reorganised' | 'unknown' | 'dust'

/** Kinds of the differences that are listed one by one. */
export type ListedKind = Exclude<DifferenceKind, 'dust'>

/** Returns the kind of a difference between two amounts that differ. */
export const kindOf = (books: bigint, chain: bigint): 'surplus' | 'deficit' =>
  chain > books ? 'surplus' : 'deficit'

export interface Difference {
  kind: ListedKind
  network: string
  workspace: string
  subject: string
  asset: string
  ledger: string
  chain: string
  note?: string
}
/**
 * What was compared at exchanges. `accounts` and `balances` count only accounts that are proven to
 * be distinct. `unproven`: accounts that were compared but are not counted, because two of them
 * could be the same account at the exchange. `duplicates`: accounts that are known to be the same
 * as another one, which are not compared.
 */
export interface ExchangeCounts {
  accounts: number
  balances: number
  unproven: number
  duplicates: number
}

/**
 * Coins at our addresses that the platform sees and does not count: they are in no balance, and no
 * transfer spends them. They are no difference.
 */
export interface NotCounted {
  network: string
  workspace: string
  address: string
  /** Where they are: a token account, or `TXID:INDEX` of an output. */
  place: string
  asset: string
  amount: string
  reason: AsideReason
}

/** Surpluses of one asset that are less than a sweep costs. They do not change `ok`. */
export interface DustTotal {
  kind: Extract<DifferenceKind, 'dust'>
  network: string
  asset: string
  /** Number of addresses with such a surplus. */
  addresses: number
  /** Sum of the surpluses. */
  amount: string
}

/**
 * `ok` is true only if something was compared and neither a chain nor the ledger itself differs.
 * Dust does not change it. Differences at exchanges do not either: the account belongs to the customer, who can trade
 * there or revoke its key at any time, and its coins are on no chain of the platform. `compared`: number of addresses
 * and coins compared with a chain, and of balances compared with an exchange.
 */
export interface AuditReport {
  ok: boolean
  compared: number
  networks: Record<string, { addresses: number; coins: number }>
  exchanges: ExchangeCounts
  books: { entries: number; balanced: boolean }
  /** Differences from the chains, and of the ledger itself. */
  differences: Difference[]
  /** Surpluses that are less than a sweep costs, by asset. */
  dust: DustTotal[]
  /** Coins that are in no balance. They do not change `ok`. */
  not_counted: NotCounted[]
  /** Differences from exchanges, and accounts that could not be compared. */
  exchange_differences: Difference[]
}
