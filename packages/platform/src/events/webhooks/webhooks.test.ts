import assert from 'node:assert/strict'
import { createHmac, createPublicKey, randomUUID, verify } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { before, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { runLoops } from '../../core/engine/loops/loop.ts'
import { publish, publishLoop } from '../events/publish.ts'
import { emit } from '../../core/ledger/post.ts'
import { Secrets } from '../../core/secrets.ts'
import { deliverLoop } from './deliver.ts'
import { distributorOf } from './distribute.ts'
import { loadPlatformKey } from './platform-key.ts'
import { TRIES_MAX } from './schedule.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call, type User } from '../../../testing/harness.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'
import { testEmittedEvents } from '../../../testing/event-assertions.ts'
import { waitFor } from '../../../../../testing/wait-for.ts'

/**
 * Tests of webhooks over the real API, a real database and real receivers. Time passes only when a
 * test advances the clock.
 */
const clock = new ManualClock()
const api = useApi({}, [], clock)
type Owner = User & { workspaceId: string; subAccountId: string }
let alice: Owner
const running = new AbortController()
let work: Promise<unknown>
let polling: NodeJS.Timeout | undefined
/**
 * Wakes the loops as often as they would poll if the clock were running: an event that is committed
 * while an older database transaction is open becomes visible to the publisher only when that
 * transaction has ended, which nothing signals.
 */
const POLL_MS = 20
function wakeLoops(): void {
  api.services.outbox.ring()
  api.services.webhooks.due.ring()
}
before(async () => {
  await api.started
  alice = await api.user('alice')
  // The publisher pauses so that it publishes concurrent events together. The tests do not depend
  // on that pause.
  const publishing = {
    ...api.services,
    environment: { ...api.services.environment, sleep: () => nextTurn() },
  }
  polling = setInterval(wakeLoops, POLL_MS)
  work = runLoops(
    api.services,
    [publishLoop(publishing, distributorOf(publishing)), deliverLoop(api.services)],
    running.signal,
  )
})
api.beside.push(async () => {
  clearInterval(polling)
  running.abort()
  await work
  await Promise.all(receivers.map((each) => each.close()))
})

/** Advances the clock and lets the delivery loop check what is due. */
function later(ms: number): void {
  clock.advance(ms)
  api.services.webhooks.due.ring()
}

interface Got {
  headers: IncomingHttpHeaders
  body: string
  path: string
}
type Answers = (
  got: Got,
  count: number,
) => number | { status: number; headers?: Record<string, string>; body?: string } | 'hang' | 'cut'

const receivers: Receiver[] = []
/** A receiver of webhook deliveries that returns the configured response. */
class Receiver {
  readonly got: Got[] = []
  readonly #server: Server
  #onRequest: () => void = () => undefined
  answers: Answers

  private constructor(answers: Answers) {
    this.answers = answers
    receivers.push(this)
    this.#server = createServer((request, response) => {
      let body = ''
      request
        .setEncoding('utf8')
        .on('data', (chunk: string) => {
          body += chunk
        })
        .on('end', () => {
          const got = { headers: request.headers, body, path: request.url ?? '' }
          this.got.push(got)
          const answer = this.answers(got, this.got.length)
          if (answer === 'cut') request.socket.destroy()
          else if (answer !== 'hang') {
            const {
              status,
              headers = {},
              body: text = '',
            } = typeof answer === 'number' ? { status: answer } : answer
            response.writeHead(status, headers).end(text)
          }
          this.#onRequest()
        })
    })
  }

  static async open(answers: Answers = () => 200): Promise<Receiver> {
    const receiver = new Receiver(answers)
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve))
    return receiver
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`
  }

  async until(count: number): Promise<Got[]> {
    while (this.got.length < count)
      await new Promise<void>((resolve) => {
        this.#onRequest = resolve
      })
    return this.got
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

interface Hook {
  id: string
  url: string
  events: string[]
  secret: string
  disabled: boolean
  disabled_reason: string | null
  failures: string
  format: string
  description: string | null
}
interface Delivery {
  id: string
  event_id: string
  type: string
  status: string
  tries: string
  tries_left: string
  next_try_at: string | null
  request: { body: string }
  attempts: {
    at: string
    status: string | null
    error: string | null
    answer: string | null
    duration_ms: string
  }[]
}

async function ask<T>(
  user: User,
  method: string,
  path: string,
  body?: unknown,
  expected = 200,
): Promise<T> {
  const answer = await call<T>(user, method, `/dac/v1/webhooks${path}`, body, {
    sign: { now: Math.floor(api.now() / 1000) },
  })
  assert.equal(answer.status, expected, answer.text)
  return answer.body
}
const create = (user: User, url: string, events: string[] = ['*'], more: object = {}) =>
  ask<Hook>(user, 'POST', '', { url, events, ...more })
const deliveries = async (user: User, id: string, query = '') =>
  (await ask<{ data: Delivery[] }>(user, 'GET', `/${id}/deliveries${query}`)).data
const settled = (user: User, id: string, count: number) =>
  waitFor('settled deliveries', async () => {
    const all = await deliveries(user, id)
    return (
      all.length >= count &&
      all.every(({ next_try_at: next, status }) => status !== 'pending' || next !== null) &&
      all
    )
  })
/**
 * Whether an attempt is running or its result is not stored yet. Advancing the time beyond its
 * lease would repeat it.
 */
const isUnderWay = async (id: string) =>
  (await api.database.one(
    'select 1 from webhook_deliveries where webhook_id = $1 and lease_token is not null limit 1',
    [id],
  )) !== undefined

const payload = (id: string, more: object = {}) =>
  JSON.stringify({
    id,
    asset: 'ETH',
    status: 'inactive',
    updated_at: '2026-01-01T00:00:00.000Z',
    ...more,
  })
const tell = (owner: Owner, id: string = randomUUID()) =>
  emit(api.database, owner.workspaceId, owner.subAccountId, 'wallet.updated', payload(id)).then(
    () => id,
  )

const signatureOf = (secret: string, { headers, body }: Got) =>
  `v1,${createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
    .update(`${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`)
    .digest('base64')}`

test('a delivery has body, headers and both signatures, and is listed', async () => {
  const receiver = await Receiver.open(() => ({ status: 200, body: 'x'.repeat(5000) }))
  const hook = await create(alice, receiver.url, ['Wallet.*'])
  assert.match(hook.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  const object = await tell(alice)
  const [got] = (await receiver.until(1)) as [Got]
  const body = JSON.parse(got.body) as Record<string, unknown>
  assert.deepEqual(Object.keys(body), ['type', 'timestamp', 'data', 'id', 'object', 'version'])
  assert.deepEqual(
    [body['type'], body['object'], body['version'], body['id']],
    ['wallet.updated', object, 1, got.headers['webhook-id']],
  )
  assert.deepEqual(body['data'], JSON.parse(payload(object)))
  assert.equal(got.headers['webhook-signature'], signatureOf(hook.secret, got))
  assert.equal(Number(got.headers['webhook-timestamp']), Math.floor(clock.now() / 1000))
  assert.equal(got.headers['content-type'], 'application/json; charset=utf-8')
  const pem = await (await fetch(`${api.base}/.well-known/custody-webhook-key.pem`)).text()
  const signature = Buffer.from(String(got.headers['x-signature']), 'base64')
  assert.ok(verify('RSA-SHA512', Buffer.from(got.body), createPublicKey(pem), signature))
  assert.ok(!verify('RSA-SHA512', Buffer.from(`${got.body} `), createPublicKey(pem), signature))
  const {
    keys: [jwk],
  } = (await (await fetch(`${api.base}/.well-known/custody-webhook-keys.json`)).json()) as {
    keys: [{ kty: string; n: string; e: string; alg: string; use: string; kid: string }]
  }
  assert.equal(
    createPublicKey({ key: jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' }),
    pem,
  )
  const [delivery] = (await settled(alice, hook.id, 1)) as [Delivery]
  assert.deepEqual(
    [delivery.status, delivery.tries, delivery.event_id, delivery.request.body],
    ['delivered', '1', body['id'], got.body],
  )
  assert.equal(delivery.attempts[0]?.answer?.length, 1000, 'a long answer is cut')
  const stored = await api.database.one<{ all: string }>(
    'select webhooks::text all from webhooks where id = $1',
    [hook.id],
  )
  const inHex = Buffer.from(hook.secret).toString('hex')
  assert.ok(
    !stored?.all.includes(hook.secret) && !stored?.all.includes(inHex),
    'the secret is sealed',
  )
  await ask(alice, 'DELETE', `/${hook.id}`, {})
})

test('all processes share the platform’s key, and the database contains it only sealed', async () => {
  const [one, other] = await Promise.all([
    loadPlatformKey(api.services),
    loadPlatformKey(api.services),
  ])
  assert.equal(one.publicPem, other.publicPem)
  assert.equal(
    one.publicPem,
    createPublicKey(one.privateKey).export({ type: 'spki', format: 'pem' }),
  )
  const row = await api.database.one<{ sealed_private_key: Buffer }>(
    'select sealed_private_key from webhook_keys',
  )
  assert.ok(!row?.sealed_private_key.includes('PRIVATE KEY'))
  const aml = {
    ...api.services.aml,
    secrets: new Secrets(new Uint8Array(32).fill(7), api.services.environment),
  }
  await assert.rejects(loadPlatformKey({ ...api.services, aml }), /cannot be decrypted/)
})

test('secrets are displayed once, and read-only keys and other tenants change nothing', async () => {
  const [reader, sibling, mallory] = [
    await api.user('alice', { role: 'read-only' }),
    await api.user('alice', { subAccount: 'b' }),
    await api.user('mallory'),
  ]
  const hook = await create(alice, 'https://example.com/hook', ['*'], { disabled: true })
  assert.equal(hook.disabled, true)
  const listed = await ask<{ data: Hook[] }>(reader, 'GET', '')
  assert.deepEqual(
    listed.data.map(({ id, secret }) => [id, secret]),
    [[hook.id, undefined]],
  )
  assert.equal((await ask<Hook>(reader, 'GET', `/${hook.id}`)).secret, undefined)
  assert.equal(
    (await ask<Hook>(alice, 'PATCH', `/${hook.id}`, { description: 'd' })).secret,
    undefined,
  )
  await ask(reader, 'POST', '', { url: hook.url, events: ['*'] }, 403)
  await ask(reader, 'POST', `/${hook.id}/rotate`, {}, 403)
  await ask(reader, 'DELETE', `/${hook.id}`, {}, 403)
  for (const [who, status] of [
    [sibling, 404],
    [mallory, 403],
  ] as const) {
    await ask(who, 'GET', `/${hook.id}`, undefined, status)
    await ask(who, 'GET', `/${hook.id}/deliveries`, undefined, status)
    for (const [method, path, body] of [
      ['PATCH', '', { url: 'https://example.org/' }],
      ['DELETE', '', {}],
      ['POST', '/rotate', {}],
      ['POST', '/test', {}],
    ] as const)
      await ask(who, method, `/${hook.id}${path}`, body, status)
    assert.deepEqual((await ask<{ data: Hook[] }>(who, 'GET', '')).data, [])
  }
  assert.equal((await ask<Hook>(alice, 'GET', `/${hook.id}`)).url, hook.url, 'nothing was changed')
  await ask(alice, 'DELETE', `/${hook.id}`, {})
  await ask(alice, 'GET', `/${hook.id}`, undefined, 404)
})

test('webhooks receive later subscribed events of their sub-account and workspace only', async () => {
  const owner = await api.user('reach')
  const sibling = await api.user('reach', { subAccount: 'b' })
  const mallory = await api.user('mallory')
  await tell(owner)
  await publish(api.services, distributorOf(api.services))
  const [mine, siblings, theirs, other] = await Promise.all([1, 2, 3, 4].map(() => Receiver.open()))
  await create(owner, mine!.url)
  await create(sibling, siblings!.url)
  await create(mallory, theirs!.url)
  await create(owner, other!.url, ['deposit.confirmed', 'gas_tank.*'])
  const own = await tell(owner)
  await emit(
    api.database,
    owner.workspaceId,
    null,
    'prepaid_fee.tier_changed',
    '{"tier":"GROWTH","previous_tier":"STARTER","volume_30d":1}',
  )
  const all = `prepaid_fee:${owner.workspaceId}`
  await Promise.all([mine!.until(2), siblings!.until(1)])
  assert.deepEqual(
    new Set(mine!.got.map(({ body }) => (JSON.parse(body) as { object: string }).object)),
    new Set([own, all]),
  )
  assert.deepEqual(
    siblings!.got.map(({ body }) => (JSON.parse(body) as { object: string }).object),
    [all],
  )
  assert.deepEqual([theirs!.got.length, other!.got.length], [0, 0])
  const { n } = (await api.database.one<{ n: number }>(
    `select count(*)::int n from webhook_deliveries d join webhooks w on w.id = d.webhook_id
      where w.url = any($1)`,
    [[theirs!.url, other!.url]],
  )) as { n: number }
  assert.equal(n, 0, 'no delivery was even written')
})

test('a failed delivery is attempted ten times in three days, with the same body and id', async () => {
  const owner = await api.user('retries')
  const receiver = await Receiver.open(() => ({ status: 500, body: 'broken' }))
  const hook = await create(owner, receiver.url)
  await tell(owner)
  await receiver.until(1)
  const waits: number[] = []
  for (let tries = 2; tries <= TRIES_MAX; tries++) {
    const [delivery] = (await settled(owner, hook.id, 1)) as [Delivery]
    const wait =
      Date.parse(delivery.next_try_at as string) - Date.parse(delivery.attempts.at(-1)!.at)
    waits.push(wait)
    later(wait)
    await receiver.until(tries)
  }
  const minute = 60_000
  for (const [at, least] of [
    5000,
    5 * minute,
    30 * minute,
    120 * minute,
    300 * minute,
    600 * minute,
    840 * minute,
    1200 * minute,
    1440 * minute,
  ].entries())
    assert.ok(
      (waits[at] as number) >= least && (waits[at] as number) <= least * 1.1,
      `${at}: ${waits[at]}`,
    )
  const [delivery] = (await waitFor('the end', async () => {
    const all = await deliveries(owner, hook.id)
    return all[0]?.status === 'failed' && all
  })) as [Delivery]
  assert.deepEqual(
    [delivery.tries, delivery.tries_left, delivery.next_try_at],
    [String(TRIES_MAX), '0', null],
  )
  assert.deepEqual(delivery.attempts[0], {
    ...delivery.attempts[0],
    status: '500',
    error: 'status 500',
    answer: 'broken',
  })
  const [first] = receiver.got as [Got]
  for (const got of receiver.got) {
    assert.deepEqual(
      [got.body, got.headers['webhook-id'], got.headers['x-signature']],
      [first.body, first.headers['webhook-id'], first.headers['x-signature']],
    )
    assert.equal(got.headers['webhook-signature'], signatureOf(hook.secret, got))
  }
  assert.equal(
    new Set(receiver.got.map(({ headers }) => headers['webhook-timestamp'])).size,
    TRIES_MAX,
  )
  receiver.answers = () => 204
  const again = await ask<Delivery>(owner, 'POST', `/deliveries/${delivery.id}/resend`, {})
  assert.equal(again.status, 'pending')
  // After ten consecutive failures a webhook pauses for a second.
  later(1000)
  const resent = (await receiver.until(TRIES_MAX + 1)).at(-1) as Got
  assert.deepEqual(
    [resent.body, resent.headers['webhook-id']],
    [first.body, first.headers['webhook-id']],
  )
  await waitFor(
    'delivered',
    async () => (await deliveries(owner, hook.id))[0]?.status === 'delivered',
  )
  await ask(owner, 'POST', `/${hook.id}/deliveries/${delivery.id}/resend`, {})
  await receiver.until(TRIES_MAX + 2)
  await ask(alice, 'POST', `/deliveries/${delivery.id}/resend`, {}, 403)
  await ask(owner, 'POST', `/${randomUUID()}/deliveries/${delivery.id}/resend`, {}, 404)
  await ask(owner, 'POST', `/deliveries/${randomUUID()}/resend`, {}, 404)
})

test('redirects, error statuses and late responses are failures; Retry-After is respected', async () => {
  const owner = await api.user('answers')
  const elsewhere = await Receiver.open()
  const timeoutMs = 15_000
  const cases: [Answers, string | null, RegExp, number][] = [
    [() => 'hang', null, /no complete response within 15 s/, 5],
    [
      () => ({ status: 302, headers: { location: elsewhere.url } }),
      '302',
      /status 302; redirects are not followed/,
      5,
    ],
    [
      () => ({ status: 301, headers: { location: 'http://169.254.169.254/' } }),
      '301',
      /redirects are not followed/,
      5,
    ],
    [() => 404, '404', /status 404/, 5],
    [() => 'cut', null, /./, 5],
    [() => ({ status: 503, headers: { 'retry-after': '120' } }), '503', /status 503/, 120],
    [() => ({ status: 429, headers: { 'retry-after': '999999999' } }), '429', /status 429/, 86_400],
    [() => ({ status: 429, headers: { 'retry-after': '0' } }), '429', /status 429/, 5],
  ]
  for (const [answers, status, error, waitS] of cases) {
    const receiver = await Receiver.open(answers)
    const hook = await create(owner, receiver.url)
    await tell(owner)
    await receiver.until(1)
    const isLate = answers(receiver.got[0] as Got, 1) === 'hang'
    if (isLate) later(timeoutMs)
    const [delivery] = (await settled(owner, hook.id, 1)) as [Delivery]
    const [attempt] = delivery.attempts
    assert.equal(attempt?.status, status)
    assert.match(attempt?.error ?? '', error)
    const failedAt = Date.parse(attempt?.at as string) + (isLate ? timeoutMs : 0)
    const wait = Date.parse(delivery.next_try_at as string) - failedAt
    assert.ok(wait >= waitS * 1000 && wait <= waitS * 1100, `${status}: ${wait} ms`)
    await ask(owner, 'DELETE', `/${hook.id}`, {})
  }
  assert.equal(elsewhere.got.length, 0, 'no redirect was followed')
})

test('a webhook is disabled by status 410 or 50 failures in sequence, with an event', async () => {
  const owner = await api.user('disabled')
  const watcher = await Receiver.open()
  await create(owner, watcher.url, ['webhook.disabled'])
  const gone = await Receiver.open(() => 410)
  const first = await create(owner, gone.url, ['wallet.*'])
  await tell(owner)
  await watcher.until(1)
  const event = JSON.parse(watcher.got[0]!.body) as { type: string; data: Record<string, unknown> }
  assert.deepEqual(
    [event.type, event.data['id'], event.data['failures']],
    ['webhook.disabled', first.id, 1],
  )
  const shown = await ask<Hook>(owner, 'GET', `/${first.id}`)
  assert.deepEqual(
    [shown.disabled, shown.disabled_reason],
    [true, 'the receiver responded with 410 (gone)'],
  )
  await ask(owner, 'DELETE', `/${first.id}`, {})

  const broken = await Receiver.open(() => 500)
  const hook = await create(owner, broken.url, ['wallet.*'])
  for (let n = 0; n < 60; n++) await tell(owner)
  // After ten consecutive failures, deliveries are attempted once a second.
  for (let got = 0; watcher.got.length < 2; got = broken.got.length) {
    if (broken.got.length === got && !(await isUnderWay(hook.id))) later(1000)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  assert.ok(
    broken.got.length >= 50 && broken.got.length <= 51,
    `${broken.got.length}: one of the other lane may have been under way`,
  )
  const disabled = await ask<Hook>(owner, 'GET', `/${hook.id}`)
  assert.equal(disabled.disabled, true)
  assert.match(disabled.failures, /^5[01]$/)
  assert.match(
    disabled.disabled_reason ?? '',
    /50 consecutive attempts failed; the last one: status 500/,
  )
  const one = (await deliveries(owner, hook.id))[0] as Delivery
  const refused = await ask<Problem>(owner, 'POST', `/deliveries/${one.id}/resend`, {}, 400)
  assert.equal(refused.code, 'WEBHOOK_DISABLED')
  const missed = await tell(owner)
  await waitFor('published', async () =>
    api.database.one('select 1 from events where object = $1 and position is not null', [missed]),
  )
  broken.answers = () => 200
  const enabled = await ask<Hook>(owner, 'PATCH', `/${hook.id}`, { disabled: false })
  assert.deepEqual(
    [enabled.disabled, enabled.failures, enabled.disabled_reason],
    [false, '0', null],
  )
  const fresh = await tell(owner)
  const objects = () =>
    broken.got.map(({ body }) => (JSON.parse(body) as { object: string }).object)
  await waitFor('the new one', async () => objects().includes(fresh))
  assert.ok(!objects().includes(missed), 'what came while it was disabled is in the log')
})

test('a successful delivery resets the failure count', async () => {
  const owner = await api.user('row')
  const receiver = await Receiver.open((_, count) => (count === 3 ? 200 : 500))
  const hook = await create(owner, receiver.url)
  for (let n = 1; n <= 4; n++) {
    await tell(owner)
    await receiver.until(n)
    await settled(owner, hook.id, n)
  }
  assert.equal((await ask<Hook>(owner, 'GET', `/${hook.id}`)).failures, '1')
})

test('after a secret rotation both secrets sign for a day, then only the new one', async () => {
  const owner = await api.user('rotation')
  const receiver = await Receiver.open()
  const hook = await create(owner, receiver.url)
  const rotated = await ask<Hook>(owner, 'POST', `/${hook.id}/rotate`, {})
  assert.notEqual(rotated.secret, hook.secret)
  assert.equal(
    (await ask<Hook>(owner, 'POST', `/${hook.id}/rotate`, {})).secret,
    rotated.secret,
    'its answer was lost',
  )
  await tell(owner)
  const [got] = (await receiver.until(1)) as [Got]
  assert.equal(
    got.headers['webhook-signature'],
    `${signatureOf(rotated.secret, got)} ${signatureOf(hook.secret, got)}`,
  )
  await settled(owner, hook.id, 1)
  later(86_400_000)
  await tell(owner)
  const second = (await receiver.until(2))[1] as Got
  assert.equal(second.headers['webhook-signature'], signatureOf(rotated.secret, second))
  const third = await ask<Hook>(owner, 'POST', `/${hook.id}/rotate`, { overlap_s: 0 })
  assert.notEqual(third.secret, rotated.secret)
  await tell(owner)
  const last = (await receiver.until(3))[2] as Got
  assert.equal(last.headers['webhook-signature'], signatureOf(third.secret, last))
  for (const overlap of [-1, 604_801, 1.5, 'x'])
    await ask(owner, 'POST', `/${hook.id}/rotate`, { overlap_s: overlap }, 400)
})

test('a test event is sent immediately to one webhook, even if disabled, and returns the result', async () => {
  const owner = await api.user('tests')
  const [receiver, other] = [await Receiver.open(), await Receiver.open()]
  const hook = await create(owner, receiver.url, ['deposit.*'], { disabled: true })
  await create(owner, other.url)
  const delivery = await ask<Delivery>(owner, 'POST', `/${hook.id}/test`, {})
  assert.deepEqual(
    [delivery.type, delivery.status, delivery.tries],
    ['webhook.test', 'delivered', '1'],
  )
  const [got] = receiver.got as [Got]
  assert.deepEqual((JSON.parse(got.body) as { data: unknown }).data, {
    id: hook.id,
    url: receiver.url,
  })
  assert.equal(got.headers['webhook-signature'], signatureOf(hook.secret, got))
  receiver.answers = () => 500
  const failed = await ask<Delivery>(owner, 'POST', `/${hook.id}/test`, {})
  assert.deepEqual(
    [failed.status, failed.tries_left, failed.attempts[0]?.error],
    ['failed', '0', 'status 500'],
  )
  assert.equal(other.got.length, 0)
  assert.deepEqual(
    (await deliveries(owner, hook.id, '?status=failed')).map(({ id }) => id),
    [failed.id],
  )
  assert.equal((await deliveries(owner, hook.id, '?type=webhook.*&limit=1&page=2')).length, 1)
  assert.equal((await deliveries(owner, hook.id, '?type=deposit.*')).length, 0)
})

test('events of one object are delivered in order, and those of other objects concurrently', async () => {
  const owner = await api.user('order')
  let open = 0
  let most = 0
  const receiver = await Receiver.open(() => 200)
  const perObject = new Map<string, number[]>()
  receiver.answers = ({ body }) => {
    const { object, version } = JSON.parse(body) as { object: string; version: number }
    perObject.set(object, [...(perObject.get(object) ?? []), version])
    open++
    most = Math.max(most, open)
    open--
    return 200
  }
  await create(owner, receiver.url)
  const objects = [randomUUID(), randomUUID(), randomUUID()]
  for (let n = 0; n < 8; n++) for (const object of objects) await tell(owner, object)
  await receiver.until(24)
  for (const object of objects) assert.deepEqual(perObject.get(object), [1, 2, 3, 4, 5, 6, 7, 8])
})

test('later events of an object do not wait for a failed delivery', async () => {
  const owner = await api.user('lane')
  const object = randomUUID()
  const receiver = await Receiver.open(({ body }) =>
    (JSON.parse(body) as { version: number }).version === 1 ? 500 : 200,
  )
  await create(owner, receiver.url)
  for (let n = 0; n < 3; n++) await tell(owner, object)
  const versions = (await receiver.until(3)).map(
    ({ body }) => (JSON.parse(body) as { version: number }).version,
  )
  assert.deepEqual(versions, [1, 2, 3])
})

test('an invalid webhook is refused with the invalid field, and nothing is created', async () => {
  const owner = await api.user('refused')
  const wrong: [unknown, string, RegExp][] = [
    [{ events: ['*'] }, 'url', /is required/],
    [{ url: 'https://example.com' }, 'events', /is required/],
    [{ url: 'nonsense', events: ['*'] }, 'url', /must be a URL such as/],
    [{ url: 'ftp://example.com', events: ['*'] }, 'url', /must begin with https/],
    [{ url: 'file:///etc/passwd', events: ['*'] }, 'url', /must begin with https/],
    [{ url: 'https://user:pass@example.com', events: ['*'] }, 'url', /user name or password/],
    [{ url: 'https://user@example.com', events: ['*'] }, 'url', /user name or password/],
    [{ url: 'https://example.com:0/', events: ['*'] }, 'url', /port 0/],
    [{ url: 'https://example.com/#x', events: ['*'] }, 'url', /#/],
    [{ url: 'https://10.0.0.1/', events: ['*'] }, 'url', /10\.0\.0\.1 is a private/],
    [{ url: 'https://0xa9fea9fe/', events: ['*'] }, 'url', /169\.254\.169\.254 is a private/],
    [{ url: 'https://[fd00:ec2::254]/', events: ['*'] }, 'url', /private, local or reserved/],
    [{ url: `https://example.com/${'x'.repeat(2000)}`, events: ['*'] }, 'url', /at most 2000/],
    [{ url: 'https://example.com', events: [] }, 'events', /at least one event/],
    [{ url: 'https://example.com', events: ['wallet'] }, 'events.0', /"wallet" is no event/],
    [{ url: 'https://example.com', events: ['*', 'wallet.exploded'] }, 'events.1', /is no event/],
    [
      { url: 'https://example.com', events: ['*'], format: 'xml' },
      'format',
      /must be one of standard, classic/,
    ],
    [{ url: 'https://example.com', events: ['*'], colour: 1 }, 'colour', /is not a known field/],
  ]
  for (const [body, field, message] of wrong) {
    const problem = await ask<Problem>(owner, 'POST', '', body, 400)
    assert.deepEqual(
      [problem.field, message.test(problem.message)],
      [field, true],
      `${JSON.stringify(body).slice(0, 100)} ${problem.message}`,
    )
  }
  assert.deepEqual((await ask<{ data: Hook[] }>(owner, 'GET', '')).data, [])
  const hook = await create(owner, 'https://example.com/a')
  assert.deepEqual(
    await create(owner, 'https://example.com/a'),
    hook,
    'the same again is the same one',
  )
  const changed = await ask<Hook>(owner, 'PATCH', `/${hook.id}`, {
    url: 'https://example.com/b',
    events: ['invoice.*', 'invoice.*'],
    description: 'b',
  })
  assert.deepEqual(
    [changed.url, changed.events, changed.description],
    ['https://example.com/b', ['invoice.*'], 'b'],
  )
  for (const [body, field] of [
    [{ url: 'https://127.1.1.1:0' }, 'url'],
    [{ events: ['x'] }, 'events.0'],
    [{ id: 'x' }, 'id'],
  ] as const)
    assert.equal((await ask<Problem>(owner, 'PATCH', `/${hook.id}`, body, 400)).field, field)
  for (let n = 0; n < 19; n++) await create(owner, `https://example.com/more/${n}`)
  assert.equal(
    (await ask<Problem>(owner, 'POST', '', { url: 'https://example.com/last', events: ['*'] }, 400))
      .code,
    'WEBHOOK_LIMIT',
  )
})

testEmittedEvents(() => api.database, ['webhook.test', 'webhook.disabled'])

test('stores the URL of a webhook in its parsed form', async () => {
  const owner = await api.user(randomUUID())
  const hook = await create(owner, 'HTTPS://93.184.215.14:443/a/../hook\t?x=1')
  assert.equal(hook.url, 'https://93.184.215.14/hook?x=1')
  const changed = await ask<Hook>(owner, 'PATCH', `/${hook.id}`, {
    url: String.raw`https:\\93.184.215.14\other`,
  })
  assert.equal(changed.url, 'https://93.184.215.14/other')
})
