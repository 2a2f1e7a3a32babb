import type { Registry } from '../registry.ts'
import type { ChainClient, Fetch, RpcEndpoint } from '../rpc.ts'
import type { Network, PublicKeyAt, UnsignedTransaction } from '../types.ts'

/** An address of a workspace key, with its path. */
export interface Place {
  path: number[]
  address: string
}

/** Addresses of a workspace to search, and the destination of their coins. */
export interface Ask {
  registry: Registry
  network: Network
  endpoint: RpcEndpoint
  fetch: Fetch
  /** Sub-accounts to search, including that of the gas tanks. */
  subAccounts: readonly number[]
  /**
   * Number of indexes below each sub-account that are searched if coins are found by reading
   * blocks; otherwise the number of unused ones in a row that ends the search.
   */
  gap: number
  /** First block that is read, if coins are found by reading blocks. */
  fromHeight: number
  placeAt(subAccount: number, index: number): Place
  to: string
  /** Reports progress to the waiting operator. */
  notify(line: string): void
}

/**
 * Data read from the chain, as JSON: amounts are decimal text in the smallest unit. Each family has
 * its own shape.
 */
export type Found = Record<string, unknown>

export interface Planned {
  unsigned: UnsignedTransaction
  /** For display: asset, amount and address. */
  asset: string
  from: string
  amount: string
  /**
   * Path of our own address that receives native coin for its token fees; absent if the transaction
   * pays the destination.
   */
  fuel?: number[]
}
/** Funds that are not moved, and why. */
export interface Left {
  address: string
  asset: string
  amount: string
  why: string
  /** The funds can be moved after a payment that `why` describes. */
  waits?: true
}
export interface Plan {
  transactions: Planned[]
  left: Left[]
  /** After these transactions are in blocks, there are more funds to find and plan. */
  more: boolean
}

export interface PlanOf {
  registry: Registry
  network: Network
  publicKeyAt: PublicKeyAt
  scan: Found
  to: string
  tag: string | null
}

/**
 * Finds and moves one family's funds without a database. `look` queries the chain; `plan` works
 * offline.
 */
export interface Sweeper {
  look(ask: Ask): Promise<Found>
  plan(o: PlanOf): Plan
  client(registry: Registry, network: Network, endpoint: RpcEndpoint, fetch: Fetch): ChainClient
  /** Time within which the data may be signed and sent, as text for the operator. */
  life: string
}
