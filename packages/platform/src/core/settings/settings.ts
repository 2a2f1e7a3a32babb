import { resolve } from 'node:path'
import {
  byMode,
  ChainError,
  hasLocalChains,
  loadRegistry,
  parseAmount,
  readMode,
  type NetworkMode,
} from '@custody/chains/basics'
import { reasonOf } from '@custody/chains/reason'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { dataDirOf } from '../data-dir.ts'
import { readConfiguration, type NetworkEndpoints } from './configuration.ts'
import { MULTIPLE_DECIMALS, type SweepRules } from './sweep-rules.ts'
import { sweepRules } from './sweep-rules.ts'
import { DEFAULT_TIERS, readTiers, type Tier } from './tiers.ts'
import { isExchange } from '../ccxt.ts'

export interface Settings {
  home: string
  port: number
  host: string
  /** URL of this server for payers, without a trailing slash; null: derived from host and port. */
  publicUrl: string | null
  databaseUrl: string | null
  /**
   * URL of the same database for the role that owns its tables, which applies the migrations; null:
   * the role of `databaseUrl` does.
   */
  migrationUrl: string | null
  /** Folder to which the embedded database's WAL is copied; null: it is not archived. */
  walArchive: string | null
  /** Whether connections go through a transaction pooler. */
  databasePooled: boolean
  network: NetworkMode
  rateLimit: number
  authLegacy: boolean
  /** Scope of the rate limit. `key`: one limit for all endpoints; `endpoint`: one for each. */
  rateScope: 'key' | 'endpoint'
  /**
   * Number of proxies in front of the server, each of which adds an entry to X-Forwarded-For.
   * Clients must not be able to reach this port directly. 0: none.
   */
  trustProxy: number
  /** Endpoints by network code, from custody.config.json (mainnet) or the local chains. */
  endpoints: Record<string, NetworkEndpoints>
  /**
   * Key of 32 bytes in base64 that encrypts secrets in the database; null: a file in the data
   * folder.
   */
  secretsKey: string | null
  /** Milliseconds between polls of chains and due work. */
  pollMs: number
  /**
   * Time in milliseconds for which a transfer waits below the market's fee before its fee is
   * increased automatically; 0: never.
   */
  feeBumpAfterMs: number
  /** Time in milliseconds after which a worker audits again; 0: only the operator's command audits. */
  auditEveryMs: number
  /** Platform fees by 30-day volume. */
  prepaidTiers: readonly Tier[]
  role: Role
  /**
   * URL of local chains that another process runs, without a trailing slash; null: this platform
   * starts its own.
   */
  localChains: string | null
  /** Lowest level of the lines that are written to standard error. */
  logLevel: (typeof LOG_LEVELS)[number]
  logFormat: (typeof LOG_FORMATS)[number]
  /** Rules for sweeps of deposit addresses, by scope; the operator's commands take precedence. */
  sweep: SweepRules
  /** Deprecated assets for which wallets and addresses can still be created. */
  allowDeprecated: ReadonlySet<string>
  aml: AmlSettings
  prices: PriceSettings
  /** Which parts of published reserves are public: none, the statements, or the addresses too. */
  reservesPublic: (typeof RESERVES_PUBLIC)[number]
  /** Address ranges that webhooks may be sent to although they are not public. */
  webhookAllow: readonly string[]
  /** Address ranges that may read /metrics. */
  metricsAllow: readonly string[]
}

/**
 * Role of a process. `api`: HTTP. `worker`: runs due work. `scanner`: reads the chains. `all`: all
 * three in one process.
 */
export type Role = 'all' | 'api' | 'worker' | 'scanner'

/** Settings of screening. */
export interface AmlSettings {
  /** Base URLs of the providers. Null: the provider's own URL, or that of its local emulator. */
  urls: { CHAINALYSIS: string | null; ELLIPTIC: string | null; TRM: string | null }
  /** Elliptic's scores from which an address is SEVERE, HIGH, MEDIUM; above 0 it is LOW. */
  ellipticThresholds: [number, number, number]
  /** TRM's names of chains by network code, if they differ from the built-in ones. */
  trmChains: Record<string, string>
  /** Value in USD of transfers with a flagged counterparty from which they decide; below, they alert. */
  exposureUsd: number
  /**
   * Time in milliseconds for which a provider's response about an address also counts for other
   * transactions of the sub-account.
   */
  cacheMs: number
  /**
   * File of sanctioned addresses; null: the refreshed list in the data folder, otherwise the list
   * that is part of the release.
   */
  ofacFile: string | null
}

/** Settings of the price sources. */
export interface PriceSettings {
  /** Base URL of CoinGecko. Null: the URL of the plan, or of the local emulator. */
  coinGeckoUrl: string | null
  coinGeckoKey: string | null
  coinGeckoPlan: 'demo' | 'pro'
  /** Corrections of CoinGecko's names of coins. */
  coinGeckoIds: Record<string, string>
  /** Exchanges that are used as price sources, by ccxt's names. */
  exchanges: string[]
  /** Interval in milliseconds; null: the network's default. */
  everyMs: number | null
  /**
   * Platform fee of a transfer by coin, in millionths of a USD, while the coin has no current
   * price. Transfers of other coins are then rejected.
   */
  feesWithoutPrice: Readonly<Record<string, bigint>>
}

/** Decimals of platform fees. */
const USD_DECIMALS = 6
const TRUSTED_PROXIES_MAX = 16
const SECRETS_KEY_BYTES = 32
const LOOPBACK = ['127.0.0.0/8', '::1/128']
/** `auto`: lines for people on a terminal, and JSON elsewhere. */
const LOG_FORMATS = ['auto', 'lines', 'json'] as const
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

const RESERVES_PUBLIC = ['off', 'totals', 'all'] as const

/** Marks an error that quotes the whole value; other errors quote the wrong part, or nothing. */
const QUOTED = { quoted: true }

const integer = (least: number, most: number) =>
  z
    .string()
    .transform(Number)
    .refine((value) => Number.isInteger(value) && value >= least && value <= most, {
      error: `must be an integer from ${least} to ${most}`,
      params: QUOTED,
    })

const oneOf = <const T extends readonly string[]>(...values: T) =>
  z.enum(values, { error: `must be one of ${values.join(', ')}` })

const httpUrl = z
  .string()
  .regex(/^https?:\/\/\S+$/, 'must be an http(s) URL')
  .transform((url) => url.replace(/\/+$/, ''))

const postgresUrl = z.string().regex(/^postgres(ql)?:\/\//, 'must begin with postgresql://')

const network = z.string().transform((text, context): NetworkMode => {
  try {
    return readMode(text)
  } catch (error) {
    if (!(error instanceof ChainError)) throw error
    context.addIssue({ code: 'custom', message: error.message, params: QUOTED })
    return z.NEVER
  }
})

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
)

/** Parser for `KEY=value,…`; `form` describes the format in errors. */
const pairs = (form: string, pair: RegExp) =>
  list.transform((parts, context) =>
    Object.fromEntries(
      parts.flatMap((part) => {
        const [, key, value] = pair.exec(part) ?? []
        if (key !== undefined && value !== undefined) return [[key, value] as const]
        context.addIssue(`"${part}" is not ${form}`)
        return []
      }),
    ),
  )

/** Parser that uses another module's function and error messages. */
const readBy = <T>(read: (text: string) => T) =>
  z.string().transform((text, context) => {
    try {
      return read(text)
    } catch (error) {
      context.addIssue(reasonOf(error))
      return z.NEVER
    }
  })

/** Parser for address ranges such as 10.0.0.0/8 or fd00::/8. */
const cidrs = list.transform((parts, context) => {
  for (const part of parts)
    if (!ipaddr.isValidCIDR(part))
      context.addIssue(`"${part}" is not a range of addresses such as 10.0.0.0/8`)
  return parts
})

const thresholds = list
  .transform((parts) => parts.map(Number))
  .refine(
    (scores) =>
      scores.length === 3 &&
      scores.every(
        (score, at) => score > 0 && score <= 10 && (at === 0 || score < (scores[at - 1] as number)),
      ),
    { error: 'must be three descending scores such as 9,7,4', params: QUOTED },
  )
  .transform((scores) => scores as [number, number, number])

/**
 * Every environment variable that the platform reads, except the folders that commands need too
 * (`data-dir.ts`).
 */
const variables = z
  .object({
    PORT: integer(0, 65_535).default(8080),
    CUSTODY_HOST: z.string().default('127.0.0.1'),
    CUSTODY_PUBLIC_URL: httpUrl.optional(),
    // Values of the URLs and of CUSTODY_SECRETS_KEY are never shown in errors: the first contain a
    // password, the other is a key.
    DATABASE_URL: postgresUrl.optional(),
    DATABASE_MIGRATION_URL: postgresUrl.optional(),
    CUSTODY_WAL_ARCHIVE: z
      .string()
      .transform((folder) => resolve(folder))
      .optional(),
    CUSTODY_DATABASE_POOLER: oneOf('none', 'transaction').default('none'),
    CUSTODY_SECRETS_KEY: z
      .string()
      .refine(
        (text) => text.startsWith('@') || Buffer.from(text, 'base64').length === SECRETS_KEY_BYTES,
        `must be ${SECRETS_KEY_BYTES} bytes in base64, or @FILE`,
      )
      .optional(),
    CUSTODY_NETWORK: network.prefault('local'),
    CUSTODY_CONFIG: z.string().default('custody.config.json'),
    CUSTODY_RATE_LIMIT: integer(1, 10_000_000).default(1000),
    CUSTODY_RATE_SCOPE: oneOf('key', 'endpoint').default('key'),
    CUSTODY_AUTH_LEGACY: oneOf('0', '1').default('0'),
    CUSTODY_TRUST_PROXY: integer(0, TRUSTED_PROXIES_MAX).default(0),
    CUSTODY_ROLE: oneOf('all', 'api', 'worker', 'scanner').default('all'),
    CUSTODY_LOCAL_CHAINS: httpUrl.optional(),
    CUSTODY_FEE_BUMP_AFTER_S: integer(0, 86_400).default(0),
    CUSTODY_AUDIT_EVERY_H: integer(0, 24).optional(),
    CUSTODY_SWEEP_COST_MULTIPLE: readBy((text) => parseAmount(text, MULTIPLE_DECIMALS)).optional(),
    CUSTODY_LOG_LEVEL: oneOf(...LOG_LEVELS).default('info'),
    CUSTODY_LOG_FORMAT: oneOf(...LOG_FORMATS).default('auto'),
    CUSTODY_PREPAID_TIERS: readBy(readTiers).prefault(DEFAULT_TIERS),
    CUSTODY_ALLOW_DEPRECATED: list.prefault(''),
    CUSTODY_OFAC_FILE: z.string().optional(),
    CUSTODY_AML_CHAINALYSIS_URL: httpUrl.optional(),
    CUSTODY_AML_ELLIPTIC_URL: httpUrl.optional(),
    CUSTODY_AML_TRM_URL: httpUrl.optional(),
    CUSTODY_AML_ELLIPTIC_THRESHOLDS: thresholds.prefault('9,7,4'),
    CUSTODY_AML_TRM_CHAINS: pairs('NETWORK=chain', /^([A-Z0-9_]+)\s*=\s*([a-z0-9_]+)$/).prefault(
      '',
    ),
    CUSTODY_AML_EXPOSURE_USD: integer(0, 1_000_000_000).default(100),
    CUSTODY_AML_CACHE_S: integer(0, 600).optional(),
    CUSTODY_COINGECKO_KEY: z.string().optional(),
    CUSTODY_COINGECKO_PLAN: oneOf('demo', 'pro').default('demo'),
    CUSTODY_COINGECKO_URL: httpUrl.optional(),
    CUSTODY_COINGECKO_IDS: pairs('COIN=id', /^([^\s=]+)\s*=\s*([a-z0-9][a-z0-9._-]*)$/).prefault(
      '',
    ),
    CUSTODY_PRICE_EXCHANGES: list.transform((names) => [...new Set(names)]).prefault('kraken'),
    CUSTODY_PRICE_REFRESH_S: integer(1, 50).optional(),
    CUSTODY_FEES_WITHOUT_PRICE: pairs(
      'COIN=USD',
      /^([^\s=]+)\s*=\s*(\d{1,9}(?:\.\d{1,6})?)$/,
    ).prefault(''),
    CUSTODY_WEBHOOK_ALLOW: cidrs.optional(),
    CUSTODY_METRICS_ALLOW: cidrs.optional(),
    CUSTODY_RESERVES_PUBLIC: oneOf(...RESERVES_PUBLIC).default('totals'),
  })
  .superRefine((set, context) => {
    const wrong = (name: keyof typeof set, message: string, params = {}) => {
      context.addIssue({ code: 'custom', path: [name], message, params })
    }
    if (set.DATABASE_MIGRATION_URL !== undefined && set.DATABASE_URL === undefined)
      wrong(
        'DATABASE_MIGRATION_URL',
        'requires DATABASE_URL, which is the URL of the same database',
      )
    if (set.CUSTODY_LOCAL_CHAINS !== undefined && !hasLocalChains(set.CUSTODY_NETWORK)) {
      wrong(
        'CUSTODY_LOCAL_CHAINS',
        'is for CUSTODY_NETWORK=local; endpoints of real networks are in custody.config.json',
      )
    }
    if (set.CUSTODY_COINGECKO_PLAN === 'pro' && set.CUSTODY_COINGECKO_KEY === undefined) {
      wrong('CUSTODY_COINGECKO_PLAN', 'requires CUSTODY_COINGECKO_KEY', QUOTED)
    }
    const { coins, asset } = loadRegistry(set.CUSTODY_NETWORK)
    for (const ticker of set.CUSTODY_ALLOW_DEPRECATED) {
      const allowed = asset(ticker)
      if (!allowed) wrong('CUSTODY_ALLOW_DEPRECATED', `asset ${ticker} does not exist`)
      else if (allowed.status === 'retired')
        wrong('CUSTODY_ALLOW_DEPRECATED', `${ticker} is retired: ${allowed.status_reason}`)
    }
    const existing = Object.values(coins).map(({ ticker }) => ticker)
    const unknown = Object.keys(set.CUSTODY_COINGECKO_IDS).find((coin) => !existing.includes(coin))
    if (unknown !== undefined)
      wrong(
        'CUSTODY_COINGECKO_IDS',
        `coin ${unknown} does not exist; must be one of ${existing.join(', ')}`,
      )
    const unpriced = Object.keys(set.CUSTODY_FEES_WITHOUT_PRICE).find(
      (coin) => !existing.includes(coin),
    )
    if (unpriced !== undefined)
      wrong(
        'CUSTODY_FEES_WITHOUT_PRICE',
        `coin ${unpriced} does not exist; must be one of ${existing.join(', ')}`,
      )
    for (const id of set.CUSTODY_PRICE_EXCHANGES) {
      if (!isExchange(id)) wrong('CUSTODY_PRICE_EXCHANGES', `ccxt has no exchange "${id}"`)
      else if (hasLocalChains(set.CUSTODY_NETWORK) && id !== 'kraken') {
        wrong('CUSTODY_PRICE_EXCHANGES', `the local chains support kraken only, not "${id}"`)
      }
    }
  })

type Variables = z.output<typeof variables>

/**
 * An empty variable counts as missing, except for these, for which an empty list is a valid choice.
 */
const EMPTY_IS_SET = new Set(['CUSTODY_PRICE_EXCHANGES', 'CUSTODY_WEBHOOK_ALLOW'])

const argument = (env: NodeJS.ProcessEnv) =>
  Object.fromEntries(
    Object.entries(env).filter(([name, text]) => text !== '' || EMPTY_IS_SET.has(name)),
  )

function taken<T>(parsed: z.ZodSafeParseResult<T>, env: NodeJS.ProcessEnv): T {
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0] as z.core.$ZodIssue
  const name = String(issue.path[0])
  const quoted =
    issue.code === 'invalid_value' || (issue.code === 'custom' && issue.params?.['quoted'] === true)
  throw new Error(`${name}${quoted ? `=${env[name]}` : ''}: ${issue.message}`)
}

/**
 * Reads a single variable, for a command that needs no others.
 * @throws Error with a sentence that names it
 */
export function readVariable<const Name extends keyof Variables>(
  name: Name,
  env: NodeJS.ProcessEnv = process.env,
): Variables[Name] {
  const one: z.ZodType = z.object({ [name]: variables.shape[name] })
  return (taken(one.safeParse(argument(env)), env) as Variables)[name]
}

/**
 * Returns the URL with which a command changes tables of the operator's own database; null: the
 * database is embedded.
 */
export const ownerUrl = (): string | null =>
  readVariable('DATABASE_MIGRATION_URL') ?? readVariable('DATABASE_URL') ?? null

/** Seconds for which a provider's response about an address is used again on real networks. */
const SCREENING_CACHE_S = 600

function screeningOf(set: Variables): Settings['aml'] {
  // Local risks change by a command, and count immediately.
  const cacheS = byMode(set.CUSTODY_NETWORK, {
    local: 0,
    regtest: SCREENING_CACHE_S,
    mainnet: SCREENING_CACHE_S,
  })
  return {
    urls: {
      CHAINALYSIS: set.CUSTODY_AML_CHAINALYSIS_URL ?? null,
      ELLIPTIC: set.CUSTODY_AML_ELLIPTIC_URL ?? null,
      TRM: set.CUSTODY_AML_TRM_URL ?? null,
    },
    ellipticThresholds: set.CUSTODY_AML_ELLIPTIC_THRESHOLDS,
    trmChains: set.CUSTODY_AML_TRM_CHAINS,
    exposureUsd: set.CUSTODY_AML_EXPOSURE_USD,
    cacheMs: (set.CUSTODY_AML_CACHE_S ?? cacheS) * 1000,
    ofacFile: set.CUSTODY_OFAC_FILE ?? null,
  }
}

/**
 * Reads the settings from the environment and, except with local chains, custody.config.json in the
 * working directory.
 * @throws Error with a sentence that names the setting
 */
export function readSettings(env: NodeJS.ProcessEnv = process.env): Settings {
  const set = taken(variables.safeParse(argument(env)), env)
  const network = set.CUSTODY_NETWORK
  const { networks, sweep } = hasLocalChains(network)
    ? {
        networks: {},
        sweep: {},
      }
    : readConfiguration(resolve(set.CUSTODY_CONFIG), loadRegistry(network))
  return {
    home: dataDirOf(env),
    port: set.PORT,
    host: set.CUSTODY_HOST,
    publicUrl: set.CUSTODY_PUBLIC_URL ?? null,
    databaseUrl: set.DATABASE_URL ?? null,
    migrationUrl: set.DATABASE_MIGRATION_URL ?? null,
    walArchive: set.CUSTODY_WAL_ARCHIVE ?? null,
    databasePooled: set.CUSTODY_DATABASE_POOLER === 'transaction',
    network,
    rateLimit: set.CUSTODY_RATE_LIMIT,
    rateScope: set.CUSTODY_RATE_SCOPE,
    authLegacy: set.CUSTODY_AUTH_LEGACY === '1',
    trustProxy: set.CUSTODY_TRUST_PROXY,
    endpoints: networks,
    sweep: sweepRules(network, set.CUSTODY_SWEEP_COST_MULTIPLE, sweep),
    secretsKey: set.CUSTODY_SECRETS_KEY ?? null,
    pollMs: byMode(network, { local: 500, regtest: 1000, mainnet: 5000 }),
    prepaidTiers: set.CUSTODY_PREPAID_TIERS,
    feeBumpAfterMs: set.CUSTODY_FEE_BUMP_AFTER_S * 1000,
    auditEveryMs:
      (set.CUSTODY_AUDIT_EVERY_H ?? byMode(network, { local: 0, regtest: 6, mainnet: 6 })) *
      3_600_000,
    logLevel: set.CUSTODY_LOG_LEVEL,
    logFormat: set.CUSTODY_LOG_FORMAT,
    role: set.CUSTODY_ROLE,
    localChains: set.CUSTODY_LOCAL_CHAINS ?? null,
    reservesPublic: set.CUSTODY_RESERVES_PUBLIC,
    allowDeprecated: new Set(set.CUSTODY_ALLOW_DEPRECATED),
    webhookAllow:
      set.CUSTODY_WEBHOOK_ALLOW ??
      byMode(network, { local: LOOPBACK, regtest: LOOPBACK, mainnet: [] }),
    metricsAllow: set.CUSTODY_METRICS_ALLOW ?? LOOPBACK,
    aml: screeningOf(set),
    prices: {
      coinGeckoUrl: set.CUSTODY_COINGECKO_URL ?? null,
      coinGeckoKey: set.CUSTODY_COINGECKO_KEY ?? null,
      coinGeckoPlan: set.CUSTODY_COINGECKO_PLAN,
      coinGeckoIds: set.CUSTODY_COINGECKO_IDS,
      exchanges: set.CUSTODY_PRICE_EXCHANGES,
      everyMs:
        set.CUSTODY_PRICE_REFRESH_S === undefined ? null : set.CUSTODY_PRICE_REFRESH_S * 1000,
      feesWithoutPrice: Object.fromEntries(
        Object.entries(set.CUSTODY_FEES_WITHOUT_PRICE).map(([coin, text]) => [
          coin,
          parseAmount(text, USD_DECIMALS),
        ]),
      ),
    },
  }
}
