import { hasRealCoins } from '@custody/chains/mode'
import { heardStatus, type NodeStatus } from '../../../core/signing/status.ts'
import { failingLine } from '../../../core/engine/loops/health.ts'
import { unpricedCoins } from '../../../custody/prices/coverage.ts'
import type { Readiness } from '../../../core/http/readiness.ts'
import { LIST_DAYS_MAX, type Sanctions } from '../../../custody/aml/ofac.ts'
import type { Settings } from '../../../core/settings/settings.ts'
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
  settings: Pick<Settings, 'network'>
  aml: { sanctions: Pick<Sanctions, 'list' | 'ageWhenLoadedDays'> }
}

export const SIGNERS_NEEDED = 2

/**
 * Returns the readiness. Ready means that POST /transaction would be accepted: the database
 * responds and is not older than the signer nodes' records, there is enough disk space, and on
 * mainnet a current list of sanctioned addresses was loaded. If
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
  const unscreened = withoutSanctions(services)
  return {
    ready: answers && held === null && shortage === null && unscreened === null,
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
      ...(hasRealCoins(services.settings.network) ? { sanctions: unscreened ?? 'ok' } : {}),
      prices: pricesLine(unpricedCoins(services)),
      ...Object.fromEntries(nodes.map((node) => [`signer_${node.node}`, words(node)])),
    },
  }
}

/**
 * Returns why transfers of this installation are not screened against a current list of sanctioned
 * addresses; null if they are, or if no real coins are moved. A list that was current when it was
 * loaded and has become old since does not stop the service; the alert about it is raised instead.
 */
function withoutSanctions(services: Services): string | null {
  if (!hasRealCoins(services.settings.network)) return null
  const { aml } = services
  const days = aml.sanctions.ageWhenLoadedDays
  if (days < LIST_DAYS_MAX) return null
  return `OFAC's list of ${aml.sanctions.list.published} was ${days} days old when it was loaded, and must be younger than ${LIST_DAYS_MAX}: download sdn_advanced.xml from OFAC and run \`custody aml refresh-ofac sdn_advanced.xml\``
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
