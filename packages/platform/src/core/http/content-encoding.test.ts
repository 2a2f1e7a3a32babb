// Sends compressed request bodies to every operation, on the real server and database.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { requestHeaders, signRequest } from '@custody/request-auth'
import { endpoints } from '../../server/app/endpoints.ts'
import { panelEndpoints } from '../../server/app/panel.ts'
import { concrete, useApi, type Problem } from '../../../testing/api-support.ts'
import { Browser } from '../../../testing/console-fixture.ts'
import { PRIVATE_KEY, type User } from '../../../testing/harness.ts'

const api = useApi()
let user: User
before(async () => {
  await api.started
  user = await api.user('encodings')
})

const send = async (
  method: string,
  path: string,
  coding: string,
  body: Uint8Array<ArrayBuffer> | string,
) => {
  const response = await fetch(`${api.base}${path}`, {
    method,
    body,
    headers: { 'content-type': 'application/json', 'content-encoding': coding },
  })
  return { status: response.status, problem: (await response.json()) as Problem }
}

test('every endpoint with a body refuses a compressed body with 415 before parsing it', async () => {
  let tried = 0
  for (const { method, path } of [...endpoints, ...panelEndpoints]) {
    if (method === 'GET') continue
    for (const [coding, body] of [
      ['gzip', gzipSync('{"asset":"ETH"}')],
      ['identity, br', '{"asset":"ETH"}'],
    ] as const) {
      const { status, problem } = await send(
        method,
        concrete(path).replaceAll(/\{\w+\}/g, 'x'),
        coding,
        body,
      )
      assert.deepEqual(
        [status, problem.code, problem.field],
        [415, 'UNSUPPORTED_MEDIA_TYPE', 'Content-Encoding'],
        `${method} ${path}`,
      )
      assert.match(problem.message, /^Content-Encoding: must be absent or identity; /)
      tried++
    }
  }
  assert.ok(tried > 50, `tried ${tried}`)
})

test('the API and the panel accept Content-Encoding: identity', async () => {
  const body = '{"asset":"ETH"}'
  const uri = '/dac/v1/create-wallet'
  const signed = await signRequest({
    apiKey: user.apiKey,
    privateKey: PRIVATE_KEY,
    method: 'POST',
    uri,
    body,
  })
  const headers = {
    ...requestHeaders(signed, user.apiKey),
    'content-type': 'application/json',
    'content-encoding': 'Identity',
  }
  const made = await fetch(`${api.base}${uri}`, { method: 'POST', body, headers })
  assert.equal(made.status, 200, await made.text())
  const { status, body: problem } = await new Browser(api).ask<Problem>(
    'POST',
    '/sign-in/password',
    { email: 'a@example.test', password: 'x' },
    { 'content-encoding': 'identity' },
  )
  assert.deepEqual([status, problem.code], [401, 'SIGN_IN_FAILED'])
})
