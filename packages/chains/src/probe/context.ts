import type { ChainClient, Fetch, RpcEndpoint } from '../rpc.ts'
import type { Asset, Network } from '../types.ts'
import type { BlockMark } from './history-depth.ts'
import type { Report } from './report.ts'

/** Input of a family's checks. */
export interface ProbeContext {
  network: Network
  assets: readonly Asset[]
  endpoint: RpcEndpoint
  /** Counts and times every request. */
  fetch: Fetch
  report: Report
}

/** Checks of one family. */
export interface FamilyProbe {
  client(context: Pick<ProbeContext, 'network' | 'assets' | 'endpoint' | 'fetch'>): ChainClient
  /**
   * Runs all checks that follow the check of the network's identity.
   * @returns the newest block; null if it cannot be read, in which case nothing more was checked
   */
  run(context: ProbeContext): Promise<BlockMark | null>
}

export const NEEDED = 'use an endpoint that serves it'
