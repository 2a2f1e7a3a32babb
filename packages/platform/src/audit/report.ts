/**
 * `surplus`: the chain or exchange holds more than the books say, which no customer loses by and
 * anybody can cause. `deficit`: the books promise more than there is, or contradict themselves.
 * `unknown`: nothing could be compared.
 */
export type DifferenceKind = 'surplus' | 'deficit' | 'unknown'

/** Of two amounts that differ. */
export const kindOf = (books: bigint, chain: bigint): DifferenceKind =>
  chain > books ? 'surplus' : 'deficit'

export interface Difference {
  kind: DifferenceKind
  network: string
  workspace: string
  subject: string
  asset: string
  ledger: string
  chain: string
  note?: string
}
/**
 * `ok` only where something was compared and nothing differs. `compared`: addresses and coins that
 * a chain was asked about, and balances that an exchange was.
 */
export interface AuditReport {
  ok: boolean
  compared: number
  networks: Record<string, { addresses: number; coins: number }>
  /** Of accounts at exchanges: claims, that were held against what the exchange says. */
  exchanges: { accounts: number; balances: number }
  books: { entries: number; balanced: boolean }
  differences: Difference[]
}
