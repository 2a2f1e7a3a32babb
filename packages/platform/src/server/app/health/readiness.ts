import { heardStatus, type NodeStatus } from '../../../core/signing/status.ts'
import { failingLine } from '../../../core/engine/loops/health.ts'
import { unpricedCoins } from '../../../custody/prices/coverage.ts'
import type { Readiness } from '../../../core/http/readiness.ts'
import type { Environment } from '../../../core/environment.ts'
import type { Database } from '../../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../../core/engine/networks.ts'
import type { SignerNodes } from '../../../core/signing/nodes.ts'
import type { DatabaseHold } from '../../../core/engine/database-hold.ts'
import type { Prices } from '../../../custody/prices/prices.ts'
import { missingDuties, readRoleHealth } from './role-health.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  hold: DatabaseHold
  prices: Prices
}

export const SIGNERS_NEEDED = 2

/**
 * Returns the readiness. Ready means that POST /transaction would be accepted: the database
 * responds and is not older than the signer nodes' records, and there is enough disk space. If
 * signer nodes or chains are unreachable, transfers wait and `checks.signing` and `checks.loops`
 * report it; a problem of one network does not stop the service of the others.
 */
export async function readiness(services: Services): Promise<Readiness> {
  const [presence, nodes] = await Promise.all([
    readRoleHealth(services).catch(() => null),
    heardStatus(services.signers),
  ])
  const answers = presence !== null
  const absent = missingDuties(presence?.duties ?? [])
  const { because: held, shortage } = services.hold
  const able = nodes.filter(canSign).length
  const signing = able >= SIGNERS_NEEDED
  return {
    ready: answers && held === null && shortage === null,
    signing,
    attended: absent.size === 0,
    checks: {
      database: answers ? 'ok' : 'cannot be reached',
      records: held ?? 'ok',
      disk: shortage ?? 'ok',
      signing: signing
        ? 'ok'
        : `dead: ${able} of ${nodes.length} signer nodes can sign, ${SIGNERS_NEEDED} are required; transfers are accepted and wait`,
      worker: absent.has('worker')
        ? `${absent.get('worker')}; transfers are accepted and wait`
        : 'ok',
      scanner: absent.has('scanner')
        ? `${absent.get('scanner')}; deposits are not detected, and transfers are not confirmed`
        : 'ok',
      clocks: presence?.ahead ?? 'ok',
      loops:
        presence?.failing.map((each) => failingLine(each, services.environment.now())).join('; ') ||
        'ok',
      prices: pricesLine(unpricedCoins(services)),
      ...Object.fromEntries(nodes.map((node) => [`signer_${node.node}`, words(node)])),
    },
  }
}

export const canSign = ({ status }: NodeStatus): boolean => status !== null && status.ready

const pricesLine = (missing: readonly string[]): string =>
  missing.length === 0
    ? 'ok'
    : `no current price of ${missing.join(', ')}; transfers whose platform fee depends on it are refused, or charged the fixed fee`

function words({ status }: NodeStatus): string {
  if (status === null) return 'cannot be reached'
  return status.ready ? 'ok' : 'waits to be restored'
}
