// A signature need not cover the method of a request. These tests walk all routes of the API and
// check that a token which was signed for one method of a path does nothing by another method.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { signRequest } from '@custody/request-auth'
import type { z } from 'zod'
import { concrete, useApi, type Problem } from '../../../testing/api-support.ts'
import { PRIVATE_KEY } from '../../../testing/harness.ts'
import type { Endpoint } from '../../core/http/endpoint.ts'
import type { Application } from './application.ts'
import { endpoints } from './endpoints.ts'

const api = useApi()
let user: Awaited<ReturnType<typeof api.user>>

before(async () => {
  await api.started
  user = await api.user(randomUUID())
})

type Route = Endpoint<Application>
const signed = endpoints.filter(({ access }) => access !== 'public')
/** Paths with several methods, with their endpoints. */
const shared = [...Map.groupBy(signed, ({ path }) => path).values()].filter(
  ({ length }) => length > 1,
)
const isWrite = ({ method }: Route): boolean => method !== 'GET'

/** Sends a request whose token was signed for another method, and without the claim if `claim` is false. */
async function send(
  path: string,
  {
    method,
    as,
    body = '',
    claim = true,
  }: {
    method: string
    /** Method by which the request is sent. */
    as: string
    body?: string
    claim?: boolean
  },
): Promise<{ status: number; body: Problem; text: string }> {
  const uri = concrete(path)
  const { token } = await signRequest({
    apiKey: user.apiKey,
    privateKey: PRIVATE_KEY,
    method,
    uri,
    body,
    ...(claim ? {} : { claims: { method: undefined } }),
  })
  const answer = await fetch(`${api.base}${uri}`, {
    method: as,
    headers: {
      authorization: `Bearer ${token}`,
      'x-api-key': user.apiKey,
      'content-type': 'application/json',
    },
    ...(body === '' ? {} : { body }),
  })
  const text = await answer.text()
  return { status: answer.status, body: JSON.parse(text) as Problem, text }
}

/** Returns whether a schema of a body accepts this JSON object. */
const accepts = (schema: z.ZodType | undefined, body: object): boolean =>
  schema === undefined ? Object.keys(body).length === 0 : schema.safeParse(body).success

/** Returns the fields of a body, by whether the body must contain them. */
function fieldsOf({ body }: Route): { all: string[]; required: string[] } {
  const shape = (body as unknown as { shape: Record<string, z.ZodType> } | undefined)?.shape ?? {}
  const all = Object.keys(shape)
  return { all, required: all.filter((name) => !accepts(shape[name], undefined as never)) }
}

test('every write on a path with a GET refuses a request without a body, and names the body', async () => {
  const writes = shared
    .filter((routes) => !routes.every(isWrite))
    .flatMap((routes) => routes.filter(isWrite))
  assert.ok(writes.length >= 12, String(writes.length))
  for (const { method, path, body } of writes) {
    assert.ok(body, `${method} ${path} has no schema for its body`)
    const {
      status,
      body: problem,
      text,
    } = await send(path, { method: 'GET', as: method, claim: false })
    assert.deepEqual(
      [status, problem.code, problem.field],
      [400, 'INVALID_JSON', 'body'],
      `${method} ${path}: ${text}`,
    )
    assert.match(problem.message, /^body: is missing; send (?:a JSON object|\{\}) with/)
  }
})

test('no body is accepted by two writes of one path', () => {
  const pairs = shared.flatMap((routes) => {
    const writes = routes.filter(isWrite)
    return writes.flatMap((one, at) => writes.slice(at + 1).map((other) => [one, other] as const))
  })
  assert.ok(pairs.length >= 2, String(pairs.length))
  for (const [one, other] of pairs) {
    const [a, b] = [fieldsOf(one), fieldsOf(other)]
    // Bodies are strict, so a field that one requires and the other does not know tells them apart.
    // Otherwise one accepts only {}, which the other refuses.
    const differ =
      a.required.some((name) => !b.all.includes(name)) ||
      b.required.some((name) => !a.all.includes(name)) ||
      (a.all.length === 0 && !accepts(other.body, {})) ||
      (b.all.length === 0 && !accepts(one.body, {}))
    assert.ok(differ, `${one.method} and ${other.method} ${one.path}`)
  }
})

test('a token with the claim method is refused by every other method of every path', async () => {
  let sent = 0
  for (const { path, method } of signed) {
    for (const other of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      if (other === method) continue
      const body = method === 'GET' || other === 'GET' ? '' : '{}'
      const { status, body: problem, text } = await send(path, { method: other, as: method, body })
      assert.deepEqual(
        [status, problem.field],
        [401, 'method'],
        `${other} as ${method} ${path}: ${text}`,
      )
      sent++
    }
  }
  assert.equal(sent, signed.length * 4)
})

test('a signed GET or PATCH of a webhook does not delete it', async () => {
  const made = await send('/dac/v1/webhooks', {
    method: 'POST',
    as: 'POST',
    body: '{"url":"https://93.184.215.14/hook","events":["*"]}',
  })
  const path = `/dac/v1/webhooks/${(JSON.parse(made.text) as { id: string }).id}`
  for (const claim of [true, false]) {
    const { status } = await send(path, { method: 'GET', as: 'DELETE', claim })
    assert.equal(status, claim ? 401 : 400)
  }
  assert.equal((await send(path, { method: 'PATCH', as: 'DELETE', body: '{}' })).status, 401)
  const empty = await send(path, { method: 'PATCH', as: 'PATCH', body: '{}' })
  assert.deepEqual([empty.status, empty.body.field], [400, 'body'], empty.text)
  assert.equal((await send(path, { method: 'GET', as: 'GET' })).status, 200)
  // Clients that do not send the claim can still delete it.
  const deleted = await send(path, { method: 'DELETE', as: 'DELETE', body: '{}', claim: false })
  assert.equal(deleted.status, 200, deleted.text)
})
