import type { Faults } from './faults.ts'
import type { RpcFace } from './http-server.ts'

export interface Head {
  height: number
  hash: string
}

/** A token that has a contract on a local chain. */
export interface LocalContract {
  asset: string
  address: string
  decimals: number
}

/**
 * A payment from the faucet, as the operator wrote it: each chain reads its own part and names what
 * is wrong.
 */
export interface FundOrder {
  asset: string
  address: unknown
  amount: unknown
  tag: unknown
  tokens: unknown
  delivered: unknown
}

/** A payment in a form that only some chains have, as the operator wrote it. */
export interface SpecialOrder {
  kind: unknown
  address: unknown
  amount: unknown
  tokens: unknown
  nft: unknown
  commitment: unknown
}

/**
 * What a transaction in a block paid to one address, in the asset's smallest unit; `index` tells
 * several of one transaction apart.
 */
export interface Payment {
  hash: string
  index: number
  asset: string
  address: string
  tag: string | null
  amount: bigint
}

/** What of an order only some chains know. */
export type FundExtra = 'tag' | 'tokens'

/** Where a client finds a chain, or a face of it, and a command that can be pasted into a shell. */
export interface Endpoint {
  protocol: string
  url: string
  websocket?: string
  example: string
}

/**
 * What is told of a chain. A chain that nobody has used yet has no head, and is not started by the
 * question. `waiting`: transactions.
 */
export interface ChainInfo {
  head: Head | null
  waiting: number | null
  engine: string
  more: Record<string, unknown>
}

/**
 * One local network, as the HTTP server and the operator's commands see it. Every family implements
 * it in its own folder; nothing outside that folder asks which family a network is of.
 *
 * What a chain cannot do it refuses in one sentence (RequestError). `advance`, `drop`, `special`
 * and `tokenAddress` are not there on chains that have no such thing; a command that needs them
 * names the chains that do.
 */
export interface LocalChain {
  /** The network's code in the asset registry. */
  readonly code: string
  /** Where its protocol begins on the port of the local chains. */
  readonly path: string
  /** What can be funded here: the native coin, then the tokens. */
  readonly assets: readonly string[]
  readonly tokens: readonly LocalContract[]
  readonly fundExtras: readonly FundExtra[]
  /** Started with the process, not on first use. */
  readonly isEager: boolean
  readonly faults: Faults
  start: () => Promise<void>
  close: () => void
  /**
   * The protocol at a path below `path`, empty or with a slash in front; undefined where there is
   * nothing.
   * @param url of the chain itself
   */
  face: (below: string, url: string) => Promise<RpcFace | undefined>
  endpoints: (url: string) => Endpoint[]
  info: () => Promise<ChainInfo>
  /** The address of a key: 32 bytes, which it follows from. */
  addressOf: (secret: Uint8Array) => Promise<string>
  /** Everything that the block of a height paid; undefined where the chain is not as high. */
  paymentsIn: (height: number) => Promise<Payment[] | undefined>
  /** Pays, and makes a block of it. @returns the transaction's hash */
  fund: (order: FundOrder) => Promise<string>
  /**
   * @param options as the operator wrote them: `address` gets the coinbase, `seconds` move the
   *   time of the first block
   */
  mine: (blocks: number, options: { address: unknown; seconds: unknown }) => Promise<Head>
  /** Whether no block comes by itself; commands make them as ever. */
  halt: (halted: boolean) => void
  /**
   * The last `depth` blocks give way to `depth + 1` empty ones; their transactions wait again
   * unless dropped.
   */
  reorg: (depth: number, drop: boolean) => Promise<Head>
  /**
   * Blocks leave out what pays less than a rate, as the operator wrote it, in the chain's own unit;
   * "0" ends it.
   */
  congest: (rate: unknown) => Promise<void>
  /** Moves the time of its blocks forward for good, and shows it in one. */
  advance?: (ms: number) => Promise<Head & { time: number }>
  /** The node forgets a transaction that waits. */
  drop?: (hash: unknown) => Promise<void>
  /** Makes a payment in a form that only this chain has. */
  special?: (order: SpecialOrder) => Promise<{ hash: string }>
  /** Where the local contract of an asset stands, or would: it follows from the asset's name. */
  tokenAddress?: (asset: string) => string
}
