import { MESSAGE_MAX } from '../../bounds.ts'
import type { JsonSchema } from './components.ts'

/**
 * Largest amount. Amounts are stored as `numeric(78)` of the smallest unit, so no amount has more
 * digits before its decimal point.
 */
const AMOUNT_MAX = 1e78

const text = (maxLength: number): JsonSchema => ({ maxLength })
const number = (minimum: number, maximum: number): JsonSchema => ({ minimum, maximum })

interface Kind {
  bounds: JsonSchema
  names: string
}

/** Bounds of the strings in responses and events, by the names of their fields. */
const TEXTS: readonly Kind[] = [
  // Bounds of UUIDs, of IDs with `inv_` and 32 digits, and of numbers of ledger entries.
  {
    bounds: text(64),
    names: `id wallet_id transaction_id for_transaction_id inv_id webhook_id event_id object exchange_account request_id
      rule snapshot client_order_id kid`,
  },
  // Bounds of the IDs that an exchange assigns to orders, transfers and trades.
  { bounds: text(500), names: 'exchange_order_id exchange_transfer_id fills.id' },
  // Bounds of single words: assets and coins of exchanges, network codes, and enumerations that may
  // grow.
  {
    bounds: text(100),
    names: `asset asset_name fee_asset from_asset to_asset base quote market ticker network network_code exchange type
      sub_status source_type destination_type fee_rate_unit fee_level family provider risk_level source sources fiat kty e code mode tier
      previous_tier key_id aml_risk_levels inv_status events next`,
  },
  {
    bounds: text(200),
    names: `name title network_name blockchain issuer label key_hint merchant display_name tag_name workspace sub_account
      allowed_origins documentation field aml_token sequence_id order_id address_tag
      tag`,
  },
  // RFC 5321 limits an email address to 320 characters.
  { bounds: text(320), names: 'email' },
  {
    bounds: text(500),
    names: `address omnibus_address destination_address contract_address source_id destination_id
      ApprovalFacts.contract ApprovalFacts.to`,
  },
  { bounds: text(1000), names: 'memo n' },
  { bounds: text(128), names: 'hash txid block_hash signed outstanding' },
  // Bounds of keys, nonces and signatures in hexadecimal or base64.
  { bounds: text(256), names: 'public_key chain_code signature nonce secret category' },
  { bounds: text(2048), names: 'commitment' },
  {
    bounds: text(4096),
    names:
      'url payment_uri checkout_url explorer_url webhook_url success_url failed_url Problem.type',
  },
  // Bounds of ISO 8601 times and dates.
  { bounds: text(30), names: 'timestamp at since now expiry status_since previous_secret_until' },
  // Bounds of sentences for human readers.
  {
    bounds: text(MESSAGE_MAX),
    names: `reason failure_reason status_reason disabled_reason warning warnings answer error detail message
      authentication description checks links`,
  },
  // Bounds of signed JSON.
  { bounds: text(16 * 1024 * 1024), names: 'statement body intent' },
  {
    bounds: text(100),
    names: 'amount balance sum rate fiat_amount crypto_amount paid_amount due_amount',
  },
]

/**
 * Bounds of the numbers in responses and events. Decimals that are not listed here may be negative.
 */
const NUMBERS: readonly Kind[] = [
  {
    bounds: number(0, Number.MAX_SAFE_INTEGER),
    names: 'version height block_height voided_at unfinished held balances_age_ms duration_ms',
  },
  {
    bounds: number(0, 2_147_483_647),
    names: 'confirmations required failures tries tries_left epoch path',
  },
  { bounds: number(0, 4_294_967_295), names: 'vout' },
  { bounds: number(100, 999), names: 'status' },
  { bounds: number(1, 3), names: 'node' },
  { bounds: number(0, 100), names: 'decimals percent' },
  { bounds: number(0, 10_000), names: 'basis_points max_slippage_bps' },
  {
    bounds: number(0, AMOUNT_MAX),
    names: `price price_usd rate amount_step price_step min_amount max_amount min_cost bid ask last
      average_price protection_price limit_price fee_rate low medium high threshold min_withdrawal daily_cap ENERGY BANDWIDTH`,
  },
]
const DECIMAL = number(-AMOUNT_MAX, AMOUNT_MAX)

const byName = (kinds: readonly Kind[]) =>
  new Map(
    kinds.flatMap(({ bounds, names }) =>
      names.split(/\s+/).map((name): [string, JsonSchema] => [name, bounds]),
    ),
  )
const texts = byName(TEXTS)
const numbers = byName(NUMBERS)

/** Bounds of strings whose format determines their length. */
const FORMATS: Readonly<Record<string, JsonSchema>> = { 'date-time': text(30), uuid: text(36) }

/** Position of a schema: its field's name, and the name of the enclosing field. */
interface FieldPath {
  name: string
  parent: string
}

/**
 * Returns the bounds of a value.
 * @throws Error if neither the schema nor the name of its field defines bounds
 */
function boundsOf(
  { type, format, enum: words, const: only, ...own }: JsonSchema,
  { name, parent }: FieldPath,
): JsonSchema {
  const types = [type].flat()
  if (words !== undefined || only !== undefined) return {}
  const find = (map: ReadonlyMap<string, JsonSchema>) =>
    map.get(`${parent}.${name}`) ?? map.get(name)
  const existingOf = (match: JsonSchema | undefined): JsonSchema => {
    if (match) return match
    throw new Error(
      `${parent}.${name}: has no bounds in the OpenAPI document; state them in its schema or in openapi/bounds.ts`,
    )
  }
  if (types.includes('string'))
    return own['maxLength'] === undefined ? existingOf(FORMATS[String(format)] ?? find(texts)) : {}
  if (!types.includes('number') && !types.includes('integer')) return {}
  const isStated = own['minimum'] !== undefined && own['maximum'] !== undefined
  if (isStated) return {}
  return types.includes('integer') && own['minimum'] !== undefined && own['maximum'] === undefined
    ? number(own['minimum'] as number, Number.MAX_SAFE_INTEGER)
    : existingOf(find(numbers) ?? (format === 'decimal' ? DECIMAL : undefined))
}

/**
 * Returns the schema of a response or event with bounds for each string and number: those that the
 * schema states, or those of its field's name. Arrays and maps must state their own.
 */
export function withBounds(schema: JsonSchema, place: FieldPath): JsonSchema {
  const inner = (value: unknown, at: FieldPath) => withBounds(value as JsonSchema, at)
  const within = Object.fromEntries(
    Object.entries(schema).map(([key, value]): [string, unknown] => {
      if (key === 'properties') {
        return [
          key,
          Object.fromEntries(
            Object.entries(value as JsonSchema).map(([name, each]) => [
              name,
              inner(each, { name, parent: place.name }),
            ]),
          ),
        ]
      }
      if (key === 'items') return [key, inner(value, place)]
      if (key === 'propertyNames') return [key, inner(value, { name: 'name', parent: place.name })]
      if (key === 'additionalProperties' && typeof value === 'object')
        return [key, inner(value, place)]
      if (key === 'anyOf' || key === 'oneOf' || key === 'allOf')
        return [key, (value as JsonSchema[]).map((each) => inner(each, place))]
      return [key, value]
    }),
  )
  return {
    ...within,
    ...Object.fromEntries(
      Object.entries(boundsOf(schema, place)).filter(([key]) => schema[key] === undefined),
    ),
  }
}
