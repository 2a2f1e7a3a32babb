import { heardStatus, type NodeStatus } from '../signing/status.ts'
import type { Readiness, Services } from '../engine/services.ts'

export const SIGNERS_NEEDED = 2

/**
 * Ready when POST /transaction would be accepted: the database answers, is not older than the nodes' records, and there is
 * room on the disk. Nodes and chains may be away; transfers then wait, and `checks.signing` says so.
 */
export async function readiness(services: Services): Promise<Readiness> {
  const [answers, nodes] = await Promise.all([
    services.database.query('select 1').then(() => true, () => false), heardStatus(services.signers),
  ])
  const { because: held, shortage } = services.hold
  const able = nodes.filter(canSign).length
  const signing = able >= SIGNERS_NEEDED
  return {
    ready: answers && held === null && shortage === null,
    signing,
    checks: {
      database: answers ? 'ok' : 'cannot be reached',
      records: held ?? 'ok',
      disk: shortage ?? 'ok',
      signing: signing
        ? 'ok'
        : `dead: ${able} of ${nodes.length} signer nodes can sign, ${SIGNERS_NEEDED} are needed; transfers are accepted and wait`,
      ...Object.fromEntries(nodes.map((node) => [`signer_${node.node}`, words(node)])),
    },
  }
}

export const canSign = ({ status }: NodeStatus): boolean => status !== null && status.ready

function words({ status }: NodeStatus): string {
  if (status === null) return 'cannot be reached'
  return status.ready ? 'ok' : 'waits for its restoration'
}
