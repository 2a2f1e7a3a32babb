/** Data about an asset. */
export interface AssetInfo {
  decimals: number
  takes_tag: boolean
}
/** A transfer that was ordered earlier. */
export interface Earlier {
  id: string
  sub_account: string
  asset: string
  amount: string
  destination_id: string | null
  address_tag: string | null
  status: string
  sequence_id: string | null
  created_at: string
}

/**
 * `new`: will be sent. `sent`: this line ordered it earlier, in this file or an earlier version of
 * it. `failed`: it was ordered that way and failed. `paid`: another line or another way ordered an
 * equal payment in the last days.
 */
export type Standing = 'new' | 'sent' | 'failed' | 'paid'

/** Relation of a line to earlier transfers. */
interface Plan {
  standing: Standing
  /** Newest first. */
  earlier: Earlier[]
  /**
   * The `sequence_id` of the line's first order; if the person chooses to order it again, a new
   * one.
   */
  sequence_id: string
}

/** One line of the file: the transfer that it orders, and its problems. */
export interface Line {
  /** Line number as in an editor. */
  number: number
  asset: string
  amount: string
  destination_address: string
  address_tag: string
  memo: string
  fee_level: string
  /**
   * The file's own name of the payment, unique within the file; empty: the line is identified by
   * its content.
   */
  reference: string
  /** Address and tag as the platform stores them, after it has validated them. */
  payee: { address: string; tag: string }
  /** Relation to earlier transfers; null until it is known. */
  plan: Plan | null
  /**
   * The network has tags, and the line contains none: the person confirms that the payee has none.
   */
  hasNoTag: boolean
  /**
   * The file has a column `address_tag`. An empty field in it states that there is no tag; without
   * the column this is unknown.
   */
  hasTagColumn: boolean
  problems: string[]
  /** Remarks that are not problems. */
  notes: string[]
}
