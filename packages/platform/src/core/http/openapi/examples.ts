import type { Components, JsonSchema } from './components.ts'

export const EXAMPLE_ID = '7c9e6679-7425-40de-944b-e07fc1f90ae7'
export const EXAMPLE_TIME = '2026-11-22T10:00:00.000Z'
const ADDRESS = 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq'
const HASH = 'f4184fc596403b9d638783cf57adfe4c75c605f6356fbc91338530e9831e9e16'

/** Typical values of fields, by the field's name or by the names of its schema and field. */
const FIELDS: Readonly<Record<string, unknown>> = {
  'Asset.name': 'Bitcoin',
  'Asset.network': 'BTC',
  'Asset.blockchain': 'Bitcoin',
  'Asset.ticker': 'BTC',
  'Asset.decimals': 8,
  'Asset.contract_address': null,
  'Asset.min_withdrawal': 0.00001,
  'Transaction.type': 'Withdraw',
  'Transaction.sub_status': 'CONFIRMING',
  'Transaction.source_type': 'INTERNAL',
  'Transaction.destination_type': 'EXTERNAL',
  'Transaction.failure_reason': null,
  'Transaction.voids': [],
  'AmlSettings.warning': null,
  'Transaction.confirmed_at': null,
  asset: 'BTC',
  asset_name: 'BTC',
  fee_asset: 'BTC',
  native_asset: 'BTC',
  ticker: 'BTC',
  network: 'BTC',
  from_asset: 'BTC',
  to_asset: 'USDT',
  amount: 0.015,
  min_amount: 0.01,
  daily_cap: 2,
  fee: 0.00000452,
  fee_rate: 3.2,
  fee_rate_unit: 'sat/vB',
  low: 1.1,
  medium: 3.2,
  high: 6.4,
  amount_in_usd: 1312.5,
  platform_fee: 1.31,
  balance: 1.25,
  omnibus_balance: 0.75,
  reserved: 0.015,
  available: 1.25,
  total: 1.4,
  usd: 109375,
  price: 87500.5,
  price_usd: 87500.5,
  rate: 87500.5,
  crypto_amount: 0.00029143,
  paid_amount: 0,
  due_amount: 0.00029143,
  fiat: 'USD',
  fiat_amount: 25.5,
  currency: 'USD',
  tier: 'FREE',
  volume_30d: 48200,
  balance_change: -1.31,
  monthly: 0,
  minimum: 0,
  threshold: 0.02,
  address: ADDRESS,
  destination_address: ADDRESS,
  omnibus_address: ADDRESS,
  destination_id: ADDRESS,
  source_id: ADDRESS,
  dest_id: ADDRESS,
  address_tag: null,
  hash: HASH,
  path: [1, 0, 4],
  payment_uri: `bitcoin:${ADDRESS}`,
  label: 'invoice 17',
  memo: 'Rent, May',
  sequence_id: 'payout-2041',
  order_id: 'order-1001',
  workspace: 'acme',
  curve: 'secp256k1',
  key_id: 'k-1',
  mode: 'mainnet',
  epoch: 0,
  public_key: `02${'79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798'}`,
  chain_code: 'a3'.repeat(32),
  signature: '5f'.repeat(64),
  node: 1,
  height: 120,
  voided_at: 1795341600,
  unfinished: 0,
  intent: '["pay","nonce","k","n"]',
  rule: null,
  confirmations: 2,
  required: 3,
  page: 1,
  limit: 50,
  version: 3,
  exchange: 'kraken',
  market: 'BTC/USD',
  key_hint: 'f3a9',
  currency_code: 'USD',
  api_key: 'its key',
  api_secret: 'its secret',
  url: 'https://shop.example.org/webhooks',
  events: ['transaction.*'],
  event_id: EXAMPLE_ID,
  object: EXAMPLE_ID,
  status_code: 200,
  duration_ms: 84,
  tries: 1,
  tries_left: 9,
  'AmlSettings.aml_token': '••••3f2a',
  aml_token: 'its key',
  aml_risk_levels: 'SEVERE,HIGH',
  provider: 'CHAINALYSIS',
  risk_level: 'SEVERE',
  source: 'CHAINALYSIS',
  blockchain: 'Bitcoin',
  name: 'Bitcoin',
  network_name: 'Bitcoin',
  merchant: 'Hats',
  tag_name: null,
  decimals: 8,
  expires_in: 900,
  tolerance: 0,
  from_usd: 500,
  checkout_url: 'https://custody.example.org/checkout/8Fq2',
  success_url: 'https://shop.example.org/thanks',
  failed_url: 'https://shop.example.org/cart',
  webhook_url: null,
  explorer_url: null,
  email: 'payer@example.org',
  expiry: EXAMPLE_TIME,
  now: EXAMPLE_TIME,
  timestamp: EXAMPLE_TIME,
  at: EXAMPLE_TIME,
  next: EXAMPLE_ID,
  after: EXAMPLE_ID,
  sources: ['kraken', 'coinbase'],
  reason: null,
  failure_reason: null,
  error: null,
  answer: 'ok',
  body: '{"type":"transaction.confirmed"}',
  secret: `whsec_${'A'.repeat(43)}=`,
  kty: 'RSA',
  n: 'sXch…',
  e: 'AQAB',
  kid: '1f2e…',
  previous: null,
  changed: false,
  display_name: 'Hats',
  resource: 'ENERGY',
  note: null,
  float: 0.0004,
  fee_cap: null,
  max_gas_price: null,
  allowed_origins: ['https://shop.example.org'],
  type: 'transaction.confirmed',
  quote: EXAMPLE_ID,
  depth: 5,
  description: 'Our ledger',
}

const typeOf = ({ type }: JsonSchema): unknown =>
  Array.isArray(type) ? type.find((each) => each !== 'null') : type

function fits(value: unknown, schema: JsonSchema): boolean {
  const types = [schema['type']].flat()
  const words = schema['enum']
  if (Array.isArray(words) && !words.includes(value)) return false
  if (value === null) return types.includes('null')
  if (Array.isArray(value)) return types.includes('array')
  if (typeof value === 'number') {
    const { minimum = -Infinity, maximum = Infinity } = schema as Record<string, number>
    const isOfType =
      types.includes('number') || (types.includes('integer') && Number.isInteger(value))
    return isOfType && value >= minimum && value <= maximum
  }
  return types.includes(typeof value)
}

/**
 * Returns an example for a schema: its own example, the typical value of its field, or the smallest
 * valid value.
 */
export function exampleOf(
  components: Components,
  schema: JsonSchema,
  owner = '',
  name = '',
): unknown {
  const {
    $ref,
    examples,
    const: only,
    enum: words,
    default: preset,
    anyOf,
    oneOf,
    allOf,
  } = schema as {
    $ref?: string
    examples?: unknown[]
    const?: unknown
    enum?: unknown[]
    default?: unknown
    anyOf?: JsonSchema[]
    oneOf?: JsonSchema[]
    allOf?: JsonSchema[]
  }
  if (Array.isArray(examples)) return examples[0]
  if (typeof $ref === 'string')
    return exampleOf(components, components.resolve(schema), $ref.split('/').at(-1), name)
  if (only !== undefined) return only
  for (const key of [`${owner}.${name}`, name])
    if (Object.hasOwn(FIELDS, key) && fits(FIELDS[key], schema)) return FIELDS[key]
  if (words) return words[0]
  if (preset !== undefined) return preset
  const choices = anyOf ?? oneOf
  if (choices)
    return exampleOf(
      components,
      choices.find((each) => each['type'] !== 'null') ?? (choices[0] as JsonSchema),
      owner,
      name,
    )
  if (allOf)
    return Object.assign({}, ...allOf.map((each) => exampleOf(components, each, owner, name)))
  return ofType(components, schema, owner, name)
}

function ofType(components: Components, schema: JsonSchema, owner: string, name: string): unknown {
  const {
    properties = {},
    required = [],
    items,
    minItems = 1,
    minimum,
    format,
    maxLength,
  } = schema as {
    properties?: Record<string, JsonSchema>
    required?: string[]
    items?: JsonSchema
    minItems?: number
    minimum?: number
    format?: string
    maxLength?: number
  }
  switch (typeOf(schema)) {
    case 'object': {
      const shown = Object.entries(properties).filter(
        ([field]) => required.includes(field) || field === 'sequence_id',
      )
      return Object.fromEntries(
        shown.map(([field, each]) => [field, exampleOf(components, each, owner, field)]),
      )
    }
    case 'array':
      return Array.from({ length: Math.max(1, minItems) }, () =>
        exampleOf(components, items ?? {}, owner, name),
      )
    case 'boolean':
      return ![
        'stale',
        'overdue',
        'disabled',
        'is_late',
        'has_more',
        'cancel_requested',
        'takes_tag',
        'requires_tag',
        'cancelled',
      ].includes(name)
    case 'integer':
      return Math.max(minimum ?? 1, 1)
    case 'number':
      return 1.5
    case 'null':
      return null
    default:
      if (format === 'date-time' || name.endsWith('_at')) return EXAMPLE_TIME
      return name === '' || name === 'id' || name.endsWith('_id') || name === 'exchange_account'
        ? EXAMPLE_ID
        : 'text'.slice(0, maxLength)
  }
}
