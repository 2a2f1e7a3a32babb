// Attacks on password hashing, on the real server and database.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import * as fc from '../../../../../testing/property.ts'
import { ApiError } from '../../core/errors.ts'
import { clientNetworks } from '../../core/http/client-network.ts'
import { HASHING_MAX, PasswordQueue } from './password-queue.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { Browser, join, type Somebody } from '../../../testing/console-fixture.ts'

const api = useApi({ trustProxy: 1, publicUrl: 'https://custody.test' })
let owner: Somebody
let now = Date.UTC(2026, 5, 1)
before(async () => {
  await api.started
  api.now = () => now
  owner = await join(api, null, 'owner', { named: 'acme', email: 'owner@example.test' })
})

/** Sends the first step of a sign-in from an address. */
const begin = (ip: string, email: string, password = 'wrong') =>
  new Browser(api).ask<Problem>(
    'POST',
    '/sign-in/password',
    { email, password },
    { 'x-forwarded-for': ip },
  )
/** Keeps password hashing busy until `release` is called. */
function occupy() {
  const { promise, resolve } = Promise.withResolvers<void>()
  const refused: unknown[] = []
  const run = (ip: string, email: string) =>
    void api.services.people.hashing
      .run({ ip, email }, () => promise)
      .catch((error: unknown) => refused.push(error))
  return { refused, release: resolve, run }
}

test('of 60 concurrent sign-ins from one address five are queued, and the rest count no failure', async () => {
  now += 120_000
  const busy = occupy()
  for (let at = 0; at < HASHING_MAX.running; at++)
    busy.run(`198.51.100.${at}`, `busy${at}@example.test`)
  const responses = Array.from({ length: 60 }, (_, at) =>
    begin(`2001:db8:1:1::${at.toString(16)}`, `guess${at}@example.test`),
  )
  const refused: Awaited<ReturnType<typeof begin>>[] = []
  await new Promise<void>((resolve) => {
    for (const each of responses) {
      void each.then((answer) => refused.push(answer) === 60 - HASHING_MAX.network && resolve())
    }
  })
  for (const { status, body, headers } of refused) {
    assert.deepEqual([status, body.code, headers['retry-after']], [429, 'RATE_LIMITED', '5'])
  }
  const another = begin('192.0.2.9', owner.email, owner.password)
  busy.release()
  assert.equal((await another).status, 200, 'another person signs in')
  const all = await Promise.all(responses)
  assert.deepEqual(all.filter(({ status }) => status === 401).length, HASHING_MAX.network)
  const counted = await api.database.one<{ failures: number }>(
    'select failures from sign_in_failures where subject = $1',
    ['address 2001:db8:1:1::/64'],
  )
  assert.equal(counted?.failures, HASHING_MAX.network)
})

test('a queue filled by many addresses still accepts another address', async () => {
  now += 120_000
  const busy = occupy()
  for (let at = 0; at < HASHING_MAX.running + HASHING_MAX.waiting; at++) {
    busy.run(`203.0.113.${Math.floor(at / HASHING_MAX.network)}`, `busy${at}@example.test`)
  }
  const responses = begin('192.0.2.9', owner.email, owner.password)
  let isAnswered = false
  void responses.finally(() => {
    isAnswered = true
  })
  // The address is refused as well, and gets its response while the queue is busy.
  while (busy.refused.length === 0 && !isAnswered) await new Promise(setImmediate)
  busy.release()
  const { status, text } = await responses
  assert.equal(status, 200, text)
  assert.deepEqual(
    busy.refused.map((error) => (error as ApiError).code),
    ['UNAVAILABLE'],
  )
})

test('a full queue refuses existing and unknown e-mail addresses alike', async () => {
  now += 120_000
  const answers = []
  for (const email of [owner.email, 'nobody@example.test']) {
    const busy = occupy()
    for (let at = 0; at < HASHING_MAX.email; at++) busy.run(`203.0.113.${at}`, email)
    const { status, body, headers } = await begin('192.0.2.9', email)
    answers.push([status, body.code, body.message, headers['retry-after']])
    busy.release()
  }
  assert.deepEqual(answers[0], answers[1])
  assert.equal(answers[0]?.[0], 429)
})

test('for any sequence, limits hold, every task ends, and small clients keep their share', async () => {
  const limits = { running: 2, waiting: 4, network: 2, site: 3, email: 2 }
  const ips = [
    '192.0.2.1',
    '192.0.2.2',
    '2001:db8:1:1::1',
    '2001:db8:1:2::1',
    '2001:db8:1:3::1',
    '192.0.2.3',
    '192.0.2.4',
  ]
  const step = fc.record({
    ip: fc.constantFrom(...ips),
    email: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    isEnd: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const queue = new PasswordQueue({ now: () => 0 }, limits)
      const started: { end(): void }[] = []
      let running = 0
      let most = 0
      const open = new Map<object, { site: string; network: string; email: string }>()
      const all: Promise<unknown>[] = []
      for (const { ip, email, isEnd } of steps) {
        if (isEnd) {
          started.shift()?.end()
          await new Promise(setImmediate)
        }
        const task = {}
        open.set(task, { ...clientNetworks(ip), email })
        all.push(
          queue
            .run({ ip, email }, async () => {
              running++
              most = Math.max(most, running)
              const { promise, resolve } = Promise.withResolvers<void>()
              started.push({ end: resolve })
              await promise
              running--
            })
            .catch((error: unknown) => {
              assert.ok(
                error instanceof ApiError && ['RATE_LIMITED', 'UNAVAILABLE'].includes(error.code),
              )
              const { site } = open.get(task) as { site: string }
              if (error.code !== 'UNAVAILABLE') return
              const counts = new Map<string, number>()
              for (const each of open.values())
                counts.set(each.site, (counts.get(each.site) ?? 0) + 1)
              assert.ok(
                [...counts.values()].every((count) => count <= (counts.get(site) ?? 0) + 1),
                'a site with more was spared',
              )
            })
            .finally(() => open.delete(task)),
        )
        await new Promise(setImmediate)
        assert.ok(open.size <= limits.running + limits.waiting)
        for (const name of ['network', 'site', 'email'] as const) {
          const counts = new Map<string, number>()
          for (const each of open.values())
            counts.set(each[name], (counts.get(each[name]) ?? 0) + 1)
          assert.ok(
            [...counts.values()].every((count) => count <= limits[name]),
            name,
          )
        }
      }
      while (open.size > 0) {
        started.shift()?.end()
        await new Promise(setImmediate)
      }
      await Promise.all(all)
      assert.ok(most <= limits.running)
    }),
    { numRuns: 100 },
  )
})
