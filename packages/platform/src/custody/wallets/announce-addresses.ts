import type { Registry } from '@custody/chains'
import type { Database } from '../../core/database/pool.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import { NodeRefused, NodeUnavailable, type SignerNodes } from '../../core/signing/nodes.ts'
import type { Logger } from 'pino'

interface Services {
  database: Database
  registry: Registry
  signers: Pick<SignerNodes, 'peers' | 'call'>
  log: Pick<Logger, 'warn'>
}

const EVERY_MS = 300_000
const TIMEOUT_MS = 5000
/** The nodes count this number of addresses of each sub-account as own without an announcement. */
const UNANNOUNCED = 100
/** Addresses are announced in steps, ahead of their use. */
const STEP = 100

interface Highest {
  workspace: string
  network: string
  sub_account: number
  highest: number
}

/**
 * Creates the loop that announces the deposit addresses of each sub-account to the signer nodes, so
 * that rules of policies about own addresses match them, whatever the platform says later.
 */
export function announceAddressesLoop({ database, registry, signers, log }: Services): Loop {
  /** Marks that a node has recorded. */
  const announced = new Map<string, number>()
  const announce = async (node: number, { highest, ...place }: Highest): Promise<void> => {
    const name = JSON.stringify([node, place])
    if (highest < (announced.get(name) ?? UNANNOUNCED)) return
    const below = (Math.floor(highest / STEP) + 2) * STEP
    try {
      await signers.call(node, 'POST', '/addresses', { ...place, below }, TIMEOUT_MS)
      announced.set(name, below)
    } catch (error) {
      if (error instanceof NodeUnavailable) return
      if (!(error instanceof NodeRefused)) throw error
      log.warn({ node, ...place, below, reason: error.message }, 'addresses were not announced')
    }
  }
  return {
    name: 'address announcements',
    everyMs: EVERY_MS,
    async run() {
      const networks = registry.networks.map(({ code }) => code)
      const all = await database.query<Highest>(
        `select w.name workspace, n.code network, s.path_index sub_account, d.path_index highest
         from sub_accounts s join workspaces w on w.id = s.workspace_id
           cross join unnest($1::text[]) n(code)
           cross join lateral (select path_index from chain_addresses c
             where c.network = n.code and c.workspace_id = s.workspace_id
               and c.sub_account_id = s.id and c.path_index < 2147483647
             order by c.path_index desc limit 1) d
         where d.path_index >= $2`,
        [networks, UNANNOUNCED],
      )
      for (const each of all) for (const { node } of signers.peers) await announce(node, each)
      return false
    },
  }
}
