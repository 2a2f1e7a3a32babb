import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { NetworkMode } from '@custody/chains'
import type { SweepRules } from './deposits/sweep-policy.ts'
import { readSweepRules, type SweepConfig } from './deposits/sweep-settings.ts'
import { DEFAULT_TIERS, readTiers, type Tier } from './prepaid-fee/tiers.ts'

/** Where a network's RPC endpoint is. */
export interface Endpoint { url: string; username?: string; password?: string; headers?: Record<string, string> }

export interface Settings {
  home: string
  port: number
  host: string
  databaseUrl: string | null
  network: NetworkMode
  rateLimit: number
  authLegacy: boolean
  /** `key`: one allowance over all endpoints; `endpoint`: one for each. */
  rateScope: 'key' | 'endpoint'
  /** Proxies in front, each of which adds a hop to X-Forwarded-For; nobody else can reach this port. 0: none. */
  trustProxy: number
  /** Endpoints by network code, from custody.config.json (mainnet) or the local chains. */
  endpoints: Record<string, Endpoint>
  /** 32 bytes in base64 under which secrets are sealed in the database; null: a file of the home. */
  secretsKey: string | null
  /** Milliseconds between polls of chains and work. */
  pollMs: number
  /** A transfer that has waited this long below the market's fee is bumped by itself; 0: never. */
  feeBumpAfterMs: number
  /** Platform fees by 30-day volume. */
  prepaidTiers: readonly Tier[]
  /** `all`: everything; `api`: HTTP only, workers run elsewhere. */
  role: 'all' | 'api'
  /** From which level on lines are written to standard error. */
  logLevel: (typeof LOG_LEVELS)[number]
  /** When deposit addresses are swept, by scope; the operator's commands go before. */
  sweep: SweepRules
}

const TRUSTED_PROXIES_MAX = 16
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

function integer(name: string, fallback: number, min: number, max: number): number {
  const text = process.env[name]
  if (text === undefined || text === '') return fallback
  const value = Number(text)
  if (!Number.isInteger(value) || value < min || value > max) throw new Error(`${name}=${text}: must be an integer from ${min} to ${max}`)
  return value
}

function oneOf<T extends string>(name: string, fallback: T, allowed: readonly T[]): T {
  const text = process.env[name]
  if (text === undefined || text === '') return fallback
  if (!allowed.includes(text as T)) throw new Error(`${name}=${text}: must be one of ${allowed.join(', ')}`)
  return text as T
}

/** Never shown in a message: it holds a password. */
function readDatabaseUrl(): string | null {
  const url = process.env['DATABASE_URL'] || null
  if (url !== null && !/^postgres(ql)?:\/\//.test(url)) throw new Error('DATABASE_URL: must begin with postgresql://')
  return url
}

function readConfig(file: string): { networks?: Record<string, Endpoint>; sweep?: SweepConfig } {
  try {
    const config: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (typeof config === 'object' && config !== null && !Array.isArray(config)) return config
  } catch (error) {
    throw new Error(`${file}: ${error instanceof SyntaxError ? 'is not valid JSON' : 'cannot be read'} (${(error as Error).message})`, { cause: error })
  }
  throw new Error(`${file}: must hold a JSON object, as custody.config.example.json does`)
}

/**
 * Reads the settings from the environment and, for mainnet, custody.config.json in the working directory.
 * @throws Error with a sentence that names the setting
 */
export function readSettings(): Settings {
  const network = oneOf('CUSTODY_NETWORK', 'local', ['local', 'mainnet'] as const)
  const home = resolve(process.env['CUSTODY_HOME'] ?? '.custody')
  const endpoints: Record<string, Endpoint> = {}
  let sweep = readSweepRules(network, undefined, '')
  if (network === 'mainnet') {
    const file = resolve(process.env['CUSTODY_CONFIG'] ?? 'custody.config.json')
    if (existsSync(file)) {
      const config = readConfig(file)
      for (const [code, endpoint] of Object.entries(config.networks ?? {})) {
        if (typeof endpoint?.url !== 'string' || !/^https?:\/\//.test(endpoint.url)) throw new Error(`${file}: networks.${code}.url must be an http(s) URL`)
        endpoints[code] = endpoint
      }
      sweep = readSweepRules(network, config.sweep, file)
    }
  }
  return {
    home,
    port: integer('PORT', 8080, 0, 65_535),
    host: process.env['CUSTODY_HOST'] ?? '127.0.0.1',
    databaseUrl: readDatabaseUrl(),
    network,
    rateLimit: integer('CUSTODY_RATE_LIMIT', 1000, 1, 10_000_000),
    rateScope: oneOf('CUSTODY_RATE_SCOPE', 'key', ['key', 'endpoint'] as const),
    authLegacy: oneOf('CUSTODY_AUTH_LEGACY', '0', ['0', '1'] as const) === '1',
    trustProxy: integer('CUSTODY_TRUST_PROXY', 0, 0, TRUSTED_PROXIES_MAX),
    endpoints,
    sweep,
    secretsKey: process.env['CUSTODY_SECRETS_KEY'] || null,
    pollMs: network === 'local' ? 500 : 5000,
    prepaidTiers: readTiers(process.env['CUSTODY_PREPAID_TIERS'] || DEFAULT_TIERS),
    feeBumpAfterMs: integer('CUSTODY_FEE_BUMP_AFTER_S', 0, 0, 86_400) * 1000,
    logLevel: oneOf('CUSTODY_LOG_LEVEL', 'info', LOG_LEVELS),
    role: oneOf('CUSTODY_ROLE', 'all', ['all', 'api'] as const),
  }
}
