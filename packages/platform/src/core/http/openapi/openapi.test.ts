// Tests that the OpenAPI document is complete, matches the endpoints, and has examples that match
// its own schemas.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { z } from 'zod'
import { apiDocument } from '../../../server/app/document.ts'
import { endpoints } from '../../../server/app/endpoints.ts'
import { ERRORS } from '../../errors.ts'
import { Components } from './components.ts'
import { openApiDocument } from './document.ts'
import {
  assertMatchesDocument,
  document,
  violationOf,
} from '../../../../testing/openapi-assertions.ts'

const BASE = 'http://127.0.0.1:8080'

test('docs/openapi.json matches the endpoints', () => {
  const text = readFileSync(new URL('../../../../../../docs/openapi.json', import.meta.url), 'utf8')
  assert.ok(
    text === `${JSON.stringify(apiDocument(BASE), null, 1)}\n`,
    'run: npx node scripts/openapi.mjs',
  )
})

test('no schema has a name that generators of clients use for an operation', () => {
  const operations = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map((each) => (each as unknown as { operationId: string }).operationId),
  )
  const reserved = new Set(
    operations.flatMap((id) =>
      ['Response', 'Params', 'JSONBody', 'JSONRequestBody', 'HTTPResponse'].map((suffix) =>
        `${id}${suffix}`.toLowerCase(),
      ),
    ),
  )
  const names = Object.keys(document.components.schemas)
  assert.ok(operations.length > 100 && names.length > 100)
  assert.deepEqual(
    names.filter((name) => reserved.has(name.toLowerCase())),
    [],
    'name the schema after the thing that it describes',
  )
})

test('every operation has a name, group, texts, responses, headers and examples', () => {
  const ids = new Set<string>()
  let count = 0
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      count++
      const {
        operationId,
        summary,
        description,
        tags,
        parameters = [],
        responses,
      } = operation as unknown as {
        operationId: string
        summary: string
        description: string
        tags: string[]
        parameters?: { description: string; example: unknown }[]
        responses: Record<string, { headers?: object; $ref?: string }>
      }
      const name = `${method} ${path}`
      assert.match(operationId, /^[a-z][A-Za-z]+$/, name)
      assert.ok(!ids.has(operationId), operationId)
      ids.add(operationId)
      assert.ok(summary.length > 3 && description.length > 3 && tags.length === 1, name)
      for (const each of parameters)
        assert.ok(
          each.description !== '' && each.example !== undefined,
          `${name} ${JSON.stringify(each)}`,
        )
      for (const status of ['200', '400', '429', '500', '503'])
        assert.ok(responses[status], `${name} ${status}`)
      assert.ok(Object.keys(responses['200']?.headers ?? {}).length >= 5, name)
    }
  }
  assert.ok(count === endpoints.length + 5, String(count))
  assert.ok(ids.size === count)
})

test('an operation returns every error code of the registry, except for a list of exceptions', () => {
  const declared = new Set(
    Object.keys(document.components.responses).flatMap((name) => name.split('.')),
  )
  // The operations of the control panel are in a document of their own.
  const panel = [
    'SIGN_IN_REQUIRED',
    'SIGN_IN_FAILED',
    'ROLE_REQUIRED',
    'RECENT_SIGN_IN_REQUIRED',
    'FOREIGN_ORIGIN',
    'HTTPS_REQUIRED',
    'PASSKEY_UNAVAILABLE',
    'LAST_OWNER',
    'LAST_FACTOR',
    'INVITATION_CLOSED',
  ]
  assert.deepEqual(
    Object.keys(ERRORS)
      .filter((code) => !declared.has(code))
      .sort(),
    ['METHOD_NOT_ALLOWED', ...panel].sort(),
  )
})

test('examples of bodies, responses and errors match their schemas', () => {
  let count = 0
  const check = (at: string[], media: Record<string, { schema: object; example?: unknown }>) => {
    for (const [type, { example }] of Object.entries(media)) {
      if (!type.endsWith('json')) continue
      count++
      assert.equal(
        violationOf([...at, 'content', type, 'schema'], example),
        null,
        `${at.join(' ')}: ${JSON.stringify(example)}`,
      )
    }
  }
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, { requestBody, responses }] of Object.entries(methods)) {
      if (requestBody) check(['paths', path, method, 'requestBody'], requestBody.content)
      for (const [status, { content }] of Object.entries(responses))
        if (content) check(['paths', path, method, 'responses', status], content)
    }
  }
  for (const [name, { content }] of Object.entries(document.components.responses))
    check(['components', 'responses', name], content)
  assert.ok(count > 150, String(count))
})

test('refuses two schemas or operations with one name', () => {
  const components = new Components()
  components.shown(z.object({ a: z.string() }).meta({ id: 'TestShapeTwice' }))
  assert.throws(
    () => components.named('TestShapeTwice', { type: 'string' }),
    /two schemas have the name TestShapeTwice/,
  )
  const [first] = endpoints
  assert.throws(
    () =>
      openApiDocument({
        base: BASE,
        endpoints: [first!, { ...first!, path: '/other' }],
        open: [],
        webhooks: () => ({}),
      }),
    /two operations have the name listAssets/,
  )
})

test('detects a response that the document does not describe', () => {
  const headers = (more: Record<string, string> = {}) =>
    new Headers({
      'x-request-id': 'r',
      'x-rate-limit-remaining': '1',
      'x-rate-limit-limit': '1m',
      'x-rate-limit-reset': 'now',
      'content-type': 'application/json; charset=utf-8',
      ...more,
    })
  const wallet = {
    id: 'i',
    asset: 'BTC',
    status: 'active',
    omnibus_address: 'a',
    path: [1, 0, 0],
    created_at: '2026-11-22T10:00:00.000Z',
  }
  const answer =
    (body: object, status = 200, more?: Record<string, string>) =>
    () =>
      assertMatchesDocument({
        method: 'POST',
        path: '/dac/v1/create-wallet',
        status,
        headers: headers(more),
        text: JSON.stringify(body),
      })
  assert.doesNotThrow(answer(wallet))
  assert.throws(answer({ ...wallet, extra: 1 }), /createWallet: .*extra/)
  assert.throws(answer({ ...wallet, status: 'odd' }), /status must be equal to one of/)
  assert.throws(answer({ ...wallet, created_at: 'now' }), /date-time/)
  assert.throws(answer(wallet, 201), /the status 201 is not described/)
  assert.throws(answer(wallet, 200, { 'content-type': 'text/html' }), /text\/html is not described/)
  const problem = {
    type: `${BASE}/reference/errors#WALLET_EXISTS`,
    title: 't',
    status: 400,
    detail: 'd',
    error: 'Bad Request',
    message: 'd',
    code: 'WALLET_EXISTS',
    field: 'asset',
    request_id: 'r',
    wallet_id: 'w',
  }
  const json = { 'content-type': 'application/problem+json; charset=utf-8' }
  assert.doesNotThrow(answer(problem, 400, json))
  assert.throws(
    answer({ ...problem, code: 'ORDER_FINAL' }, 400, json),
    /the code ORDER_FINAL is not described/,
  )
  assert.doesNotThrow(() =>
    assertMatchesDocument({
      method: 'GET',
      path: '/nowhere',
      status: 404,
      headers: new Headers(),
      text: '',
    }),
  )
})
