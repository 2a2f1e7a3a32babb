/**
 * Kind of a difference. `surplus`: the chain or exchange holds more than the ledger, which harms no
 * customer and can be caused by anyone. `deficit`: the ledger promises more than exists, or
 * contradicts itself. `unknown`: nothing could be compared.
 */
export type DifferenceKind = 'surplus' | 'deficit' | 'unknown'

/** Returns the kind of a difference between two amounts that differ. */
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
 * `ok` is true only if something was compared and nothing differs. `compared`: number of addresses
 * and coins compared with a chain, and of balances compared with an exchange.
 */
export interface AuditReport {
  ok: boolean
  compared: number
  networks: Record<string, { addresses: number; coins: number }>
  /** Exchange accounts, and the balances compared with the exchange. */
  exchanges: { accounts: number; balances: number }
  books: { entries: number; balanced: boolean }
  differences: Difference[]
}
