/** Data on the chain that a client could not read and skipped. */
export interface Unreadable {
  network: string
  /** `transaction`: a payment in it would not be credited. `field`: a fallback value was used. */
  kind: 'transaction' | 'field'
  /** Hash of the transaction, or name of the field. */
  name: string
  reason: string
}

export type ReportUnreadable = (problem: Unreadable) => void

export const ignoreUnreadable: ReportUnreadable = () => undefined
