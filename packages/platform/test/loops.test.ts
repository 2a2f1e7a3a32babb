import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Notifier } from '../src/ledger/notifier.ts'
import { runLoops, type Loop } from '../src/engine/loop.ts'
import type { Services } from '../src/engine/services.ts'

/** Loops with a manual clock and a database with scripted answers. */
class Stage {
  /** Which loops something is due to, by their place; null: the database is away. */
  due: string | null = ''
  asked: string[] = []
  role = 'all'
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
        this.asked.push(text)
        if (this.due === null) throw new Error('the database is away')
        return { due: this.due }
      },
    }
    const services = {
      environment: this.environment,
      database,
      settings: { role: this.role },
      log: { warn: () => undefined },
    } as unknown as Services
    this.#done = runLoops(services, loops, this.#end.signal)
    await this.settle()
    this.ran = []
  }

  /** What is on its way is done. */
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

test('one statement queries all loops with due work; only those run, and the others at their interval', async () => {
  const stage = new Stage()
  await stage.start(
    stage.loop('a', { due: 'is_a($1)' }),
    stage.loop('plain', { everyMs: 1000 }),
    stage.loop('b', { due: 'is_b($1)' }),
  )
  await stage.pass(2000)
  assert.deepEqual(stage.ran, ['plain', 'plain'])
  assert.equal(stage.asked.length, 4)
  assert.ok(
    stage.asked.every(
      (text) => text.includes('(is_a($1)) then 0') && text.includes('(is_b($1)) then 1'),
    ),
    stage.asked[0],
  )
  stage.due = '1'
  await stage.pass(500)
  assert.deepEqual(stage.ran.splice(0), ['plain', 'plain', 'b'])
  stage.due = '0 1'
  await stage.pass(400)
  assert.deepEqual(stage.ran.splice(0), [])
  await stage.pass(100)
  assert.deepEqual(stage.ran.splice(0).sort(), ['a', 'b', 'plain'])
  await stage.stop()
})

test('the statement gets its configured interval even if no loop needs it, as in an API-only process', async () => {
  const stage = new Stage()
  await stage.start(
    stage.loop('publish', { due: 'exists (select 1 from events where position is null)' }),
  )
  await stage.pass(1000)
  await stage.stop()
  // PostgreSQL refuses a value that the statement has no place for.
  assert.deepEqual(
    [stage.asked.length > 0, stage.asked.every((text) => text.includes('$1'))],
    [true, true],
  )
})

test('a loop with a longer pause never runs more often, however much is due', async () => {
  const stage = new Stage()
  stage.due = '0 1'
  await stage.start(
    stage.loop('often', { due: 'true' }),
    stage.loop('seldom', { due: 'true', everyMs: 2000 }),
  )
  await stage.pass(4000)
  assert.deepEqual(
    ['often', 'seldom'].map((name) => stage.ran.filter((each) => each === name).length),
    [8, 2],
  )
  await stage.stop()
})

test('a notifier runs its loop immediately, also if notified while it runs; further work follows without a pause', async () => {
  const stage = new Stage()
  const bell = new Notifier(stage.environment as never)
  let left = 0
  const loop = stage.loop('rung', { due: 'false', bell })
  await stage.start({
    ...loop,
    run: async (signal) => {
      await loop.run(signal)
      if (left === 2) bell.ring()
      return left-- > 1
    },
  })
  bell.ring()
  await stage.settle()
  assert.equal(stage.ran.splice(0).length, 1)
  left = 2
  bell.ring()
  await stage.settle()
  // Two that there were, and one for the ring in between.
  assert.equal(stage.ran.length, 3)
  assert.equal(stage.asked.length, 0)
  await stage.stop()
})

test('while the database is unreachable every loop fails, waits ever longer, and continues afterwards', async () => {
  const stage = new Stage()
  const loop = stage.loop('a', { due: 'is_a($1)' })
  await stage.start({
    ...loop,
    run: async (signal) => {
      await loop.run(signal)
      if (stage.due === null) throw new Error('the database is away')
      return false
    },
  })
  stage.due = null
  await stage.pass(500 + 1000 + 2000)
  assert.equal(stage.ran.splice(0).length, 3)
  stage.due = ''
  await stage.pass(4000)
  assert.equal(stage.ran.splice(0).length, 1)
  stage.due = '0'
  await stage.pass(500)
  assert.equal(stage.ran.length, 1)
  await stage.stop()
})

test('after ten idle seconds the query runs once a second until something changes; with work from others it does not slow down', async () => {
  for (const [role, asks] of [
    ['all', 5],
    ['worker', 20],
  ] as const) {
    const stage = new Stage()
    stage.role = role
    const bell = new Notifier(stage.environment as never)
    await stage.start(stage.loop('a', { everyMs: 250, due: 'is_a($1)', bell }))
    await stage.pass(10_000)
    assert.ok(stage.asked.length >= 39, `${stage.asked.length}`)
    stage.asked = []
    await stage.pass(5000)
    assert.equal(stage.asked.length, asks, role)
    stage.asked = []
    bell.ring()
    await stage.settle()
    assert.deepEqual(stage.ran, ['a'])
    // What the step made due for a moment later is not left for a second.
    await stage.pass(250)
    assert.equal(stage.asked.length, 1)
    await stage.pass(1000)
    assert.equal(stage.asked.length, 5)
    await stage.stop()
  }
})
