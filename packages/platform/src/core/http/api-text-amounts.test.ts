import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { parseJson, JsonNumber } from '@custody/request-auth'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { wantsTexts } from './amounts.ts'
import { useApi } from '../../../testing/api-support.ts'
import { call, transferBody } from '../../../testing/harness.ts'

/**
 * Tests of amounts as strings of digits, which clients can request so that no digit is lost when
 * JSON numbers are parsed as doubles.
 */
const api = useApi()
before(() => api.started)
const TEXTS = { accept: 'application/json; amounts=string' }
const TO = `0x${'ab'.repeat(20)}`
const WEI = '0.123456789012345678'

test('returns text amounts only if the Accept header has the parameter amounts=string', () => {
  for (const [accept, isText] of [
    [undefined, false],
    ['*/*', false],
    ['application/json', false],
    ['application/json;amounts=string', true],
    ['text/html, application/json; Amounts="STRING"; q=0.9', true],
    ['*/*;amounts=string', true],
    ['text/html; amounts=odd', false],
    ['application/json; amounts=number', false],
  ] as const)
    assert.equal(wantsTexts(accept), isText, accept)
  assert.throws(() => wantsTexts('application/json; amounts=float'), {
    code: 'INVALID_REQUEST',
    message: 'accept: amounts must be string or number',
  })
})

test('with text amounts, every decimal is text and counts stay numbers, also in a replay', async () => {
  const user = await api.user(randomUUID())
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'ETH' })
  await api.fund(user, 'ETH', 5n * 10n ** 18n)
  const body = transferBody('ETH', WEI, TO, { sequence_id: 'texts-1' })
  const plain = await call(user, 'POST', '/dac/v1/transaction', body)
  assert.equal(plain.status, 200, plain.text)
  const again = await call<Record<string, unknown>>(user, 'POST', '/dac/v1/transaction', body, {
    headers: TEXTS,
  })
  assert.equal(again.headers.get('content-type'), 'application/json; amounts=string; charset=utf-8')
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  const [numbers, texts] = [plain.text, again.text].map(
    (text) => parseJson(text) as Record<string, unknown>,
  ) as [Record<string, unknown>, Record<string, unknown>]
  for (const [name, value] of Object.entries(numbers)) {
    const isDecimal = ['amount', 'fee', 'amount_in_usd', 'platform_fee'].includes(name)
    assert.deepEqual(
      texts[name],
      isDecimal && value instanceof JsonNumber ? value.text : value,
      name,
    )
  }
  assert.equal(texts['amount'], WEI)
  const wallets = await call<{ data: { available: unknown }[] }>(
    user,
    'GET',
    '/dac/v1/balances',
    undefined,
    { headers: TEXTS },
  )
  assert.match(wallets.text, /"available":"\d+\.\d+"/)
  const list = await call(user, 'GET', '/dac/v1/transactions', undefined, { headers: TEXTS })
  assert.match(list.text, /"amount":"0\.123456789012345678"/)
  assert.match(list.text, /"total":1\b/)
})

test('a wrong media type is refused before any action, and errors keep their format', async () => {
  const user = await api.user(randomUUID())
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'ETH' })
  const refused = await call<{ field: string }>(
    user,
    'POST',
    '/dac/v1/create-wallet',
    { asset: 'BTC' },
    { headers: { accept: 'application/json; amounts=both' } },
  )
  assert.deepEqual([refused.status, refused.body.field], [400, 'accept'], refused.text)
  assert.deepEqual((await call<unknown[]>(user, 'GET', '/dac/v1/wallets?asset=BTC')).body, [])
  const missing = await call(user, 'GET', `/dac/v1/transaction/${randomUUID()}`, undefined, {
    headers: TEXTS,
  })
  assert.deepEqual(
    [missing.status, missing.headers.get('content-type')],
    [404, 'application/problem+json; charset=utf-8'],
  )
})

test('the OpenAPI document for text amounts has no decimal numbers, and its examples are valid', async () => {
  const ask = async (query: string) =>
    await call<Record<string, unknown>>(null, 'GET', `/openapi.json${query}`, undefined, {
      base: api.base,
    })
  const { status, text } = await ask('?amounts=string')
  assert.equal(status, 200)
  const document = JSON.parse(text) as {
    paths: Record<
      string,
      Record<
        string,
        {
          responses: Record<string, { content?: Record<string, Media> }>
          requestBody?: { content: Record<string, Media> }
        }
      >
    >
    webhooks?: object
  }
  interface Media {
    schema: object
    example?: unknown
  }
  assert.doesNotMatch(text, /"format":"decimal"/)
  assert.equal(document.webhooks, undefined)
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema(document, 'api')
  const escaped = (part: string) =>
    encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))
  let count = 0
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, { responses, requestBody }] of Object.entries(methods)) {
      const bodies = [
        ['responses/200', responses['200']?.content],
        ['requestBody', requestBody?.content],
      ] as const
      for (const [at, content] of bodies) {
        for (const [type, { example }] of Object.entries(content ?? {})) {
          if (!type.startsWith('application/json')) continue
          if (at !== 'requestBody') assert.equal(type, 'application/json; amounts=string', path)
          const check = ajv.compile({
            $ref: `api#/paths/${escaped(path)}/${method}/${at}/content/${escaped(type)}/schema`,
          })
          assert.ok(
            check(example),
            `${method} ${path} ${at}: ${JSON.stringify(check.errors)} ${JSON.stringify(example)}`,
          )
          count++
        }
      }
    }
  }
  assert.ok(count > 60, String(count))
  assert.equal((await ask('?amounts=float')).status, 400)
  assert.equal((await ask('?x=1')).status, 400)
})
