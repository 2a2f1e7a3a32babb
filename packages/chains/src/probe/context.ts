import type { ChainClient, Fetch, RpcEndpoint } from '../rpc.ts'
import type { Asset, Network } from '../types.ts'
import type { BlockMark } from './history-depth.ts'
import type { Report } from './report.ts'

/** What a family's checks are given. */
export interface ProbeContext {
  network: Network
  assets: readonly Asset[]
  endpoint: RpcEndpoint
  /** Counted and timed. */
  fetch: Fetch
  report: Report
}

/** How one family is checked. */
export interface FamilyProbe {
  client(context: Pick<ProbeContext, 'network' | 'assets' | 'endpoint' | 'fetch'>): ChainClient
  /**
   * All checks after the network's identity. @returns the newest block; null: it cannot be read,
   * and nothing more was checked
   */
  run(context: ProbeContext): Promise<BlockMark | null>
}

export const NEEDED = 'use an endpoint that serves it'
