import type { Registry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Database } from '../../core/database/pool.ts'
import type { Chain } from '../../core/engine/chain.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { accountDifferences } from './accounts.ts'
import { atMost } from './at-most.ts'
import { addDust, type Dust } from './dust.ts'
import type { Difference, NotCounted } from './report.ts'
import { utxoDifferences } from './utxo.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

/** Number of networks that are compared concurrently. */
const NETWORKS_AT_ONCE = 4
/** Maximum number of balances that are compared again alone; if more differ, all are compared again. */
const AGAIN_MAX = 10_000

/** Result of the comparison of one network. */
export interface ComparedNetwork {
  code: string
  /** Null if the comparison failed. */
  counts: { addresses: number; coins: number } | null
  notCounted: NotCounted[]
  differences: Difference[]
  /** Balances that differ, as `ADDRESS ASSET`; null: everything must be compared again. */
  differing: readonly string[] | null
  dust: Dust
}

/**
 * Compares each network with the ledger, in the order of the configuration. A network that fails is
 * a difference of its own.
 * @param before results of the previous comparison: only what differed there is compared again
 * @param signal ends the comparison
 * @throws the signal's reason after it was aborted
 */
export function compareNetworks(
  services: Services,
  before: readonly ComparedNetwork[],
  signal: AbortSignal | undefined,
): Promise<ComparedNetwork[]> {
  return atMost(NETWORKS_AT_ONCE, services.networks.all(), async (chain) => {
    signal?.throwIfAborted()
    const last = before.find(({ code }) => code === chain.network.code)
    return last?.differences.length === 0 ? last : compare(services, chain, last, signal)
  })
}

async function compare(
  services: Services,
  chain: Chain,
  last: ComparedNetwork | undefined,
  signal: AbortSignal | undefined,
): Promise<ComparedNetwork> {
  const { network } = chain
  const differences: Difference[] = []
  const counted = last?.counts && last.differing && last.differing.length <= AGAIN_MAX
  try {
    if (counted) {
      const { differing, dust } = await accountDifferences(services, chain, differences, {
        balances: new Set(last.differing),
        signal,
      })
      return { ...last, differences, differing, dust: addDust(last.dust, dust) }
    }
    const { notCounted, differing, dust, ...counts } = chain.coins
      ? {
          ...(await utxoDifferences(services, network, chain.coins, differences)),
          differing: null,
          dust: new Map(),
        }
      : await accountDifferences(services, chain, differences, { signal })
    return { code: network.code, counts, notCounted, differences, differing, dust }
  } catch (error) {
    signal?.throwIfAborted()
    differences.push({
      kind: 'unknown',
      network: network.code,
      workspace: '',
      subject: 'endpoint',
      asset: '',
      ledger: '',
      chain: '',
      note: reasonOf(error),
    })
    return {
      code: network.code,
      counts: null,
      notCounted: [],
      differences,
      differing: null,
      dust: new Map(),
    }
  }
}
