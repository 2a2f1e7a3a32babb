import { existsSync, readFileSync } from 'node:fs'
import { ChainError, parseAmount, type Registry } from '@custody/chains/basics'
import { reasonOf } from '@custody/chains/reason'
import { z } from 'zod'
import { MULTIPLE_DECIMALS, type SweepRule } from './sweep-rules.ts'
import { scopeNamed } from './sweep-rules.ts'

const text = z.string({ error: 'must be a string' })
const endpoint = z.object({
  url: z.string({ error: 'must be an http(s) URL' }).regex(/^https?:\/\//, 'must be an http(s) URL'),
  username: text.optional(), password: text.optional(), headers: z.record(z.string(), text).optional(),
})

/** Where a network's RPC endpoint is. */
export interface Endpoint { url: string; username?: string; password?: string; headers?: Record<string, string> }

const decimal = z.union([z.string(), z.number()], { error: 'must be a number' }).transform(String)
const rule = z.object({ cost_multiple: decimal.optional(), min_amount: decimal.optional() })

const file = z.object({
  networks: z.record(z.string(), endpoint).default({}),
  sweep: z.object({ networks: z.record(z.string(), rule).default({}), assets: z.record(z.string(), rule).default({}) }).prefault({}),
}, { error: 'must hold a JSON object, as custody.config.example.json does' })

export interface Configuration { networks: Record<string, Endpoint>; sweep: Record<string, SweepRule> }

/** Names and amounts by the asset registry. */
const configuration = (registry: Registry) => file.transform(({ networks, sweep }, context): Configuration => {
  const rules: Configuration['sweep'] = {}
  for (const kind of ['networks', 'assets'] as const) {
    for (const [of, { cost_multiple: multiple, min_amount: least }] of Object.entries(sweep[kind])) {
      const tell = (message: string, ...path: string[]) => {
        context.addIssue({ code: 'custom', message, path: ['sweep', kind, of, ...path] })
      }
      const amount = (name: string, written: string | undefined, decimals: number): bigint | null => {
        try {
          return written === undefined ? null : parseAmount(written, decimals)
        } catch (error) {
          if (!(error instanceof ChainError)) throw error
          tell(error.message, name)
          return null
        }
      }
      try {
        const scope = scopeNamed(registry, kind === 'networks' ? { network: of } : { asset: of })
        if (kind === 'networks' && least !== undefined) tell('an amount is set for an asset', 'min_amount')
        rules[scope] = {
          cost_multiple: amount('cost_multiple', multiple, MULTIPLE_DECIMALS),
          min_amount: amount('min_amount', least, registry.asset(of)?.decimals ?? 0),
        }
      } catch (error) {
        tell(reasonOf(error))
      }
    }
  }
  return { networks: networks as Configuration['networks'], sweep: rules }
})

/**
 * Reads custody.config.json; where there is none, nothing is configured.
 * @throws Error that names the file and the field, and shows no value: URLs hold keys
 */
export function readConfiguration(path: string, registry: Registry): Configuration {
  if (!existsSync(path)) return { networks: {}, sweep: {} }
  let json: unknown
  try {
    json = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    // The parser's own words quote the text around the mistake.
    const why = error instanceof SyntaxError ? 'is not valid JSON' : `cannot be read (${(error as NodeJS.ErrnoException).code})`
    throw new Error(`${path}: ${why}`, { cause: error })
  }
  const parsed = configuration(registry).safeParse(json)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues as [z.core.$ZodIssue]
  throw new Error([path, ...(issue.path.length > 0 ? [issue.path.join('.')] : []), issue.message].join(': '))
}
