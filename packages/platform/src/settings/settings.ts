import { resolve } from 'node:path'
import { loadRegistry, parseAmount, type NetworkMode } from '@custody/chains/basics'
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
  /** Where payers reach this server, without a slash at the end; null: at host and port. */
  publicUrl: string | null
  databaseUrl: string | null
  /** Folder that the embedded database's log is copied to; null: nowhere. */
  walArchive: string | null
  /** A pooler of transactions stands before it. */
  databasePooled: boolean
  network: NetworkMode
  rateLimit: number
  authLegacy: boolean
  /** `key`: one allowance over all endpoints; `endpoint`: one for each. */
  rateScope: 'key' | 'endpoint'
  /**
   * Proxies in front, each of which adds a hop to X-Forwarded-For; nobody else can reach this port.
   * 0: none.
   */
  trustProxy: number
  /** Endpoints by network code, from custody.config.json (mainnet) or the local chains. */
  endpoints: Record<string, NetworkEndpoints>
  /**
   * 32 bytes in base64 under which secrets are sealed in the database; null: a file of the home.
   */
  secretsKey: string | null
  /** Milliseconds between polls of chains and work. */
  pollMs: number
  /** A transfer that has waited this long below the market's fee is bumped by itself; 0: never. */
  feeBumpAfterMs: number
  /** Platform fees by 30-day volume. */
  prepaidTiers: readonly Tier[]
  role: Role
  /**
   * Where local chains are that somebody else runs, without a slash at the end; null: this platform
   * starts its own.
   */
  localChains: string | null
  /** From which level on lines are written to standard error. */
  logLevel: (typeof LOG_LEVELS)[number]
  /** When deposit addresses are swept, by scope; the operator's commands go before. */
  sweep: SweepRules
  /** Deprecated assets of which wallets and addresses are made nevertheless. */
  allowDeprecated: ReadonlySet<string>
  aml: AmlSettings
  prices: PriceSettings
  /**
   * What everybody may read of published reserves: nothing, the statements, or the addresses too.
   */
  reservesPublic: (typeof RESERVES_PUBLIC)[number]
  /** Ranges that webhooks are sent to although they are no public addresses. */
  webhookAllow: readonly string[]
  /** Ranges from which /metrics is answered. */
  metricsAllow: readonly string[]
}

/**
 * `api`: HTTP. `worker`: runs what is due. `scanner`: reads the chains. `all`: the three in one
 * process.
 */
export type Role = 'all' | 'api' | 'worker' | 'scanner'

/** Of screening. */
export interface AmlSettings {
  /** Null: the provider's own, or its local face. */
  urls: { CHAINALYSIS: string | null; ELLIPTIC: string | null; TRM: string | null }
  /** Elliptic's score from which an address is SEVERE, HIGH, MEDIUM; above 0 it is LOW. */
  ellipticThresholds: [number, number, number]
  /** TRM's names of chains by network code, where they differ from the built-in ones. */
  trmChains: Record<string, string>
  /**
   * File of sanctioned addresses; null: the refreshed one in the home, else the one that is
   * shipped.
   */
  ofacFile: string | null
}

/** Of the sources of prices. */
export interface PriceSettings {
  /** Null: the plan's own, or the local face. */
  coinGeckoUrl: string | null
  coinGeckoKey: string | null
  coinGeckoPlan: 'demo' | 'pro'
  /** Corrections of CoinGecko's names of coins. */
  coinGeckoIds: Record<string, string>
  /** ccxt's names. */
  exchanges: string[]
  /** Null: the network's own pace. */
  everyMs: number | null
  /**
   * Platform fee of a transfer by coin, in millionths of a USD, while the coin has no current
   * price. Other coins are refused then.
   */
  feesWithoutPrice: Readonly<Record<string, bigint>>
}

/** Of platform fees. */
const USD_DECIMALS = 6
const TRUSTED_PROXIES_MAX = 16
const SECRETS_KEY_BYTES = 32
const LOOPBACK = ['127.0.0.0/8', '::1/128']
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

const RESERVES_PUBLIC = ['off', 'totals', 'all'] as const

/**
 * A problem that is told with the whole value; every other one quotes the part that is wrong, or
 * nothing.
 */
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

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
)

/** `KEY=value,…`, as `form` says. */
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

/** What another module reads from text, with its own words for what is wrong. */
const readBy = <T>(read: (text: string) => T) =>
  z.string().transform((text, context) => {
    try {
      return read(text)
    } catch (error) {
      context.addIssue(reasonOf(error))
      return z.NEVER
    }
  })

/** Ranges of addresses, such as 10.0.0.0/8 or fd00::/8. */
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
 * Every variable of the environment that a platform reads, beside the folders that commands need
 * too (`app/home.ts`).
 */
const variables = z
  .object({
    PORT: integer(0, 65_535).default(8080),
    CUSTODY_HOST: z.string().default('127.0.0.1'),
    CUSTODY_PUBLIC_URL: httpUrl.optional(),
    // Neither is ever shown: one holds a password, the other is a key.
    DATABASE_URL: z
      .string()
      .regex(/^postgres(ql)?:\/\//, 'must begin with postgresql://')
      .optional(),
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
    CUSTODY_NETWORK: oneOf('local', 'mainnet').default('local'),
    CUSTODY_CONFIG: z.string().default('custody.config.json'),
    CUSTODY_RATE_LIMIT: integer(1, 10_000_000).default(1000),
    CUSTODY_RATE_SCOPE: oneOf('key', 'endpoint').default('key'),
    CUSTODY_AUTH_LEGACY: oneOf('0', '1').default('0'),
    CUSTODY_TRUST_PROXY: integer(0, TRUSTED_PROXIES_MAX).default(0),
    CUSTODY_ROLE: oneOf('all', 'api', 'worker', 'scanner').default('all'),
    CUSTODY_LOCAL_CHAINS: httpUrl.optional(),
    CUSTODY_FEE_BUMP_AFTER_S: integer(0, 86_400).default(0),
    CUSTODY_SWEEP_COST_MULTIPLE: readBy((text) => parseAmount(text, MULTIPLE_DECIMALS)).optional(),
    CUSTODY_LOG_LEVEL: oneOf(...LOG_LEVELS).default('info'),
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
    if (set.CUSTODY_LOCAL_CHAINS !== undefined && set.CUSTODY_NETWORK !== 'local') {
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
    const known = Object.values(coins).map(({ ticker }) => ticker)
    const unknown = Object.keys(set.CUSTODY_COINGECKO_IDS).find((coin) => !known.includes(coin))
    if (unknown !== undefined)
      wrong('CUSTODY_COINGECKO_IDS', `there is no coin ${unknown}: one of ${known.join(', ')}`)
    const unpriced = Object.keys(set.CUSTODY_FEES_WITHOUT_PRICE).find(
      (coin) => !known.includes(coin),
    )
    if (unpriced !== undefined)
      wrong(
        'CUSTODY_FEES_WITHOUT_PRICE',
        `there is no coin ${unpriced}: one of ${known.join(', ')}`,
      )
    for (const id of set.CUSTODY_PRICE_EXCHANGES) {
      if (!isExchange(id)) wrong('CUSTODY_PRICE_EXCHANGES', `ccxt has no exchange "${id}"`)
      else if (set.CUSTODY_NETWORK === 'local' && id !== 'kraken') {
        wrong('CUSTODY_PRICE_EXCHANGES', `the local chains support kraken only, not "${id}"`)
      }
    }
  })

type Variables = z.output<typeof variables>

/** An empty variable is one that is not set, except where nothing at all is a choice. */
const EMPTY_IS_SET = new Set(['CUSTODY_PRICE_EXCHANGES', 'CUSTODY_WEBHOOK_ALLOW'])

const given = (env: NodeJS.ProcessEnv) =>
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

/** One variable, for a command that needs no other. @throws Error with a sentence that names it */
export function readVariable<const Name extends keyof Variables>(
  name: Name,
  env: NodeJS.ProcessEnv = process.env,
): Variables[Name] {
  const one: z.ZodType = z.object({ [name]: variables.shape[name] })
  return (taken(one.safeParse(given(env)), env) as Variables)[name]
}

/**
 * Reads the settings from the environment and, for mainnet, custody.config.json in the working
 * directory.
 * @throws Error with a sentence that names the setting
 */
export function readSettings(env: NodeJS.ProcessEnv = process.env): Settings {
  const set = taken(variables.safeParse(given(env)), env)
  const network = set.CUSTODY_NETWORK
  const { networks, sweep } =
    network === 'mainnet'
      ? readConfiguration(resolve(set.CUSTODY_CONFIG), loadRegistry(network))
      : {
          networks: {},
          sweep: {},
        }
  return {
    home: dataDirOf(env),
    port: set.PORT,
    host: set.CUSTODY_HOST,
    publicUrl: set.CUSTODY_PUBLIC_URL ?? null,
    databaseUrl: set.DATABASE_URL ?? null,
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
    pollMs: network === 'local' ? 500 : 5000,
    prepaidTiers: set.CUSTODY_PREPAID_TIERS,
    feeBumpAfterMs: set.CUSTODY_FEE_BUMP_AFTER_S * 1000,
    logLevel: set.CUSTODY_LOG_LEVEL,
    role: set.CUSTODY_ROLE,
    localChains: set.CUSTODY_LOCAL_CHAINS ?? null,
    reservesPublic: set.CUSTODY_RESERVES_PUBLIC,
    allowDeprecated: new Set(set.CUSTODY_ALLOW_DEPRECATED),
    webhookAllow: set.CUSTODY_WEBHOOK_ALLOW ?? (network === 'local' ? LOOPBACK : []),
    metricsAllow: set.CUSTODY_METRICS_ALLOW ?? LOOPBACK,
    aml: {
      urls: {
        CHAINALYSIS: set.CUSTODY_AML_CHAINALYSIS_URL ?? null,
        ELLIPTIC: set.CUSTODY_AML_ELLIPTIC_URL ?? null,
        TRM: set.CUSTODY_AML_TRM_URL ?? null,
      },
      ellipticThresholds: set.CUSTODY_AML_ELLIPTIC_THRESHOLDS,
      trmChains: set.CUSTODY_AML_TRM_CHAINS,
      ofacFile: set.CUSTODY_OFAC_FILE ?? null,
    },
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
