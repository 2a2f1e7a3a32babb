import assert from 'node:assert/strict'
import { test } from 'node:test'
import { replayed } from '../../../core/http/replay.ts'
import { callApi, type Means } from './call.ts'
import { PRIVATE_KEY } from '../../../../testing/harness.ts'

/** Tests of the demo's requests while the local chains are still starting. */
const USER = {
  apiKey: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
  privateKey: PRIVATE_KEY,
  name: 'demo',
}
const AWAY = { code: 'NETWORK_UNAVAILABLE', message: 'BTC cannot be reached' }

class Api implements Means {
  at = 0
  readonly waits: number[] = []
  readonly requests: RequestInit[] = []
  readonly said: string[] = []
  readonly answers: ((at: number) => Response)[]

  constructor(...answers: ((at: number) => Response)[]) {
    this.answers = answers
  }

  fetch = async (_url: unknown, init?: RequestInit) => {
    this.requests.push(init as RequestInit)
    const [next] = this.answers.length > 1 ? this.answers.splice(0, 1) : this.answers
    return (next as (at: number) => Response)(this.at)
  }
  clock = () => this.at
  sleep = async (ms: number) => {
    this.waits.push(ms)
    this.at += ms
  }
  say = (text: string) => this.said.push(text)
}

const refusal =
  (body: object, headers: Record<string, string> = {}, status = 503) =>
  () =>
    new Response(JSON.stringify(body), { status, headers })
const taken = () => new Response('{"id":"1","amount":1.50}')
const send = (api: Api) =>
  callApi(api, {
    base: 'http://api.test',
    user: USER,
    method: 'POST',
    path: '/dac/v1/transaction',
    body: {
      amount: '1',
      sequence_id: 'demo-BTC',
    },
  })

test('while a chain is unreachable, the demo sends the same body again after Retry-After', async () => {
  const api = new Api(refusal(AWAY, { 'retry-after': '7' }), refusal(AWAY), taken)
  assert.deepEqual(await send(api), { id: '1', amount: '1.50' })
  assert.deepEqual([api.waits, api.said.length], [[7000, 5000], 2])
  assert.equal(new Set(api.requests.map(({ body }) => body)).size, 1)
  assert.equal(
    new Set(api.requests.map(({ headers }) => JSON.stringify(headers))).size,
    3,
    'a request is taken once',
  )
})

test('after too many requests in a minute, the demo sends again when the window ends', async () => {
  const api = new Api(
    refusal(
      { code: 'RATE_LIMITED', message: 'more than 1000 requests' },
      { 'retry-after': '31' },
      429,
    ),
    taken,
  )
  assert.deepEqual(await send(api), { id: '1', amount: '1.50' })
  assert.deepEqual([api.waits, new Set(api.requests.map(({ body }) => body)).size], [[31_000], 1])
})

test('the demo reports any other refusal immediately', async () => {
  for (const other of [
    refusal({ code: 'UNAVAILABLE', message: 'no' }, { 'retry-after': '5' }),
    refusal({ code: 'SIGNERS_UNAVAILABLE', message: 'no' }),
    refusal({ code: 'NETWORK_UNAVAILABLE', message: 'no' }, {}, 500),
    refusal({ code: 'INVALID_AMOUNT', message: 'no' }, {}, 400),
  ]) {
    const api = new Api(other, taken)
    await assert.rejects(send(api), /^Error: POST \/dac\/v1\/transaction: \d{3} no$/)
    assert.deepEqual([api.waits, api.requests.length], [[], 1])
  }
})

test('the demo gives up within three minutes if a chain stays unreachable', async () => {
  for (const wait of ['5', '60', '3600', 'soon', '-1']) {
    const api = new Api(refusal(AWAY, { 'retry-after': wait }))
    await assert.rejects(send(api), /503 BTC cannot be reached/)
    assert.ok(api.at <= 180_000, wait)
  }
})

test('the demo reports a replay of an earlier request with another payload as an error', async () => {
  const { headers } = replayed('', false)
  const api = new Api(() => new Response('{"id":"earlier"}', { headers: headers ?? {} }))
  await assert.rejects(
    send(api),
    /POST \/dac\/v1\/transaction: warning: sequence_id: was used before with another payload/,
  )
  const again = new Api(
    () => new Response('{"id":"earlier"}', { headers: replayed('', true).headers ?? {} }),
  )
  assert.deepEqual(await send(again), { id: 'earlier' })
})
