import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { before, test } from 'node:test'
import * as fc from '../../../../../../testing/property.ts'
import { DECIMAL_FIELDS, hashRequest, plainDecimal } from './payload.ts'
import { useApi } from '../../../../testing/api-support.ts'
import { call, transferBody } from '../../../../testing/harness.ts'

const api = useApi()
before(() => api.started)

interface Schema {
  $ref?: string
  type?: string
  properties?: Record<string, Schema>
  anyOf?: Schema[]
}
interface Document {
  paths: Record<
    string,
    Record<string, { requestBody?: { content: { 'application/json': { schema: Schema } } } }>
  >
  components: { schemas: Record<string, Schema> }
}
const document = JSON.parse(
  readFileSync(new URL('../../../../../../docs/openapi.json', import.meta.url), 'utf8'),
) as Document

/** Properties of the body of each request that may be repeated by its `sequence_id`. */
const repeatable = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.values(methods).flatMap(({ requestBody }) => {
    const schema = requestBody?.content['application/json'].schema
    const name = schema?.$ref?.split('/').at(-1)
    const { properties = {} } = (name ? document.components.schemas[name] : schema) ?? {}
    return 'sequence_id' in properties ? [{ path, properties }] : []
  }),
)
/** Fields of old clients, which are not part of the payload. */
const NOT_COMPARED = new Set(['type', 'ts'])
/** Whether a field is a decimal: a number or its digits as a string, or null. */
const isDecimal = (schema: Schema): boolean => {
  const types = (schema.anyOf ?? [schema]).flatMap((each) => [
    each.type,
    ...(each.anyOf ?? []).map(({ type }) => type),
  ])
  return types.includes('number') && types.includes('string')
}

test('compares the decimal fields of every repeatable request by value, and no other field', () => {
  assert.ok(repeatable.length >= 8, `${repeatable.length} requests`)
  const found = new Set<string>()
  for (const { path, properties } of repeatable)
    for (const [name, schema] of Object.entries(properties)) {
      if (NOT_COMPARED.has(name)) continue
      assert.equal(DECIMAL_FIELDS.has(name), isDecimal(schema), `${path}: ${name}`)
      if (isDecimal(schema)) found.add(name)
    }
  assert.deepEqual([...found].toSorted(), [...DECIMAL_FIELDS].toSorted())
})

test('a decimal has one spelling, which is that of its digits without needless zeros', () => {
  for (const [text, plain] of [
    ['0.001', '0.001'],
    ['0.0010', '0.001'],
    ['00.001', '0.001'],
    ['1e-3', '0.001'],
    ['10E-4', '0.001'],
    ['1.0e-03', '0.001'],
    ['1', '1'],
    ['1.0', '1'],
    ['0.1e1', '1'],
    ['1.2345e2', '123.45'],
    ['150', '150'],
    ['1.5e+2', '150'],
    ['0', '0'],
    ['0.00', '0'],
    ['0e-5', '0'],
    ['none', 'none'],
    ['-1', '-1'],
  ])
    assert.equal(plainDecimal(text as string), plain, text)
  const digits = fc.stringMatching(/^\d{1,12}$/)
  const shift = fc.integer({ min: -40, max: 40 })
  fc.assert(
    fc.property(digits, digits, shift, (whole, fraction, exponent) => {
      const plain = plainDecimal(`${whole}.${fraction}e${exponent}`)
      assert.match(plain, /^(0|[1-9]\d*)(\.\d*[1-9])?$/)
      // Compares the values as integers of the same unit.
      const [left = '', right = ''] = plain.split('.')
      assert.equal(
        BigInt(left + right.padEnd(60, '0')),
        BigInt(whole + fraction) * 10n ** BigInt(60 + exponent - fraction.length),
      )
    }),
  )
})

test('the hash depends on values, and not on spelling or order; texts stay as they are', () => {
  const first = hashRequest({ asset: 'BTC', amount: '0.1', fee_rate: '2', memo: '0.10' })
  for (const amount of ['0.10', '1e-1', '00.1'])
    for (const rate of ['2', '2.0', '2e0', '0.2E1'])
      assert.equal(
        hashRequest({ memo: '0.10', fee_rate: rate, amount, asset: 'BTC' }),
        first,
        `${amount} ${rate}`,
      )
  for (const other of [{ amount: '0.11' }, { fee_rate: '2.1' }, { memo: '0.1' }])
    assert.notEqual(
      hashRequest({ asset: 'BTC', amount: '0.1', fee_rate: '2', memo: '0.10', ...other }),
      first,
    )
})

test('a repeated transfer with equal numbers in other spellings is the same payload', async () => {
  const user = await api.user(randomUUID())
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  await api.fund(user, 'BTC', 1_000_000_000n)
  const to = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
  const sent = async (amount: string, rate: string, memo = '0.10') => {
    const more = `,"sequence_id":"spelled","memo":${JSON.stringify(memo)}`
    const body = `${transferBody('BTC', amount, to).slice(0, -1)},"fee_rate":${rate}${more}}`
    const { status, text, headers } = await call(user, 'POST', '/dac/v1/transaction', body)
    assert.equal(status, 200, text)
    return { text, isWarned: headers.get('warning') !== null }
  }
  const { text, isWarned } = await sent('0.0010', '3')
  assert.equal(isWarned, false)
  for (const [amount, rate] of [
    ['0.001', '3.0'],
    ['1e-3', '3e0'],
    ['"0.0010"', '"3"'],
    ['"1E-03"', '0.3e1'],
    ['10e-4', '"3.00"'],
  ] as const)
    assert.deepEqual(await sent(amount, rate), { text, isWarned: false }, `${amount} ${rate}`)
  for (const [amount, rate, memo] of [
    ['0.00101', '3', '0.10'],
    ['0.001', '3.01', '0.10'],
    ['0.001', '3', '0.1'],
  ] as const)
    assert.deepEqual(await sent(amount, rate, memo), { text, isWarned: true }, `${amount} ${rate}`)
  const made = await api.database.query(
    `select 1 from transactions where workspace_id = $1 and kind = 'WITHDRAWAL'`,
    [user.workspaceId],
  )
  assert.equal(made.length, 1)
})
