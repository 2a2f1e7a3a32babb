import type { LevelRates, Network, TaggedClient, UnsignedTransaction } from '@custody/chains'
import type { ChainContext } from '../../engine/chain.ts'
import type { Cached } from '../cached.ts'

/**
 * A payment with all fields that determine its bytes. `create`: the destination has no account yet.
 */
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

/** Differences between the two families whose accounts have a sequence, a reserve and tags. */
export interface Dialect {
  /** The chain's name for a tag. */
  tagName: string
  /** Whether a payment that creates an account is reverted where the account exists. */
  creates: boolean
  /** Assumed reserve of an account without further entries, in the smallest unit. */
  reserveLeast: bigint
  /** Whether an address itself identifies one of an account's customers, instead of a tag. */
  isMuxed(address: string): boolean
  pay(network: Network, payment: FixedPayment): UnsignedTransaction
}

/** One network's chain, as shared by the modules of this folder. */
export interface Tagged {
  context: ChainContext
  network: Network
  client: TaggedClient
  dialect: Dialect
  rates: Cached<LevelRates>
}
