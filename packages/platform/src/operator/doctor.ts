import { ChainError, loadRegistry, type Registry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import { systemEnvironment } from '../environment.ts'
import { devnetUrlOf, localEndpoints } from '../app/local.ts'
import { identityFolder } from '../home.ts'
import { connectAll } from '../app/connect.ts'
import type { ChainContext } from '../engine/chain.ts'
import { Networks } from '../engine/networks.ts'
import { isOpen } from '../assets/find-asset.ts'
import { coinsInUse, diagnosePrices, priceLines } from '../prices/coverage.ts'
import { priceSources, pricesInstallation } from '../prices/settings.ts'
import { readSettings, type Settings } from '../settings/settings.ts'
import { failingLine, type FailingLoop } from '../engine/loop-health.ts'
import { callPlatform, PlatformAway } from './connect.ts'
import { banLine, diagnoseBans } from './doctor-bans.ts'
import { certificateLines, diagnoseCertificates } from './doctor-certificates.ts'

export interface Diagnosis {
  network: string
  state: 'ok' | 'not configured' | 'retired' | 'wrong network' | 'unreachable'
  host: string | null
  height: number | null
  milliseconds: number | null
  advice: string | null
  /** What the endpoint does not serve and is done without, and what is closed on the network. */
  limits: string[]
}

const WORDS: Record<string, string> = {
  'wrong network': 'the endpoint serves another chain: correct its URL',
  unreachable: 'check the URL, the credentials and the firewall; a provider may limit requests; "npx custody probe" checks it completely',
}

/** Only the endpoints are asked: there may be no database and no signer node to ask. */
function withoutPlatform(registry: Registry): ChainContext {
  const nobody = () => Promise.reject(new Error('the doctor asks endpoints alone'))
  return {
    registry, environment: systemEnvironment(), keys: { get: nobody }, addresses: { omnibus: nobody, change: nobody },
    database: { query: nobody, one: nobody, now: () => new Date(), tell: () => undefined },
  }
}

/** One line for what an endpoint said. */
export function diagnosisLine(each: Omit<Diagnosis, 'limits'>): string {
  const seen = each.state === 'ok' ? `${each.host}, block ${each.height}, ${each.milliseconds} ms` : (each.advice ?? '')
  return `${each.network.padEnd(7)} ${each.state.padEnd(15)} ${seen}`
}

/** A line for each asset of a network of which no wallet and address is made. */
const closedAssets = (settings: Settings, registry: Registry, network: string): string[] => registry.assetsOf(network)
  .filter((asset) => !isOpen({ settings }, asset))
  .map(({ asset_name, status, status_since: since, status_reason: reason }) =>
    `${asset_name} is ${status} since ${since}: ${reason}. No new wallets and addresses are made, what is held can be sent`)

/** The loops that have failed for minutes in the platform of this home, such as the scan of a network; none where it does not run. */
async function diagnoseLoops(home: string): Promise<FailingLoop[]> {
  try {
    return (await callPlatform(home, 'failing loops', {}))['failing'] as FailingLoop[]
  } catch (error) {
    if (error instanceof PlatformAway) return []
    return [{ loop: 'platform', since: Date.now(), reason: reasonOf(error) }]
  }
}

/**
 * Checks each configured endpoint, the loops of the running platform, the TLS certificates of platform and signer nodes, whether a
 * node is banned, and whether each coin in use has a price. Works with and without a running platform.
 */
export async function doctor(): Promise<{ result: Record<string, unknown>; text: string[]; exitCode: number }> {
  const settings = readSettings()
  const registry = loadRegistry(settings.network)
  const devnetUrl = settings.network === 'local' ? settings.localChains ?? await devnetUrlOf(settings.home) : null
  const endpoints = devnetUrl === null ? settings.endpoints : localEndpoints(devnetUrl, registry.networks)
  const folder = identityFolder(settings.home)
  const sources = priceSources(pricesInstallation(settings.prices, devnetUrl, registry), systemEnvironment(), fetch)
  const diagnosing = Promise.all([
    diagnoseCertificates(folder), diagnoseBans(folder), diagnoseLoops(settings.home),
    diagnosePrices(sources, coinsInUse(registry, (code) => endpoints[code] !== undefined)),
  ])
  const networks = new Networks(connectAll(withoutPlatform(registry), endpoints, fetch))
  const found = await Promise.all(registry.networks.map(async ({ code, status }): Promise<Diagnosis> => {
    const endpoint = endpoints[code]
    const closed = closedAssets(settings, registry, code)
    if (!endpoint && status?.state === 'retired') {
      return {
        network: code, state: 'retired', host: null, height: null, milliseconds: null, limits: [],
        advice: `since ${status.since}: ${status.reason}`,
      }
    }
    if (!endpoint || !networks.has(code)) {
      return {
        network: code, state: 'not configured', host: null, height: null, milliseconds: null, limits: [],
        advice: `add networks.${code}.url to custody.config.json to enable it`,
      }
    }
    // A URL may hold a provider's key: only the host is shown.
    const host = new URL(endpoint.url).host
    const started = performance.now()
    try {
      await networks.client(code).probe()
      const { height } = await networks.client(code).tip()
      const milliseconds = Math.round(performance.now() - started)
      // As a scan reads it: a field that is missing is named.
      await networks.client(code).block(height)
      const limits = [...await networks.client(code).limits?.() ?? [], ...closed]
      return { network: code, state: 'ok', host, height, milliseconds, advice: null, limits }
    } catch (error) {
      const state = error instanceof ChainError && error.code === 'WRONG_NETWORK' ? 'wrong network' : 'unreachable'
      return {
        network: code, state, host, height: null, milliseconds: null, limits: closed,
        advice: `${reasonOf(error)}; ${settings.network === 'local' ? 'the local chains run with "npm start"' : WORDS[state]}`,
      }
    }
  }))
  const configured = found.filter(({ state }) => state !== 'not configured' && state !== 'retired')
  const [certificates, bans, loops, prices] = await diagnosing
  const isExpired = certificates.some(({ state }) => state === 'expired')
  const ok = configured.length > 0 && configured.every(({ state }) => state === 'ok')
    && !isExpired && bans.length === 0 && loops.length === 0 && prices.missing.length === 0
  const text = [
    `${settings.network}: ${configured.length} of ${found.filter(({ state }) => state !== 'retired').length} networks configured`,
    ...found.flatMap((each) => [diagnosisLine(each), ...each.limits.map((limit) => `        ${each.network}: ${limit}`)]),
    ...certificates.flatMap(certificateLines),
    ...bans.map(banLine),
    ...loops.map((each) => failingLine(each, Date.now())),
    ...priceLines(prices),
    ...(configured.length === 0 ? ['no endpoint is configured: see docs/mainnet.md'] : []),
  ]
  return { result: { ok, networks: found, certificates, bans, loops, prices }, text, exitCode: ok ? 0 : 1 }
}
