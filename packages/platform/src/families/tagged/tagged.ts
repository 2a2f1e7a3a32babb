import type { LevelRates, Network, TaggedClient, UnsignedTransaction } from '@custody/chains'
import type { ChainContext } from '../../engine/chain.ts'
import type { Cached } from '../cached.ts'

/** A payment, with all that fixes its bytes. `create`: the destination has no account yet. */
interface FixedPayment {
  to: string
  tag: string | null
  amount: bigint
  fee: bigint
  sequence: bigint
  validUntil: number
  create: boolean
  publicKey: Uint8Array
  path: number[]
}

/** In what the two families differ whose accounts have a sequence, a reserve, and tags. */
export interface Dialect {
  /** What the chain calls a tag. */
  tagName: string
  /** What an account without anything else is held to keep today. Smallest unit. */
  reserveLeast: bigint
  /** Whether an address names one of an account's customers by itself, in place of a tag. */
  isMuxed(address: string): boolean
  pay(network: Network, payment: FixedPayment): UnsignedTransaction
}

/** One network's chain, as the parts of this folder share it. */
export interface Tagged {
  context: ChainContext
  network: Network
  client: TaggedClient
  dialect: Dialect
  rates: Cached<LevelRates>
}
