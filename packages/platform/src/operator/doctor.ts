import { ChainError, loadRegistry, type Registry, type RpcEndpoint } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import { asInstalled } from '@custody/chains/terminal'
import { systemEnvironment } from '../environment.ts'
import { localEndpoints } from '../app/local.ts'
import { identityFolder } from '../data-dir.ts'
import { connectAll, endpointNames } from '../app/connect.ts'
import type { ChainContext } from '../engine/chain.ts'
import { Networks } from '../engine/networks.ts'
import { isOpen } from '../assets/find-asset.ts'
import { coinsInUse, diagnosePrices, priceLines } from '../prices/coverage.ts'
import { priceSources, pricesInstallation } from '../prices/settings.ts'
import { readSettings, type Settings } from '../settings/settings.ts'
import { failingLine, type FailingLoop } from '../engine/loop-health.ts'
import packageFile from '../../package.json' with { type: 'json' }
import { callPlatform, PlatformAway } from './connect.ts'
import { banLine, diagnoseBans } from './doctor-bans.ts'
import { certificateLines, diagnoseCertificates } from './doctor-certificates.ts'
import { askDatabase, databaseFindings, type DatabaseFacts } from './doctor-database.ts'
import { diagnoseDisk } from './doctor-disk.ts'
import { findingLine, ok, type Finding } from './doctor-findings.ts'
import { askLocalChains, notRunning, type LocalChains } from './doctor-local.ts'
import { diagnoseNodes } from './doctor-nodes.ts'
import { diagnosePublic } from './doctor-public.ts'

export interface Diagnosis {
  network: string
  /**
   * `not started`, `not running`: local chains only. A chain that is not started starts with its
   * first use, and a diagnosis does not start it.
   */
  state:
    | 'ok'
    | 'not started'
    | 'not running'
    | 'not configured'
    | 'retired'
    | 'wrong network'
    | 'unreachable'
  host: string | null
  height: number | null
  milliseconds: number | null
  advice: string | null
  /**
   * Functions that the endpoint does not support and the platform works without, and functions that
   * are disabled on the network.
   */
  limits: string[]
}

const WORDS: Record<string, string> = {
  'wrong network': 'the endpoint serves another chain: correct its URL',
  unreachable:
    'check the URL, the credentials and the firewall; a provider may limit requests; "npx custody probe" checks it completely',
}

/**
 * Returns a chain context without database and signer nodes, which may not exist: only the
 * endpoints are checked.
 */
function withoutPlatform(registry: Registry): ChainContext {
  const nobody = () => Promise.reject(new Error('the doctor queries only endpoints'))
  return {
    registry,
    environment: systemEnvironment(),
    keys: { get: nobody },
    addresses: { omnibus: nobody, change: nobody },
    database: {
      query: nobody,
      one: nobody,
      now: () => new Date(),
      emit: () => undefined,
      tellAudit: () => undefined,
    },
  }
}

/** Returns one line for the result of an endpoint. */
export function diagnosisLine(each: Omit<Diagnosis, 'limits'>): string {
  const seen =
    each.state === 'ok'
      ? `${each.host}, block ${each.height}, ${each.milliseconds} ms`
      : (each.advice ?? '')
  return `${each.network.padEnd(7)} ${each.state.padEnd(15)} ${seen}`
}

/** Returns the number of networks, each of which may have several endpoints. */
const count = (of: readonly Diagnosis[]): number => new Set(of.map(({ network }) => network)).size

/** Returns a line for each asset of a network for which no wallets and addresses can be created. */
const closedAssets = (settings: Settings, registry: Registry, network: string): string[] =>
  registry
    .assetsOf(network)
    .filter((asset) => !isOpen({ settings }, asset))
    .map(
      ({ asset_name, status, status_since: since, status_reason: reason }) =>
        `${asset_name} is ${status} since ${since}: ${reason}. No new wallets and addresses can be created; the balance can be sent`,
    )

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
}

/**
 * Reads the state of a running platform's database and prices; null if no platform runs with this
 * data folder.
 */
async function askPlatform(home: string): Promise<PlatformFacts | null> {
  try {
    return (await callPlatform(home, 'doctor', {})) as unknown as {
      database: DatabaseFacts
      unpriced: string[]
    }
  } catch (error) {
    return error instanceof PlatformAway ? null : { database: { error }, unpriced: [] }
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
    settings.network === 'local' && !isRunning
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
            'the embedded database runs with the platform: start it, and run this command again',
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
  ]
}

const LOCAL_START = 'the local chains run with "npm start"'

/**
 * Returns the known result for a local network without a query to its chain; null: the chain runs
 * and is queried.
 */
function withoutAsking(
  local: LocalChains | null,
  network: string,
): Pick<Diagnosis, 'state' | 'advice'> | null {
  if (local === null) return null
  if (local.state === 'away') return { state: 'not running', advice: LOCAL_START }
  if (local.state === 'failed')
    return { state: 'unreachable', advice: `${local.reason}; ${LOCAL_START}` }
  return local.started.has(network)
    ? null
    : { state: 'not started', advice: 'it starts with its first use' }
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
  const registry = loadRegistry(settings.network)
  const platform = await askPlatform(settings.home)
  const local =
    settings.network === 'local' ? await askLocalChains(settings, platform !== null) : null
  const devnetUrl = local?.state === 'running' ? local.url : null
  const endpoints =
    devnetUrl === null ? settings.endpoints : localEndpoints(devnetUrl, registry.networks)
  const folder = identityFolder(settings.home)
  const context = withoutPlatform(registry)
  const sources = priceSources(
    pricesInstallation(settings.prices, devnetUrl, registry),
    systemEnvironment(),
    fetch,
  )
  // If the local chains do not respond, their prices are unavailable too, and no public source is
  // queried in their place.
  const arePricesAsked = local === null || local.state === 'running'
  const diagnosing = Promise.all([
    diagnoseCertificates(folder),
    diagnoseBans(folder),
    diagnoseLoops(settings.home),
    diagnosePrices(
      sources,
      arePricesAsked ? coinsInUse(registry, (code) => endpoints[code] !== undefined) : [],
    ),
    diagnoseHosts(settings, folder, platform),
  ])
  const each = registry.networks.flatMap(({ code, status }) => {
    const { endpoints: own = [] } = endpoints[code] ?? {}
    const names = endpointNames(own)
    const none: { endpoint: RpcEndpoint | undefined; host: string }[] = [
      { endpoint: undefined, host: '' },
    ]
    const several = own.map((endpoint, at) => ({ endpoint, host: names[at] as string }))
    return (several.length === 0 ? none : several).map((one) => ({ code, status, ...one }))
  })
  const matches = await Promise.all(
    each.map(async ({ code, status, endpoint, host }): Promise<Diagnosis> => {
      const closed = closedAssets(settings, registry, code)
      if (!endpoint && status?.state === 'retired') {
        return {
          network: code,
          state: 'retired',
          host: null,
          height: null,
          milliseconds: null,
          limits: [],
          advice: `since ${status.since}: ${status.reason}`,
        }
      }
      const existing = withoutAsking(local, code)
      if (existing !== null)
        return {
          network: code,
          host: null,
          height: null,
          milliseconds: null,
          limits: closed,
          ...existing,
        }
      const networks = new Networks(
        endpoint
          ? connectAll(context, { [code]: { endpoints: [endpoint], quorum: 1 } }, fetch)
          : [],
      )
      if (!endpoint || !networks.has(code)) {
        return {
          network: code,
          state: 'not configured',
          host: null,
          height: null,
          milliseconds: null,
          limits: [],
          advice: `add networks.${code}.url to custody.config.json to enable it`,
        }
      }
      const started = performance.now()
      try {
        await networks.client(code).probe()
        const { height } = await networks.client(code).tip()
        const milliseconds = Math.round(performance.now() - started)
        // The block is read as a scan does it, so that the error names a missing field.
        await networks.client(code).block(height)
        const limits = [...((await networks.client(code).limits?.()) ?? []), ...closed]
        return { network: code, state: 'ok', host, height, milliseconds, advice: null, limits }
      } catch (error) {
        const state =
          error instanceof ChainError && error.code === 'WRONG_NETWORK'
            ? 'wrong network'
            : 'unreachable'
        return {
          network: code,
          state,
          host,
          height: null,
          milliseconds: null,
          limits: closed,
          advice: `${reasonOf(error)}; ${asInstalled(settings.network === 'local' ? LOCAL_START : (WORDS[state] as string))}`,
        }
      }
    }),
  )
  const configured = matches.filter(
    ({ state }) => state !== 'not configured' && state !== 'retired',
  )
  const [certificates, bans, loops, prices, ofHosts] = await diagnosing
  const findings = local?.state === 'away' ? [notRunning(), ...ofHosts] : ofHosts
  const unpriced = platform?.unpriced ?? []
  const isFine = new Set<Diagnosis['state']>(['ok', 'not started', 'not running'])
  const isExpired = certificates.some(({ state }) => state === 'expired')
  const isWell =
    configured.length > 0 &&
    configured.every(({ state }) => isFine.has(state)) &&
    !isExpired &&
    bans.length === 0 &&
    loops.length === 0 &&
    prices.missing.length === 0 &&
    prices.stale.length === 0 &&
    unpriced.length === 0 &&
    findings.every(({ level }) => level !== 'error')
  const text = [
    `${settings.network}: ${count(configured)} of ${count(matches.filter(({ state }) => state !== 'retired'))} networks configured`,
    ...matches
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
          `prices  the running platform has no current price of ${unpriced.join(', ')}: its log says which source fails and why`,
        ]),
    ...(configured.length === 0 ? ['no endpoint is configured: see docs/mainnet.md'] : []),
  ]
  return {
    result: {
      ok: isWell,
      networks: matches,
      findings,
      certificates,
      bans,
      loops,
      prices,
      unpriced,
    },
    text,
    exitCode: isWell ? 0 : 1,
  }
}
