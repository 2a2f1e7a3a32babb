import { existsSync, readFileSync } from 'node:fs'
import {
  ChainError,
  parseAmount,
  type Network,
  type Registry,
  type RpcEndpoint,
} from '@custody/chains/basics'
import { reasonOf } from '@custody/chains/reason'
import { z } from 'zod'
import { suggestName } from '../suggest-name.ts'
import { MULTIPLE_DECIMALS, type SweepRule } from './sweep-rules.ts'
import { scopeNamed } from './sweep-rules.ts'

const text = z.string({ error: 'must be a string' })
const LEVELS = ['low', 'medium', 'high'] as const
/** Decimals of a fee rate in satoshi per vbyte. */
const FLOOR_DECIMALS = 3
/** Decimals of a tip in Gwei. */
const GWEI_DECIMALS = 9
const rate = z.union([z.string(), z.number()], { error: 'must be a number' }).transform(String)

/**
 * Minimum of `requests_per_day`: fewer are not sufficient to read the chain's head each minute and
 * to serve transfers.
 */
const REQUESTS_LEAST = 5000
/** Default and maximum number of requests a minute that compare balances with the books. */
export const BALANCE_REQUESTS = 30
const BALANCE_REQUESTS_MAX = 6000
const BALANCE_REQUESTS_RULE = `must be a whole number of requests, 0 to ${BALANCE_REQUESTS_MAX}`
const REQUESTS = `must be a whole number of requests, at least ${REQUESTS_LEAST}`

const endpoint = z.object({
  url: z
    .string({ error: 'must be an http(s) URL' })
    .regex(/^https?:\/\//, 'must be an http(s) URL')
    .refine((url) => URL.canParse(url), 'must be an http(s) URL'),
  username: text.optional(),
  password: text.optional(),
  headers: z.record(z.string(), text).optional(),
  requests_per_day: z.int({ error: REQUESTS }).min(REQUESTS_LEAST, REQUESTS).optional(),
})

/** Maximum number of endpoints. More are not safer, and each one is queried for its head. */
const ENDPOINTS_MAX = 8
const ENDPOINTS = `must be a list of 1 to ${ENDPOINTS_MAX} endpoints`
const QUORUM = 'must be a whole number of endpoints'

/**
 * One endpoint, or `endpoints` in the order of preference, and data of the network that does not
 * depend on the endpoint.
 */
const entry = endpoint
  .partial()
  .extend({
    endpoints: z
      .array(endpoint, { error: ENDPOINTS })
      .min(1, ENDPOINTS)
      .max(ENDPOINTS_MAX, ENDPOINTS)
      .optional(),
    quorum: z.int({ error: QUORUM }).min(1, QUORUM).optional(),
    balance_requests_per_minute: z
      .int({ error: BALANCE_REQUESTS_RULE })
      .min(0, BALANCE_REQUESTS_RULE)
      .max(BALANCE_REQUESTS_MAX, BALANCE_REQUESTS_RULE)
      .optional(),
    fee_floors: z
      .strictObject({ low: rate.optional(), medium: rate.optional(), high: rate.optional() })
      .optional(),
    min_tip: rate.optional(),
    checkpoint: z
      .strictObject(
        {
          height: z
            .int({ error: 'must be the height of a block' })
            .min(1, 'must be the height of a block'),
          hash: z
            .string({ error: 'must be a block hash of 64 hexadecimal digits' })
            .regex(/^[0-9a-fA-F]{64}$/, 'must be a block hash of 64 hexadecimal digits')
            .transform((hash) => hash.toLowerCase()),
        },
        { error: 'must have height and hash of a block' },
      )
      .optional(),
  })
  .transform(
    (
      {
        endpoints,
        quorum = 1,
        balance_requests_per_minute: balanceRequests,
        fee_floors: floors,
        min_tip: tip,
        checkpoint,
        ...own
      },
      context,
    ): NetworkEndpoints => {
      const report = (message: string, ...path: (string | number)[]) =>
        context.addIssue({ code: 'custom', message, path })
      const [field] = Object.keys(own)
      if (endpoints && field !== undefined)
        report('is set per endpoint: move it into endpoints', field)
      if (!endpoints && own.url === undefined) report('must be an http(s) URL', 'url')
      const several = (endpoints ?? [own]) as RpcEndpoint[]
      // A URL may be listed only once, because the same endpoint under two names would always agree
      // with itself.
      const urls = several.map(({ url }) => url)
      const again = urls.findIndex((url, at) => url !== undefined && urls.indexOf(url) < at)
      if (again >= 0)
        report('is the URL of another endpoint of the list', 'endpoints', again, 'url')
      if (quorum > several.length)
        report(`must not exceed the number of its endpoints, ${several.length}`, 'quorum')
      const shared = {
        ...(floors === undefined ? {} : { fee_floors: floors }),
        ...(tip === undefined ? {} : { min_tip: tip }),
        ...(checkpoint === undefined ? {} : { checkpoint }),
      }
      return {
        endpoints: several.map((each) => ({ ...each, ...shared }) as RpcEndpoint),
        quorum,
        ...(balanceRequests === undefined ? {} : { balanceRequests }),
      }
    },
  )

/**
 * A network's endpoints in the order of preference, and the number of them that must agree before
 * money depends on their data.
 */
export interface NetworkEndpoints {
  endpoints: readonly RpcEndpoint[]
  quorum: number
  /** Number of requests a minute that compare balances with the books; absent: the default. */
  balanceRequests?: number
}

const ENTRY = Object.keys(entry.in.shape)

const decimal = z.union([z.string(), z.number()], { error: 'must be a number' }).transform(String)
const rule = z.object({ cost_multiple: decimal.optional(), min_amount: decimal.optional() })

const file = z.object(
  {
    networks: z.record(z.string(), entry).default({}),
    sweep: z
      .object({
        networks: z.record(z.string(), rule).default({}),
        assets: z.record(z.string(), rule).default({}),
      })
      .prefault({}),
  },
  { error: 'must contain a JSON object, as custody.config.example.json does' },
)

/** Maximum length of a network's code; a longer name is the network's full name. */
const CODE_LENGTH_MAX = 4
/** Key that is allowed everywhere, for comments by people. */
const REMARK = 'comment'

/**
 * Returns the path of the first unknown name, because a misspelt setting would be ignored silently.
 */
function unknownName(json: unknown, registry: Registry): string | null {
  const codes = registry.networks.map(({ code }) => code)
  const tickers = registry.assets.map(({ asset_name: name }) => name)
  // Short codes are similar to many others, so only long names are suggested.
  const byName = new Map(
    registry.networks.flatMap(({ code, name }) => [
      [name, code],
      [code, code],
    ]),
  )
  const long = [...byName.keys()].filter(({ length }) => length > CODE_LENGTH_MAX)
  const likelyNetwork = (input: string): string | null => {
    const name =
      [...byName.keys()].find((each) => each.toLowerCase() === input.toLowerCase()) ??
      suggestName(input, long)
    return name === null ? null : (byName.get(name) ?? null)
  }
  const look = (
    value: unknown,
    path: readonly string[],
    existing: readonly string[],
    what: string,
  ): string | null => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
    const name = Object.keys(value).find((each) => each !== REMARK && !existing.includes(each))
    if (name === undefined) return null
    const likely = existing === codes ? likelyNetwork(name) : suggestName(name, existing)
    return `${[...path, name].join('.')}: ${what}${likely === null ? `; known are ${existing.join(', ')}` : `; did you mean ${likely}?`}`
  }
  const { networks, sweep } = json as {
    networks?: Record<string, unknown>
    sweep?: Record<string, Record<string, unknown>>
  }
  const isNoSetting = 'is not a known setting'
  const below = (part: unknown, path: readonly string[], existing: readonly string[]) =>
    Object.entries(part ?? {}).map(([name, value]) =>
      look(value, [...path, name], existing, isNoSetting),
    )
  return (
    [
      look(json, [], Object.keys(file.shape), isNoSetting),
      look(networks, ['networks'], codes, 'is not a known network'),
      ...below(networks, ['networks'], ENTRY),
      ...Object.entries(networks ?? {}).flatMap(([code, input]) => {
        const { endpoints } = (input ?? {}) as { endpoints?: unknown }
        return Array.isArray(endpoints)
          ? below(endpoints, ['networks', code, 'endpoints'], Object.keys(endpoint.shape))
          : []
      }),
      look(sweep, ['sweep'], ['networks', 'assets'], isNoSetting),
      look(sweep?.['networks'], ['sweep', 'networks'], codes, 'is not a known network'),
      look(sweep?.['assets'], ['sweep', 'assets'], tickers, 'is not a known asset'),
      ...(['networks', 'assets'] as const).flatMap((kind) =>
        below(sweep?.[kind], ['sweep', kind], Object.keys(rule.shape)),
      ),
    ].find((problem) => problem !== null) ?? null
  )
}

export interface Configuration {
  networks: Record<string, NetworkEndpoints>
  sweep: Record<string, SweepRule>
}

/** Schema of the configuration file. Names and amounts are validated by the asset registry. */
const configuration = (registry: Registry) =>
  file.transform(({ networks, sweep }, context): Configuration => {
    const rules: Configuration['sweep'] = {}
    for (const kind of ['networks', 'assets'] as const) {
      for (const [name, rule] of Object.entries(sweep[kind])) {
        const report = (message: string, ...path: string[]) => {
          context.addIssue({ code: 'custom', message, path: ['sweep', kind, name, ...path] })
        }
        try {
          const scope = scopeNamed(
            registry,
            kind === 'networks' ? { network: name } : { asset: name },
          )
          if (kind === 'networks' && rule.min_amount !== undefined)
            report('an amount requires an asset', 'min_amount')
          rules[scope] = readRule(rule, registry.asset(name)?.decimals ?? 0, report)
        } catch (error) {
          report(reasonOf(error))
        }
      }
    }
    for (const [
      code,
      {
        endpoints: [first],
      },
    ] of Object.entries(networks)) {
      const network = registry.network(code)
      if (!network || !first) continue
      checkNetwork(network, first, (message, ...path) => {
        context.addIssue({ code: 'custom', message, path: ['networks', code, ...path] })
      })
    }
    return { networks, sweep: rules }
  })

/** Reports an issue, with the path of the field below the checked part. */
type Report = (message: string, ...path: string[]) => void

/** Reads the amounts of a sweep rule. An invalid amount is reported and null. */
function readRule(
  { cost_multiple: multiple, min_amount: least }: z.output<typeof rule>,
  decimals: number,
  report: Report,
): SweepRule {
  const amount = (name: string, written: string | undefined, digits: number): bigint | null => {
    try {
      return written === undefined ? null : parseAmount(written, digits)
    } catch (error) {
      if (!(error instanceof ChainError)) throw error
      report(error.message, name)
      return null
    }
  }
  return {
    cost_multiple: amount('cost_multiple', multiple, MULTIPLE_DECIMALS),
    min_amount: amount('min_amount', least, decimals),
  }
}

/** Reports a minimum tip that a network does not support, or that its nodes would refuse. */
function checkTip(network: Network, written: string, report: Report): void {
  if (network.chain_id === undefined) {
    report('is supported only for EVM networks', 'min_tip')
    return
  }
  try {
    const tip = parseAmount(written, GWEI_DECIMALS)
    if (tip < BigInt(network.min_tip ?? '1'))
      report('must not be below the minimum that the nodes of the network accept', 'min_tip')
  } catch (error) {
    if (!(error instanceof ChainError)) throw error
    report(error.message, 'min_tip')
  }
}

/** Reports a checkpoint, fee floors and a minimum tip that a network does not support. */
function checkNetwork(
  network: Network,
  { fee_floors: floors, checkpoint, min_tip: tip }: NetworkEndpoints['endpoints'][number],
  report: Report,
): void {
  const { utxo } = network
  if (tip !== undefined) checkTip(network, tip, report)
  if (checkpoint !== undefined && !utxo) {
    report(
      'is supported only for Bitcoin and similar networks: other networks are identified by their chain id or first block',
      'checkpoint',
    )
  }
  if (floors === undefined) return
  if (!utxo) {
    report(
      'is supported only for Bitcoin and similar networks: other networks always report their fee rates',
      'fee_floors',
    )
    return
  }
  let below = BigInt(utxo.min_fee_rate) * 10n ** BigInt(FLOOR_DECIMALS)
  for (const level of LEVELS) {
    const written = floors[level] ?? utxo.fee_floors?.[level]
    if (written === undefined) continue
    try {
      const floor = parseAmount(written, FLOOR_DECIMALS)
      if (floor < below)
        report(
          'must not be below the minimum that the network relays, nor below a lower level',
          'fee_floors',
          level,
        )
      else below = floor
    } catch (error) {
      if (!(error instanceof ChainError)) throw error
      report(error.message, 'fee_floors', level)
    }
  }
}

/**
 * Reads custody.config.json; if the file does not exist, nothing is configured.
 * @throws Error that names the file and the field, without any value, because URLs contain keys
 */
export function readConfiguration(path: string, registry: Registry): Configuration {
  if (!existsSync(path)) return { networks: {}, sweep: {} }
  let json: unknown
  try {
    json = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    // The parser's own message quotes the text around the error, which may contain keys.
    const why =
      error instanceof SyntaxError
        ? 'is not valid JSON'
        : `cannot be read (${(error as NodeJS.ErrnoException).code})`
    throw new Error(`${path}: ${why}`, { cause: error })
  }
  const unknown =
    typeof json === 'object' && json !== null && !Array.isArray(json)
      ? unknownName(json, registry)
      : null
  if (unknown !== null) throw new Error(`${path}: ${unknown}`)
  const parsed = configuration(registry).safeParse(json)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues as [z.core.$ZodIssue]
  throw new Error(
    [path, ...(issue.path.length > 0 ? [issue.path.join('.')] : []), issue.message].join(': '),
  )
}
