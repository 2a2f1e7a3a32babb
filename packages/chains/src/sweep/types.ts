import type { Registry } from '../registry.ts'
import type { ChainClient, Fetch, RpcEndpoint } from '../rpc.ts'
import type { Network, PublicKeyAt, UnsignedTransaction } from '../types.ts'

/** An address of a workspace key, with its path. */
export interface Place {
  path: number[]
  address: string
}

/** Which addresses of a workspace are looked at, and where their coins are to go. */
export interface Ask {
  registry: Registry
  network: Network
  endpoint: RpcEndpoint
  fetch: Fetch
  /** Sub-accounts, the gas tanks' among them. */
  subAccounts: readonly number[]
  /**
   * Indexes below each sub-account: so many of them where coins are found by reading blocks;
   * elsewhere so many unused ones in a row end the search.
   */
  gap: number
  /** First block that is read, where coins are found by reading blocks. */
  fromHeight: number
  placeAt(subAccount: number, index: number): Place
  to: string
  /** What is being done, for somebody who waits. */
  tell(line: string): void
}

/**
 * What the chain told, as JSON: amounts as decimal text in the smallest unit. Each family's own.
 */
export type Found = Record<string, unknown>

export interface Planned {
  unsigned: UnsignedTransaction
  /** For a person: asset, amount and address. */
  asset: string
  from: string
  amount: string
  /**
   * Path of the own address that is given the native coin for the fees of its tokens; absent: it
   * pays the destination.
   */
  fuel?: number[]
}
/** What stays where it is, and why. */
export interface Left {
  address: string
  asset: string
  amount: string
  why: string
  /** It moves once somebody has sent what `why` says. */
  waits?: true
}
export interface Plan {
  transactions: Planned[]
  left: Left[]
  /** Once these are in blocks, there is more to be found and planned. */
  more: boolean
}

export interface PlanOf {
  registry: Registry
  network: Network
  publicKeyAt: PublicKeyAt
  found: Found
  to: string
  tag: string | null
}

/**
 * How one family's funds are found and moved without a database: `look` asks the chain, `plan` asks
 * nobody.
 */
export interface Sweeper {
  look(ask: Ask): Promise<Found>
  plan(o: PlanOf): Plan
  client(registry: Registry, network: Network, endpoint: RpcEndpoint, fetch: Fetch): ChainClient
  /** How long what was looked up may be signed and sent, for a person. */
  life: string
}
