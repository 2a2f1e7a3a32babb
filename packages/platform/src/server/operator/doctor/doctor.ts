import { hasLocalChains } from '@custody/chains/mode'
import { loadRegistry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import { systemEnvironment } from '../../../core/environment.ts'
import { localEndpoints } from '../../app/local/local.ts'
import { identityFolder, runsNodes } from '../../../core/data-dir.ts'
import {
  coinsInUse,
  diagnosePrices,
  priceLines,
  type PriceDiagnosis,
} from '../../../custody/prices/coverage.ts'
import { priceSources, pricesInstallation } from '../../../custody/prices/settings.ts'
import { readSettings, type Settings } from '../../../core/settings/settings.ts'
import { failingLine, type FailingLoop } from '../../../core/engine/loops/health.ts'
import packageFile from '../../../../package.json' with { type: 'json' }
import { callPlatform, PlatformAway } from '../connect.ts'
import { banLine, diagnoseBans, type BanDiagnosis } from './bans.ts'
import {
  certificateLines,
  diagnoseCertificates,
  type CertificateDiagnosis,
} from './certificates.ts'
import {
  askDatabase,
  databaseFindings,
  type ContractPaymentFacts,
  type DatabaseFacts,
} from './database.ts'
import { diagnoseDisk } from './disk.ts'
import { findingLine, ok, problem, type Finding } from './findings.ts'
import { askLocalChains, notRunning } from './local.ts'
import { diagnoseNetworks, diagnosisLine, type Diagnosis } from './networks.ts'
import { diagnoseNodes } from './nodes.ts'
import { diagnosePublic } from './public.ts'

/** Returns the number of networks, each of which may have several endpoints. */
const count = (of: readonly Diagnosis[]): number => new Set(of.map(({ network }) => network)).size

/**
 * Returns the loops, such as the scan of a network, that have failed for minutes in the running
 * platform; an empty list if it does not run.
 */
async function diagnoseLoops(home: string): Promise<FailingLoop[]> {
  try {
    return (await callPlatform(home, 'failing loops', {}))['failing'] as FailingLoop[]
  } catch (error) {
    if (error instanceof PlatformAway) return []
    return [{ loop: 'platform', since: Date.now(), reason: reasonOf(error) }]
  }
}

/** State that a running platform reports. */
interface PlatformFacts {
  database: DatabaseFacts | { error: unknown }
  unpriced: string[]
  contradicted: { network: string; reason: string }[]
  contract_payments: ContractPaymentFacts[]
}

/**
 * Reads the state of a running platform's database and prices; null if no platform runs with this
 * data folder.
 */
async function readPlatformFacts(home: string): Promise<PlatformFacts | null> {
  try {
    return (await callPlatform(home, 'doctor', {})) as unknown as PlatformFacts
  } catch (error) {
    return error instanceof PlatformAway
      ? null
      : { database: { error }, unpriced: [], contradicted: [], contract_payments: [] }
  }
}

/** Checks signer nodes, database, disk and public certificate. */
async function diagnoseHosts(
  settings: Settings,
  folder: string,
  platform: PlatformFacts | null,
): Promise<Finding[]> {
  const isRunning = platform !== null
  // The local nodes and the embedded database run with the platform.
  const nodes =
    runsNodes(settings.network) && !isRunning
      ? []
      : await diagnoseNodes(folder, {
          mode: settings.network,
          version: packageFile.version,
          clock: Date.now,
        })
  const database = isRunning
    ? databaseFindings(platform.database, true)
    : settings.databaseUrl === null
      ? [
          ok(
            'database',
            'the embedded database runs only while the platform runs: start the platform, and run this command again',
          ),
        ]
      : databaseFindings(
          await askDatabase(settings.databaseUrl, settings.databasePooled).catch(
            (error: unknown) => ({ error }),
          ),
          false,
        )
  return [
    ...nodes,
    ...database,
    ...diagnoseDisk('the data folder', settings.home),
    ...(settings.walArchive === null ? [] : diagnoseDisk('the archived log', settings.walArchive)),
    ...(await diagnosePublic(settings.publicUrl)),
    ...(platform?.contradicted ?? []).map(({ network, reason }) =>
      problem(
        'platform',
        `${network}: ${reason}`,
        'compare the block with a block explorer (docs/mainnet.md)',
      ),
    ),
    ...(platform?.contract_payments ?? []).flatMap(({ network, paused }) =>
      paused.map(({ workspace, reason }) =>
        problem(
          'platform',
          `${network}: coins that contracts paid to ${workspace} are not credited: ${reason}`,
          'end the cause (docs/production/runbooks.md)',
        ),
      ),
    ),
  ]
}

/** Results of all checks. `unpriced`: coins without a current price in the running platform. */
interface Diagnoses {
  networks: Diagnosis[]
  findings: Finding[]
  certificates: CertificateDiagnosis[]
  bans: BanDiagnosis[]
  loops: FailingLoop[]
  prices: PriceDiagnosis
  unpriced: string[]
  /** Of the running platform. */
  contract_payments: ContractPaymentFacts[]
}

/** Returns the results without those of networks that are not configured or are retired. */
const configuredOf = (networks: readonly Diagnosis[]): Diagnosis[] =>
  networks.filter(({ state }) => state !== 'not configured' && state !== 'retired')

const FINE: ReadonlySet<Diagnosis['state']> = new Set(['ok', 'not started', 'not running'])

/** Returns whether at least one network is configured and no check has found a problem. */
function isWell(diagnoses: Diagnoses): boolean {
  const { findings, certificates, bans, loops, prices, unpriced } = diagnoses
  const configured = configuredOf(diagnoses.networks)
  const isExpired = certificates.some(({ state }) => state === 'expired')
  return (
    configured.length > 0 &&
    configured.every(({ state }) => FINE.has(state)) &&
    !isExpired &&
    bans.length === 0 &&
    loops.length === 0 &&
    prices.missing.length === 0 &&
    prices.stale.length === 0 &&
    unpriced.length === 0 &&
    findings.every(({ level }) => level !== 'error')
  )
}

/** Returns the lines that the command prints. */
function linesOf(mode: Settings['network'], diagnoses: Diagnoses): string[] {
  const { networks, findings, certificates, bans, loops, prices, unpriced } = diagnoses
  const configured = configuredOf(networks)
  return [
    `${mode}: ${count(configured)} of ${count(networks.filter(({ state }) => state !== 'retired'))} networks configured`,
    ...networks
      .filter(({ state }) => state !== 'not running')
      .flatMap((each) => [
        diagnosisLine(each),
        ...each.limits.map((limit) => `        ${each.network}: ${limit}`),
      ]),
    ...findings.map(findingLine),
    ...certificates.flatMap(certificateLines),
    ...bans.map(banLine),
    ...loops.map((each) => failingLine(each, Date.now())),
    ...priceLines(prices),
    ...(unpriced.length === 0
      ? []
      : [
          `prices  the running platform has no current price of ${unpriced.join(', ')}: its log contains the failing source and the reason`,
        ]),
    ...(configured.length === 0 ? ['no endpoint is configured: see docs/mainnet.md'] : []),
  ]
}

/** Runs all checks concurrently. */
async function diagnose(settings: Settings): Promise<Diagnoses> {
  const registry = loadRegistry(settings.network)
  const platform = await readPlatformFacts(settings.home)
  const local = hasLocalChains(settings.network)
    ? await askLocalChains(settings, platform !== null)
    : null
  const devnetUrl = local?.state === 'running' ? local.url : null
  const endpoints =
    devnetUrl === null ? settings.endpoints : localEndpoints(devnetUrl, registry.networks)
  const folder = identityFolder(settings.home)
  const sources = priceSources(
    pricesInstallation(settings.prices, devnetUrl, registry),
    systemEnvironment(),
    fetch,
  )
  // If the local chains do not respond, their prices are unavailable too, and no public source is
  // queried in their place.
  const arePricesQueried = local === null || local.state === 'running'
  const diagnosing = Promise.all([
    diagnoseCertificates(folder),
    diagnoseBans(folder),
    diagnoseLoops(settings.home),
    diagnosePrices(
      sources,
      arePricesQueried ? coinsInUse(registry, (code) => endpoints[code] !== undefined) : [],
    ),
    diagnoseHosts(settings, folder, platform),
  ])
  const networks = await diagnoseNetworks({ settings, registry, endpoints, local })
  const [certificates, bans, loops, prices, ofHosts] = await diagnosing
  const findings = local?.state === 'away' ? [notRunning(), ...ofHosts] : ofHosts
  const unpriced = platform?.unpriced ?? []
  const { contract_payments = [] } = platform ?? {}
  return { networks, findings, certificates, bans, loops, prices, unpriced, contract_payments }
}

/**
 * Checks each configured endpoint, the loops of the running platform, the signer nodes, the
 * database, the free disk space, the TLS certificates of platform, signer nodes and public name,
 * whether a node is banned, and whether each coin in use has a price. Works with and without a
 * running platform.
 */
export async function doctor(): Promise<{
  result: Record<string, unknown>
  text: string[]
  exitCode: number
}> {
  const settings = readSettings()
  const diagnoses = await diagnose(settings)
  const hasPassed = isWell(diagnoses)
  return {
    result: { ok: hasPassed, ...diagnoses },
    text: linesOf(settings.network, diagnoses),
    exitCode: hasPassed ? 0 : 1,
  }
}
