import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { SignerNodes } from '../../../core/signing/nodes.ts'
import { heardStatus } from '../../../core/signing/status.ts'

/**
 * A ban of one node by another. `confirmed`: the node `by` reports the ban itself; otherwise it is
 * known only from the report that another node received.
 */
export interface BanDiagnosis {
  by: number
  banned: number
  confirmed: boolean
}

/**
 * Reads which signer nodes have banned which others. Connects to each node.
 * @param folder the platform's folder with tls.key, tls.crt and peers.json
 * @returns an empty list if the folder is not set up
 */
export async function diagnoseBans(
  folder: string,
  clock: () => number = Date.now,
): Promise<BanDiagnosis[]> {
  if (!existsSync(join(folder, 'peers.json'))) return []
  const signers = new SignerNodes(folder, clock)
  try {
    const matches = new Map<string, BanDiagnosis>()
    const add = (each: BanDiagnosis): void => {
      matches.set(`${each.by}/${each.banned}`, each)
    }
    const nodes = await heardStatus(signers)
    for (const { status } of nodes)
      for (const { node, by } of status?.banReports ?? [])
        add({ by, banned: node, confirmed: false })
    for (const { node, status } of nodes)
      for (const banned of status?.bans ?? []) add({ by: node, banned, confirmed: true })
    return [...matches.values()].sort((a, b) => a.by - b.by || a.banned - b.banned)
  } finally {
    signers.close()
  }
}

export function banLine({ by, banned, confirmed }: BanDiagnosis): string {
  const fact = confirmed
    ? `has banned signer ${banned}`
    : `is reported to have banned signer ${banned}`
  return `signer ${by} ${fact}: stop withdrawals and move the funds to a new installation (docs/production/replacing-a-banned-node.md)`
}
