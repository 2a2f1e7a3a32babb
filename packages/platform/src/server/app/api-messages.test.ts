import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import * as fc from '../../../../../testing/property.ts'
import { endpoints } from './endpoints.ts'
import { asking, concrete, useApi } from '../../../testing/api-support.ts'
import { transferBody, type User } from '../../../testing/harness.ts'

const api = useApi()
let user: User
before(async () => {
  await api.started
  user = await api.user('messages')
})

const ask = asking(() => user)

test('error messages state the exact limit of the field', async () => {
  for (const asset of ['ETH', 'BTC']) await ask('POST', '/dac/v1/create-wallet', { asset })
  const to = '0x00000000000000000000000000000000000000aa'
  for (const [body, said] of [
    [
      transferBody('ETH', '1', to, { fee_rate: 1_000_000 }),
      /^fee_rate: the smallest transaction would cost 21 ETH; the signer nodes' maximum for one transaction is [\d.]+ ETH$/,
    ],
    [
      transferBody('BTC', '1', 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080', { fee_rate: 0.5 }),
      'fee_rate: must be at least 1 Sat/Byte, the minimum that Bitcoin relays',
    ],
    [
      transferBody('ETH', '1e30', to),
      /^amount: must be at most 340282366920938463463\.374607431768211455 ETH$/,
    ],
    [
      transferBody('ETH', '1', to, { memo: 'x'.repeat(1001) }),
      /^memo: must have at most \d+ (characters|bytes.*)$/,
    ],
    [transferBody('ETH', '1', to, { memo: '' }), 'memo: must not be empty'],
    [transferBody('ETH', '1', to, { memo: 7 }), 'memo: must be a string'],
    [
      transferBody('ETH', '1', to, { fee_level: 'urgent' }),
      /^fee_level: must be (one of )?low, medium,? (or )?high$/,
    ],
  ] as const) {
    const {
      body: { message },
    } = await ask('POST', '/dac/v1/transaction', body)
    if (typeof said === 'string') assert.equal(message, said)
    else assert.match(message, said)
  }
  assert.equal(
    (
      await ask('POST', '/dac/v1/aml', {
        provider: 'TRM',
        aml_token: 't',
        aml_risk_levels: 'HIGH',
        aml_deposit: 'yes',
        aml_withdrawal: true,
      })
    ).body.message,
    'aml_deposit: must be true or false',
  )
  assert.equal((await ask('GET', '/dac/v1/wallets')).body.message, 'asset: is required')
})

const LIBRARY =
  /\b(?:expected|received|invalid|undefined|NaN|object Object|JsonNumber|null|regex|zod|FST_|ERR_|Unexpected token)\b|\bToo (?:small|big)|[<>]=/i
const BAD: unknown[] = [
  '',
  'x',
  'x'.repeat(5000),
  '\u0000',
  '\ud800',
  '-1',
  -1,
  1e21,
  true,
  [],
  { a: 1 },
  null,
  '1e-30',
]

const BAD_TEXTS = [
  '[]',
  '7',
  '"x"',
  'null',
  '{',
  '{"a":1,"a":2}',
  '{"__proto__":1}',
  '['.repeat(40) + ']'.repeat(40),
  '\uFEFF{}',
  ' ',
]

/** Returns the schema without its wrappers (optional, nullable, default). */
const within = (schema: unknown): unknown => {
  const { innerType } = (schema as { def?: { innerType?: unknown } }).def ?? {}
  return innerType === undefined ? schema : within(innerType)
}

/**
 * Returns a function that selects test values for a field: all values for the first two fields of
 * each schema, and for each further field three values, which rotate.
 */
function trying(): <T>(schema: unknown, values: readonly T[]) => readonly T[] {
  const seen = new Map<unknown, number>()
  return (schema, values) => {
    const count = seen.get(within(schema)) ?? 0
    seen.set(within(schema), count + 1)
    return count < 2
      ? values
      : [0, 1, 2].map((index) => values[(count * 3 + index) % values.length]!)
  }
}

test('no error message of any endpoint contains a text of a library', async () => {
  const seen = new Set<string>()
  const look = async (method: string, path: string, body?: unknown) => {
    const { status, body: problem, text } = await ask(method, path, body)
    assert.ok(status < 500 || status === 503, `${method} ${path} ${JSON.stringify(body)}: ${text}`)
    if (status < 400) return
    // The caller's own text may contain any word, and the states of an invoice appear under their
    // own names.
    assert.doesNotMatch(
      problem.message.replace(/^\w+: (?:nan|"?null"?) is|(?:Expired|settled), invalid$/i, ''),
      LIBRARY,
      `${method} ${path} ${JSON.stringify(body)?.slice(0, 300)}`,
    )
    if (status === 400) assert.match(problem.message, /^[\w.-]+: /, `${method} ${path}`)
    seen.add(problem.message)
  }
  const good: Record<string, unknown> = {
    asset: 'ETH',
    amount: 1,
    address: '0x00000000000000000000000000000000000000aa',
    destination_address: '0x00000000000000000000000000000000000000aa',
    destination_type: 'EXTERNAL',
    source_type: 'INTERNAL',
    fee_rate: 1,
    provider: 'TRM',
    aml_token: 't',
    aml_risk_levels: 'HIGH',
    aml_deposit: true,
    aml_withdrawal: true,
    resource: 'ENERGY',
    min_amount: 1,
    daily_cap: 2,
    expires_at: '2099-01-01T00:00:00Z',
    status: 'settled',
    reason: 'x',
    exchange: 'kraken',
    label: 'x',
    api_key: 'k',
    api_secret: 'c2Vj',
    exchange_account: '00000000-0000-4000-8000-000000000000',
    market: 'BTC/USD',
    side: 'buy',
    type: 'limit',
    price: 1,
  }
  const valuesFor = trying()
  for (const { method, path, body, query, params } of endpoints) {
    const at = concrete(path)
    const shape = (body as { shape?: Record<string, unknown> } | undefined)?.shape
    const whole = Object.fromEntries(
      Object.keys(shape ?? {}).flatMap((name) =>
        name in good
          ? [
              [
                name,
                (path.startsWith('/dav')
                  ? { ...good, asset: 'TRX', address: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' }
                  : good
                )[name],
              ],
            ]
          : [],
      ),
    )
    for (const name of Object.keys(shape ?? {})) {
      for (const value of valuesFor(shape![name], BAD))
        await look(method, at, { ...whole, [name]: value })
      const { [name]: _, ...without } = whole
      await look(method, at, without)
    }
    if (method !== 'GET')
      for (const text of valuesFor('text', BAD_TEXTS)) await look(method, at, text)
    for (const [name, schema] of Object.entries(
      (query as { shape?: Record<string, unknown> } | undefined)?.shape ?? {},
    )) {
      for (const value of valuesFor(schema, [
        '',
        'x',
        'x'.repeat(5000),
        '\u0000',
        '-1',
        '1e9',
        'null',
      ]))
        await look(method, `${at}?${name}=${encodeURIComponent(value)}`)
    }
    if (params)
      for (const value of ['x', '%00', '%20', 'a'.repeat(150)])
        await look(
          method,
          path.replace(/\{\w+\}/, value),
          method === 'GET' ? undefined : body ? whole : {},
        )
  }
  assert.ok(seen.size > 60, `only ${seen.size} messages were seen`)
})

test('no body or query causes a 500, and every refusal names a field', async () => {
  const writable = endpoints.filter(({ method, access }) => method !== 'GET' && access !== 'public')
  // Streaming endpoints are left out because their responses do not end.
  const listed = endpoints.filter(({ query, streams }) => query && !streams)
  const names = (schema: unknown) =>
    Object.keys((schema as { shape?: object } | undefined)?.shape ?? {})
  const leaf = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.double(),
    fc.constant(null),
    fc.boolean(),
    fc.bigInt().map(String),
    fc.constantFrom(
      'BTC',
      'ETH',
      'TRX',
      'XRP',
      'SOL',
      'EXTERNAL',
      'INTERNAL',
      'ENERGY',
      '0.1',
      '1e-30',
      '0x00000000000000000000000000000000000000aa',
      '2099-01-01T00:00:00Z',
    ),
  )
  const requests = fc
    .constantFrom(...writable)
    .chain((endpoint) =>
      fc.tuple(
        fc.constant(endpoint),
        fc.dictionary(
          fc.constantFrom(...names(endpoint.body), 'more'),
          fc.oneof({ weight: 8, arbitrary: leaf }, fc.array(leaf), fc.object()),
          { noNullPrototype: true },
        ),
      ),
    )
  const assertProblem = ({ status, body, text }: Awaited<ReturnType<typeof ask>>, what: string) => {
    assert.ok(status < 500 || status === 503, `${what}: ${text}`)
    if (status === 400)
      assert.ok(
        typeof body.field === 'string' && body.message.startsWith(`${body.field}: `),
        `${what}: ${text}`,
      )
  }
  await fc.assert(
    fc.asyncProperty(requests, async ([{ method, path }, body]) =>
      assertProblem(
        await ask(method, concrete(path), JSON.stringify(body)),
        `${method} ${path} ${JSON.stringify(body)}`,
      ),
    ),
    { numRuns: 300, seed: 11 },
  )
  const queried = fc
    .constantFrom(...listed)
    .chain((endpoint) =>
      fc.tuple(
        fc.constant(endpoint),
        fc.dictionary(
          fc.constantFrom(...names(endpoint.query), 'more'),
          fc.oneof(
            fc.string({ unit: 'binary' }),
            fc.integer().map(String),
            fc.constantFrom('BTC', 'ETH', 'pending', 'Deposit', 'INTERNAL'),
          ),
          { noNullPrototype: true },
        ),
      ),
    )
  await fc.assert(
    fc.asyncProperty(queried, async ([{ path }, query]) => {
      const text = Object.entries(query)
        .map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`)
        .join('&')
      assertProblem(await ask('GET', `${concrete(path)}?${text}`), `${path} ${text}`)
    }),
    { numRuns: 200, seed: 12 },
  )
})
