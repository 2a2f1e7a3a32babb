/** Data on the chain that a client could not read, or not in the usual way. */
export interface Unreadable {
  network: string
  /**
   * `transaction`: a payment in it would not be credited. `field`: a fallback value was used.
   * `method`: the endpoint refused an optional method, and the data was read in another way.
   */
  kind: 'transaction' | 'field' | 'method'
  /** Hash of the transaction, or name of the field or method. */
  name: string
  reason: string
}

export type ReportUnreadable = (problem: Unreadable) => void

export const ignoreUnreadable: ReportUnreadable = () => undefined
