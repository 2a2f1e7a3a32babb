import { hasLocalChains } from '@custody/chains/mode'
import { ChainError, type Network, type Registry, type RpcEndpoint } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import { asInstalled } from '@custody/chains/terminal'
import { systemEnvironment } from '../../../core/environment.ts'
import { connectAll, endpointNames } from '../../app/connect.ts'
import type { ChainContext } from '../../../core/engine/chain.ts'
import { Networks } from '../../../core/engine/networks.ts'
import { isOpen } from '../../../custody/assets/find-asset.ts'
import type { Settings } from '../../../core/settings/settings.ts'
import type { LocalChains } from './local.ts'

/**
 * Result of one endpoint, or of a network without an endpoint. `milliseconds`: time until the
 * endpoint had reported which functions it supports, and its height.
 */
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
    | 'behind'
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

const ADVICE: Record<string, string> = {
  behind:
    'transfers wait for an endpoint that is current; let the node finish, or configure another one. "npx custody endpoint trust NETWORK --for 1h" uses it regardless',
  'wrong network': 'the endpoint serves another network: correct its URL',
  unreachable:
    'check the URL, the credentials and the firewall; a provider may limit requests; "npx custody probe" checks it completely',
}

/**
 * Returns a chain context without database and signer nodes, which may not exist: only the
 * endpoints are checked.
 */
export function withoutPlatform(registry: Registry): ChainContext {
  const unavailable = () => Promise.reject(new Error('the doctor queries only endpoints'))
  return {
    registry,
    environment: systemEnvironment(),
    keys: { get: unavailable },
    addresses: { omnibus: unavailable, change: unavailable },
    database: {
      query: unavailable,
      // Nothing is known of what was read.
      one: () => Promise.resolve(undefined),
      now: () => new Date(),
      emit: () => undefined,
      emitAudit: () => undefined,
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

/** Returns a line for each asset of a network for which no wallets and addresses can be created. */
const closedAssets = (settings: Settings, registry: Registry, network: string): string[] =>
  registry
    .assetsOf(network)
    .filter((asset) => !isOpen({ settings }, asset))
    .map(
      ({ asset_name, status, status_since: since, status_reason: reason }) =>
        `${asset_name} is ${status} since ${since}: ${reason}. New wallets and addresses cannot be created, but the balance can be sent`,
    )

const LOCAL_START = 'the local chains run while the platform runs: start it with "npm start"'

/**
 * Returns the known result for a local network without a query to its chain; null: the chain runs
 * and is queried.
 */
function stateWithoutQuery(
  local: LocalChains | null,
  network: string,
): Pick<Diagnosis, 'state' | 'advice'> | null {
  if (local === null) return null
  if (local.state === 'away') return { state: 'not running', advice: LOCAL_START }
  if (local.state === 'failed')
    return { state: 'unreachable', advice: `${local.reason}; ${LOCAL_START}` }
  return local.started.has(network)
    ? null
    : { state: 'not started', advice: 'it starts when it is first used' }
}

/** Parameters of the check of the networks. `local`: null on real networks. */
export interface NetworkChecks {
  settings: Settings
  registry: Registry
  endpoints: Settings['endpoints']
  local: LocalChains | null
}

/** An endpoint to check. `endpoint` is undefined and `host` empty if its network has none. */
interface Target {
  code: string
  status: Network['status']
  endpoint: RpcEndpoint | undefined
  host: string
}

/** Returns each endpoint, in the order of the networks; one target for a network without any. */
function targetsOf({ registry, endpoints }: NetworkChecks): Target[] {
  return registry.networks.flatMap(({ code, status }) => {
    const { endpoints: own = [] } = endpoints[code] ?? {}
    const names = endpointNames(own)
    const none: Pick<Target, 'endpoint' | 'host'>[] = [{ endpoint: undefined, host: '' }]
    const several = own.map((endpoint, at) => ({ endpoint, host: names[at] as string }))
    return (several.length === 0 ? none : several).map((one) => ({ code, status, ...one }))
  })
}

const NOT_MEASURED = { host: null, height: null, milliseconds: null }

/** Connects to the endpoint, checks its chain and functions, and reads its latest block. */
async function queryEndpoint(
  networks: Networks,
  { network, host, limits: closed }: Pick<Diagnosis, 'network' | 'host' | 'limits'>,
  isLocal: boolean,
): Promise<Diagnosis> {
  const started = performance.now()
  try {
    await networks.client(network).probe()
    const [state] = (await networks.get(network).belief?.states()) ?? []
    if (state && state.head !== null && state.doubt !== null) {
      const milliseconds = Math.round(performance.now() - started)
      const advice = `${state.doubt}; ${asInstalled((ADVICE['behind'] as string).replace('NETWORK', network))}`
      const { height } = state.head
      return { network, state: 'behind', host, height, milliseconds, advice, limits: closed }
    }
    const { height } = await networks.client(network).tip()
    const milliseconds = Math.round(performance.now() - started)
    // The block is read as a scan does it, so that the error names a missing field.
    await networks.client(network).block(height)
    const limits = [...((await networks.client(network).limits?.()) ?? []), ...closed]
    return { network, state: 'ok', host, height, milliseconds, advice: null, limits }
  } catch (error) {
    const state =
      error instanceof ChainError && error.code === 'WRONG_NETWORK'
        ? 'wrong network'
        : 'unreachable'
    return {
      network,
      state,
      host,
      height: null,
      milliseconds: null,
      limits: closed,
      advice: `${reasonOf(error)}; ${asInstalled(isLocal ? LOCAL_START : (ADVICE[state] as string))}`,
    }
  }
}

/** Returns the result of a target, which is queried only if it has an endpoint in use. */
async function diagnoseTarget(
  { settings, registry, local }: NetworkChecks,
  context: ChainContext,
  { code, status, endpoint, host }: Target,
): Promise<Diagnosis> {
  const closed = closedAssets(settings, registry, code)
  if (!endpoint && status?.state === 'retired') {
    return {
      network: code,
      state: 'retired',
      ...NOT_MEASURED,
      limits: [],
      advice: `since ${status.since}: ${status.reason}`,
    }
  }
  const existing = stateWithoutQuery(local, code)
  if (existing !== null) return { network: code, ...NOT_MEASURED, limits: closed, ...existing }
  const networks = new Networks(
    endpoint ? connectAll(context, { [code]: { endpoints: [endpoint], quorum: 1 } }, fetch) : [],
  )
  if (!endpoint || !networks.has(code)) {
    return {
      network: code,
      state: 'not configured',
      ...NOT_MEASURED,
      limits: [],
      advice: `add networks.${code}.url to custody.config.json to enable it`,
    }
  }
  return queryEndpoint(
    networks,
    { network: code, host, limits: closed },
    hasLocalChains(settings.network),
  )
}

/**
 * Checks all endpoints of all networks concurrently. An error of an endpoint is part of its result.
 */
export async function diagnoseNetworks(checks: NetworkChecks): Promise<Diagnosis[]> {
  const context = withoutPlatform(checks.registry)
  return Promise.all(targetsOf(checks).map((target) => diagnoseTarget(checks, context, target)))
}
