import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Notifier } from '../../ledger/notifier.ts'
import { runLoops, type Loop } from './loop.ts'
import type { Database } from '../../database/pool.ts'
import type { Role } from '../../settings/settings.ts'

/** Loops with a manual clock and a database with scripted answers. */
class Fixture {
  /** Loops that have due work, by index; null if the database is unreachable. */
  due: string | null = ''
  requests: string[] = []
  role: Role = 'all'
  ran: string[] = []
  #now = 0
  readonly #sleeping = new Set<{ until: number; wake: () => void }>()
  readonly #end = new AbortController()
  #done: Promise<void> = Promise.resolve()

  readonly environment = {
    now: () => this.#now,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        const sleeper = {
          until: this.#now + ms,
          wake: () => {
            this.#sleeping.delete(sleeper)
            resolve()
          },
        }
        this.#sleeping.add(sleeper)
        signal?.addEventListener('abort', sleeper.wake, { once: true })
      }),
  }

  loop(name: string, more: Partial<Loop> = {}): Loop {
    return {
      name,
      everyMs: 500,
      run: async () => {
        this.ran.push(name)
        return false
      },
      ...more,
    }
  }

  async start(...loops: Loop[]): Promise<void> {
    const database = {
      now: () => new Date(this.#now),
      one: async (text: string) => {
        this.requests.push(text)
        if (this.due === null) throw new Error('the database is away')
        return { due: this.due }
      },
    }
    const services = {
      environment: this.environment,
      database: database as unknown as Database,
      settings: { role: this.role },
      log: { warn: () => undefined },
    }
    this.#done = runLoops(services, loops, this.#end.signal)
    await this.settle()
    this.ran = []
  }

  /** Resolves once pending work is done. */
  settle = () =>
    new Promise<void>((resolve) => {
      setImmediate(() => {
        setImmediate(resolve)
      })
    })

  async pass(ms: number): Promise<void> {
    const end = this.#now + ms
    for (;;) {
      const next = [...this.#sleeping].sort((a, b) => a.until - b.until)[0]
      if (!next || next.until > end) break
      this.#now = next.until
      next.wake()
      await this.settle()
    }
    this.#now = end
  }

  async stop(): Promise<void> {
    this.#end.abort()
    await this.#done
  }
}

test('one statement finds all loops with due work; other loops run at their interval', async () => {
  const fixture = new Fixture()
  await fixture.start(
    fixture.loop('a', { due: 'is_a($1)' }),
    fixture.loop('plain', { everyMs: 1000 }),
    fixture.loop('b', { due: 'is_b($1)' }),
  )
  await fixture.pass(2000)
  assert.deepEqual(fixture.ran, ['plain', 'plain'])
  assert.equal(fixture.requests.length, 4)
  assert.ok(
    fixture.requests.every(
      (text) => text.includes('(is_a($1)) then 0') && text.includes('(is_b($1)) then 1'),
    ),
    fixture.requests[0],
  )
  fixture.due = '1'
  await fixture.pass(500)
  assert.deepEqual(fixture.ran.splice(0), ['plain', 'plain', 'b'])
  fixture.due = '0 1'
  await fixture.pass(400)
  assert.deepEqual(fixture.ran.splice(0), [])
  await fixture.pass(100)
  assert.deepEqual(fixture.ran.splice(0).sort(), ['a', 'b', 'plain'])
  await fixture.stop()
})

test('the statement has its interval parameter even if no loop uses it, as in an API process', async () => {
  const fixture = new Fixture()
  await fixture.start(
    fixture.loop('publish', { due: 'exists (select 1 from events where position is null)' }),
  )
  await fixture.pass(1000)
  await fixture.stop()
  // PostgreSQL refuses a parameter that the statement does not use, so each statement must contain
  // $1.
  assert.deepEqual(
    [fixture.requests.length > 0, fixture.requests.every((text) => text.includes('$1'))],
    [true, true],
  )
})

test('a loop with a longer pause never runs more often, however much work is due', async () => {
  const fixture = new Fixture()
  fixture.due = '0 1'
  await fixture.start(
    fixture.loop('often', { due: 'true' }),
    fixture.loop('seldom', { due: 'true', everyMs: 2000 }),
  )
  await fixture.pass(4000)
  assert.deepEqual(
    ['often', 'seldom'].map((name) => fixture.ran.filter((each) => each === name).length),
    [8, 2],
  )
  await fixture.stop()
})

test('a notification runs its loop immediately, and further work follows without a pause', async () => {
  const fixture = new Fixture()
  const notifier = new Notifier(fixture.environment)
  let left = 0
  const loop = fixture.loop('rung', { due: 'false', notifier: notifier })
  await fixture.start({
    ...loop,
    run: async (signal) => {
      await loop.run(signal)
      if (left === 2) notifier.ring()
      return left-- > 1
    },
  })
  notifier.ring()
  await fixture.settle()
  assert.equal(fixture.ran.splice(0).length, 1)
  left = 2
  notifier.ring()
  await fixture.settle()
  // The loop ran twice before, and once for the notification in between.
  assert.equal(fixture.ran.length, 3)
  assert.equal(fixture.requests.length, 0)
  await fixture.stop()
})

test('while the database is unreachable loops back off, and they continue afterwards', async () => {
  const fixture = new Fixture()
  const loop = fixture.loop('a', { due: 'is_a($1)' })
  await fixture.start({
    ...loop,
    run: async (signal) => {
      await loop.run(signal)
      if (fixture.due === null) throw new Error('the database is away')
      return false
    },
  })
  fixture.due = null
  await fixture.pass(500 + 1000 + 2000)
  assert.equal(fixture.ran.splice(0).length, 3)
  fixture.due = ''
  await fixture.pass(4000)
  assert.equal(fixture.ran.splice(0).length, 1)
  fixture.due = '0'
  await fixture.pass(500)
  assert.equal(fixture.ran.length, 1)
  await fixture.stop()
})

test('after ten idle seconds, due work is queried once a second until a notification', async () => {
  for (const [role, asks] of [
    ['all', 5],
    ['worker', 20],
  ] as const) {
    const fixture = new Fixture()
    fixture.role = role
    const notifier = new Notifier(fixture.environment)
    await fixture.start(fixture.loop('a', { everyMs: 250, due: 'is_a($1)', notifier: notifier }))
    await fixture.pass(10_000)
    assert.ok(fixture.requests.length >= 39, `${fixture.requests.length}`)
    fixture.requests = []
    await fixture.pass(5000)
    assert.equal(fixture.requests.length, asks, role)
    fixture.requests = []
    notifier.ring()
    await fixture.settle()
    assert.deepEqual(fixture.ran, ['a'])
    // Work that the step scheduled for a moment later does not wait for a full second.
    await fixture.pass(250)
    assert.equal(fixture.requests.length, 1)
    await fixture.pass(1000)
    assert.equal(fixture.requests.length, 5)
    await fixture.stop()
  }
})
