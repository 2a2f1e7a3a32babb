// Tests of characters that PostgreSQL cannot store, in every text of every operation of the control
// panel, on the real server and database.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import type { Logger } from 'pino'
import { z } from 'zod'
import { panelEndpoints } from '../../server/app/panel.ts'
import { checkoutPages } from '../../commerce/checkout/pages.ts'
import { consolePages } from '../../console-api/console/pages.ts'
import { readBody, readQuery } from './validate.ts'
import { referencePages } from '../../server/reference/pages.ts'
import { reservesPages } from '../../server/reserves/pages.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { Browser, join } from '../../../testing/console-fixture.ts'

const log = { warn: () => undefined } as unknown as Logger
const pages = [
  ...reservesPages(log),
  ...checkoutPages(log),
  ...consolePages(log),
  ...referencePages(log),
]
const api = useApi({ reservesPublic: 'all' }, pages)
let browser: Browser
before(async () => {
  await api.started
  browser = (await join(api, null, 'owner', { named: 'acme', email: 'owner@example.test' })).browser
})

test('a NUL character in a control panel path gets 404', async () => {
  let tried = 0
  for (const { method, path } of panelEndpoints) {
    const parts = [...path.matchAll(/\{(\w+)\}/g)].map(([part]) => part)
    for (const odd of parts) {
      const target = parts.reduce(
        (text, part) =>
          text.replace(part, part === odd ? 'a%00b' : part === '{workspace}' ? 'acme' : 'main'),
        path,
      )
      const { status, text } = await browser.ask(method, target.replace('/console/api', ''))
      assert.equal(status, 404, `${method} ${target}: ${text}`)
      tried++
    }
  }
  assert.ok(tried > 30, `tried ${tried}`)
})

test('a NUL character in a page’s path gets 404', async () => {
  for (const { path } of pages.filter((page) => page.path.includes('{'))) {
    const response = await fetch(`${api.base}${path.replaceAll(/\{\w+\}/g, 'a%00b')}`)
    assert.equal(response.status, 404, `${path}: ${await response.text()}`)
  }
})

test("NUL or half a surrogate pair in a query or body gets 400 with the field's name", async () => {
  const name = 'a\u0000b'
  for (const odd of ['a\u0000b', 'a\ud800b', '\udc00']) {
    const { status, body, text } = await browser.ask<Problem>('POST', '/sign-in/password', {
      email: owner,
      password: `${odd}-123456789012`,
    })
    assert.deepEqual([status, body.code, body.field], [400, 'INVALID_REQUEST', 'password'], text)
  }
  const page = await browser.ask<Problem>(
    'GET',
    `/workspaces/acme/audit-log?actor=${encodeURIComponent(name)}`,
  )
  assert.equal(page.status, 400, page.text)
})
const owner = 'owner@example.test'

test('texts are validated at any depth, even if the schema accepts any value', () => {
  const schema = z.strictObject({ any: z.unknown() })
  for (const [value, field] of [
    ['\u0000', 'any'],
    [['x', { deep: ['\ud800'] }], 'any.1.deep.0'],
    [{ 'a\u0000': 1 }, 'any'],
    [{ 'a\udc00': {} }, 'any'],
  ] as const) {
    assert.throws(() => readBody(schema, JSON.stringify({ any: value })), {
      code: 'INVALID_REQUEST',
      field,
    })
  }
  assert.throws(() => readQuery(z.strictObject({ q: z.string() }), { q: '\u0000' }), {
    code: 'INVALID_REQUEST',
    field: 'q',
  })
  assert.deepEqual(readBody(schema, '{"any":["🦊",{"a":1.5}]}') !== undefined, true)
})
