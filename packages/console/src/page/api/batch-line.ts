/** What is known of an asset. */
export interface Known {
  decimals: number
  takes_tag: boolean
}
/** A transfer that was ordered before. */
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
 * `new`: to be sent. `sent`: ordered by this line before, in this file or an earlier version of it.
 * `failed`: ordered so, and it failed. `paid`: an equal payment was ordered in the last days, by
 * another line or another way.
 */
export type Standing = 'new' | 'sent' | 'failed' | 'paid'

/** How a line stands to the transfers of before. */
interface Plan {
  standing: Standing
  /** The newest first. */
  earlier: Earlier[]
  /**
   * By which it is ordered while nothing was; where it is ordered once more by explicit choice,
   * another one.
   */
  sequence_id: string
}

/** One line of the file: what it orders, and what is wrong with it. */
export interface Line {
  /** As an editor counts them. */
  number: number
  asset: string
  amount: string
  destination_address: string
  address_tag: string
  memo: string
  fee_level: string
  /** The file's own name of the payment, unique in it; empty: the line is known by its content. */
  reference: string
  /** Address and tag as the platform stores them, once it has checked them. */
  payee: { address: string; tag: string }
  /** How it stands to the transfers of before; null until it is known. */
  plan: Plan | null
  /**
   * Its network has tags, and it names none: the payee has none, as the person who sends it
   * confirms.
   */
  hasNoTag: boolean
  /**
   * The file has a column `address_tag`: an empty field there is an answer, and a missing column is
   * none.
   */
  hasTagColumn: boolean
  problems: string[]
  /** Not wrong, and worth a look. */
  notes: string[]
}
