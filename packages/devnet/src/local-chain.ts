import { RequestError } from './errors.ts'
import type { Faults } from './faults.ts'
import type { RpcApi } from './http-server.ts'

export interface Head {
  height: number
  hash: string
}

/** A token with a contract on a local chain. */
export interface LocalContract {
  asset: string
  address: string
  decimals: number
}

/**
 * A payment from the faucet in the operator's words. Each chain reads its own part and reports
 * errors in it.
 */
export interface FundOrder {
  asset: string
  address: unknown
  amount: unknown
  tag: unknown
  tokens: unknown
  delivered: unknown
}

/** A payment in a format that only some chains have, in the operator's words. */
export interface SpecialOrder {
  kind: unknown
  address: unknown
  amount: unknown
  tokens: unknown
  nft: unknown
  commitment: unknown
}

/**
 * Checks an order of a chain whose only special payments are those of contracts.
 * @throws RequestError
 */
export function onlyOfContract(code: string, kind: unknown, more: object): void {
  if (kind !== 'contract')
    throw new RequestError(`kind ${JSON.stringify(kind)} is unknown on ${code}: only contract`)
  if (Object.values(more).some((each) => each !== undefined))
    throw new RequestError(`tokens, nft and commitment are not supported on ${code}`)
}

/**
 * Payment of a transaction in a block to one address, in the asset's smallest unit. `index`
 * distinguishes several of one transaction.
 */
export interface Payment {
  hash: string
  index: number
  asset: string
  address: string
  tag: string | null
  amount: bigint
}

/** Fields of a fund request that only some chains support. */
export type FundExtra = 'tag' | 'tokens'

/** URL of a chain, or of one of its APIs, and a shell command for it. */
export interface Endpoint {
  protocol: string
  url: string
  websocket?: string
  example: string
}

/**
 * Status of a chain. A chain that was not used yet has no head, and reading the status does not
 * start it. `waiting`: number of transactions.
 */
export interface ChainInfo {
  head: Head | null
  waiting: number | null
  engine: string
  more: Record<string, unknown>
}

/**
 * One local network, as the HTTP server and the operator's commands use it. Every family implements
 * it in its own folder, and code outside of that folder does not depend on the family.
 *
 * A chain rejects an unsupported command with one sentence (RequestError). `advance`, `drop`,
 * `special` and `tokenAddress` are absent on chains that do not support them; the error of such a
 * command lists the chains that do.
 */
export interface LocalChain {
  /** Code of the network in the asset registry. */
  readonly code: string
  /** Path of its protocol on the port of the local chains. */
  readonly path: string
  /** Assets that can be funded here: the native coin, then the tokens. */
  readonly assets: readonly string[]
  readonly tokens: readonly LocalContract[]
  readonly fundExtras: readonly FundExtra[]
  /** The chain starts with the process and not on first use. */
  readonly isEager: boolean
  readonly faults: Faults
  start: () => Promise<void>
  close: () => void
  /**
   * Returns the RPC handler at a path below `path`, which is empty or begins with a slash;
   * undefined if there is none.
   * @param url of the chain itself
   * @param faults of the endpoint; by default {@link faults}
   */
  apiAt: (below: string, url: string, faults?: Faults) => Promise<RpcApi | undefined>
  endpoints: (url: string) => Endpoint[]
  info: () => Promise<ChainInfo>
  /** Returns the address of a key, given its 32-byte secret. */
  addressOf: (secret: Uint8Array) => Promise<string>
  /** Returns all payments of the block at a height; undefined above the head. */
  paymentsIn: (height: number) => Promise<Payment[] | undefined>
  /**
   * Makes a payment and a block with it.
   * @returns the transaction's hash
   */
  fund: (order: FundOrder) => Promise<string>
  /**
   * Produces blocks.
   * @param options in the operator's words: `address` receives the coinbase, `seconds` move the
   *   time of the first block
   */
  mine: (blocks: number, options: { address: unknown; seconds: unknown }) => Promise<Head>
  /** Stops or resumes automatic blocks; commands still produce blocks. */
  halt: (halted: boolean) => void
  /**
   * Replaces the last `depth` blocks by `depth + 1` empty ones. Their transactions return to the
   * mempool unless `drop` is set.
   */
  reorg: (depth: number, drop: boolean) => Promise<Head>
  /**
   * Makes blocks leave out transactions below a fee rate, which is the operator's text in the
   * chain's own unit; "0" ends it.
   */
  congest: (rate: unknown) => Promise<void>
  /** Moves the time of its blocks forward permanently, and produces a block with the new time. */
  advance?: (ms: number) => Promise<Head & { time: number }>
  /** Drops a waiting transaction. */
  drop?: (hash: unknown) => Promise<void>
  /** Makes a payment in a format that only this chain has. */
  special?: (order: SpecialOrder) => Promise<{ hash: string }>
  /**
   * Returns the address of an asset's local contract, deployed or not; it follows from the asset's
   * name.
   */
  tokenAddress?: (asset: string) => string
}
