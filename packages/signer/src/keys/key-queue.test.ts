import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Refusal } from '../errors.ts'
import {
  GENERATIONS_MAX,
  KeyQueue,
  SIGNING_WAIT_MS_MAX,
  WAITING_MAX,
  type QueuePlace,
} from './key-queue.ts'
import type { Curve } from '@custody/chains'

/** Lets every promise that is already settled run its handlers. */
const settle = () => new Promise((resolve) => setImmediate(resolve))

/** Environment of a queue: a clock, a pool of keys, and generations that the test completes. */
class Fixture {
  now = 0
  isAble = true
  isSigning = false
  pool = { secp256k1: 0, ed25519: 0 }
  readonly keys: Record<Curve, string[]> = { secp256k1: [], ed25519: [] }
  /** Assigned keys by workspace and curve. */
  readonly owners = new Map<string, string>()
  /** Workspaces and curves with a key, in the order of the assignments. */
  readonly order: string[] = []
  /** Keys that were chosen for a workspace, by an assignment that did not complete. */
  readonly paired = new Map<string, string>()
  readonly generations: (PromiseWithResolvers<void> & { curve: Curve })[] = []
  readonly timers: { run: () => void; at: number }[] = []
  readonly logs: string[] = []
  failAssignment: Error | null = null
  readonly refusedByPeers = new Set<string>()
  #made = 0
  queue = this.open()

  /** Opens a queue on the same keys, as a restart of the node does. */
  open(): KeyQueue<string> {
    return new KeyQueue<string>({
      pool: this.pool,
      ready: (curve) => this.keys[curve].length,
      isPaired: (workspace, curve) => this.paired.has(`${workspace} ${curve}`),
      assign: async (workspace, curve) => {
        const name = `${workspace} ${curve}`
        const key = this.paired.get(name) ?? (this.keys[curve].shift() as string)
        await settle()
        if (this.refusedByPeers.has(key)) return null
        if (this.failAssignment) {
          this.keys[curve].unshift(key)
          throw this.failAssignment
        }
        assert.equal(this.owners.has(name), false, `${name} has a key already`)
        this.owners.set(name, key)
        this.order.push(name)
        return key
      },
      generate: (curve) => {
        const generation = { ...Promise.withResolvers<void>(), curve }
        this.generations.push(generation)
        return generation.promise
      },
      isAble: () => this.isAble,
      isSigning: () => this.isSigning,
      now: () => this.now,
      later: (run, ms) => this.timers.push({ run, at: this.now + ms }),
      log: (_level, message) => this.logs.push(message),
    })
  }

  /** Completes the oldest generation in progress. */
  async generated(): Promise<Curve> {
    const generation = this.generations.shift()
    assert.ok(generation, 'a generation is in progress')
    this.keys[generation.curve].push(`key ${++this.#made}`)
    generation.resolve()
    for (let turn = 0; turn < 4; turn++) await settle()
    return generation.curve
  }

  async failed(error: Error): Promise<void> {
    const generation = this.generations.shift()
    assert.ok(generation, 'a generation is in progress')
    generation.reject(error)
    for (let turn = 0; turn < 4; turn++) await settle()
  }

  /** Advances the clock, and runs the timers that are due. */
  async pass(ms: number): Promise<void> {
    for (const end = this.now + ms; ; await settle()) {
      const due = this.timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
      this.now = Math.max(this.now, due?.at ?? end)
      if (!due) return
      this.timers.splice(this.timers.indexOf(due), 1)
      due.run()
    }
  }
}

const at = (place: number, waiting: number): QueuePlace => ({ place, waiting })

test('assigns a prepared key without a place in the queue', async () => {
  const fixture = new Fixture()
  fixture.keys.secp256k1.push('prepared')
  assert.equal(await fixture.queue.request('a', 'secp256k1'), 'prepared')
  assert.deepEqual([fixture.queue.waiting, fixture.generations.length], [0, 0])
})

test('serves waiting workspaces in the order of their first request', async () => {
  const fixture = new Fixture()
  for (const [index, name] of ['a', 'b', 'c', 'd', 'e'].entries())
    assert.deepEqual(await fixture.queue.request(name, 'secp256k1'), at(index + 1, index + 1))
  // A repeated request keeps its place, and adds none.
  assert.deepEqual(await fixture.queue.request('b', 'secp256k1'), at(2, 5))
  for (let count = 1; count <= 5; count++) {
    await fixture.generated()
    assert.equal(fixture.order.length, count)
  }
  assert.deepEqual(
    fixture.order,
    ['a', 'b', 'c', 'd', 'e'].map((name) => `${name} secp256k1`),
  )
  assert.equal(fixture.generations.length, 0, 'generates one key for each place')
})

test('generates at most two keys at a time, for the first places of either curve', async () => {
  const fixture = new Fixture()
  await fixture.queue.request('a', 'secp256k1')
  await fixture.queue.request('a', 'ed25519')
  await fixture.queue.request('b', 'ed25519')
  assert.deepEqual(
    fixture.generations.map(({ curve }) => curve),
    ['secp256k1', 'ed25519'],
  )
  assert.equal(fixture.queue.generating, GENERATIONS_MAX)
  await fixture.generated()
  assert.deepEqual(
    fixture.generations.map(({ curve }) => curve),
    ['ed25519', 'ed25519'],
  )
})

test('fills the pool only after all places have a key', async () => {
  const fixture = new Fixture()
  fixture.pool.ed25519 = 1
  fixture.pool.secp256k1 = 2
  for (const name of ['a', 'b', 'c']) await fixture.queue.request(name, 'secp256k1')
  const curves: Curve[] = []
  while (fixture.generations.length > 0) curves.push(await fixture.generated())
  assert.deepEqual(curves.slice(0, 3), ['secp256k1', 'secp256k1', 'secp256k1'])
  assert.deepEqual(curves.slice(3).sort(), ['ed25519', 'secp256k1', 'secp256k1'])
  assert.equal(fixture.order.length, 3)
})

test('a workspace that requests often has one place for each curve, and delays others by two', async () => {
  const fixture = new Fixture()
  for (let count = 0; count < 1000; count++) {
    await fixture.queue.request('flood', 'secp256k1')
    await fixture.queue.request('flood', 'ed25519')
  }
  assert.deepEqual(await fixture.queue.request('other', 'secp256k1'), at(3, 3))
})

test('refuses a request above the limit of places, and accepts it when a place is free', async () => {
  const fixture = new Fixture()
  for (let index = 0; index < WAITING_MAX; index++)
    await fixture.queue.request(`w${index}`, 'secp256k1')
  await assert.rejects(
    fixture.queue.request('late', 'secp256k1'),
    (error) => error instanceof Refusal && error.code === 'TOO_BUSY',
  )
  // Workspaces with a place are served although the queue is full.
  assert.deepEqual(await fixture.queue.request('w7', 'secp256k1'), at(8, WAITING_MAX))
  await fixture.generated()
  assert.deepEqual(await fixture.queue.request('late', 'secp256k1'), at(WAITING_MAX, WAITING_MAX))
})

test('starts no generation while a signature is made, for at most the limit', async () => {
  const fixture = new Fixture()
  fixture.isSigning = true
  await fixture.queue.request('a', 'secp256k1')
  await fixture.queue.request('b', 'secp256k1')
  await fixture.pass(SIGNING_WAIT_MS_MAX - 100)
  assert.equal(fixture.generations.length, 0)
  await fixture.pass(100)
  assert.equal(fixture.generations.length, 1, 'uninterrupted signing does not prevent a generation')
  await fixture.pass(SIGNING_WAIT_MS_MAX - 100)
  assert.equal(fixture.generations.length, 1, 'the next generation waits too')
  fixture.isSigning = false
  await fixture.pass(100)
  assert.equal(fixture.generations.length, 2)
})

test('repeats a failed generation with growing delays, and keeps the order', async () => {
  const fixture = new Fixture()
  for (const name of ['a', 'b']) await fixture.queue.request(name, 'secp256k1')
  await fixture.failed(new Refusal('TOO_BUSY', 'no'))
  await fixture.failed(new Refusal('SESSION_ABORTED', 'no'))
  assert.equal(fixture.generations.length, 0)
  await fixture.pass(900)
  assert.equal(fixture.generations.length, 0)
  await fixture.pass(1100)
  assert.equal(fixture.generations.length, 2)
  await fixture.generated()
  await fixture.generated()
  assert.deepEqual(fixture.order, ['a secp256k1', 'b secp256k1'])
})

test('generates no key while it is unable to, and continues when it is served again', async () => {
  const fixture = new Fixture()
  fixture.isAble = false
  assert.deepEqual(await fixture.queue.request('a', 'secp256k1'), at(1, 1))
  assert.equal(fixture.generations.length, 0)
  fixture.isAble = true
  fixture.queue.serve()
  await fixture.generated()
  assert.deepEqual(fixture.order, ['a secp256k1'])
})

test('returns the error of an assignment, and assigns the same key at the next request', async () => {
  const fixture = new Fixture()
  fixture.keys.secp256k1.push('prepared')
  fixture.failAssignment = new Refusal('PEER_UNAVAILABLE', 'no')
  const both = ['a', 'a'].map((name) => fixture.queue.request(name, 'secp256k1'))
  for (const each of both) await assert.rejects(each, fixture.failAssignment)
  fixture.failAssignment = null
  assert.equal(await fixture.queue.request('a', 'secp256k1'), 'prepared')
  assert.equal(fixture.owners.size, 1)
})

test('a workspace keeps its place while the peers accept none of the prepared keys', async () => {
  const fixture = new Fixture()
  fixture.keys.secp256k1.push('old', 'older')
  for (const key of ['old', 'older']) fixture.refusedByPeers.add(key)
  assert.deepEqual(await fixture.queue.request('a', 'secp256k1'), { place: 1, waiting: 1 })
  for (let turn = 0; turn < 4; turn++) await settle()
  await fixture.generated()
  assert.equal(fixture.owners.get('a secp256k1'), 'key 1')
  assert.equal(fixture.queue.waiting, 0)
})

test('concurrent requests of a workspace get the same key', async () => {
  const fixture = new Fixture()
  fixture.keys.secp256k1.push('one', 'two')
  assert.deepEqual(
    await Promise.all(['a', 'a', 'a'].map((name) => fixture.queue.request(name, 'secp256k1'))),
    ['one', 'one', 'one'],
  )
  assert.deepEqual(fixture.keys.secp256k1, ['two'])
})

test('after a restart, requests create the places again, and a chosen key is kept', async () => {
  const fixture = new Fixture()
  for (const name of ['a', 'b', 'c']) await fixture.queue.request(name, 'secp256k1')
  fixture.queue.stop()
  // The generations of the earlier process have ended: one of them left a key.
  fixture.generations.splice(0)
  fixture.keys.secp256k1.push('left')
  fixture.paired.set('c secp256k1', 'chosen')
  fixture.queue = fixture.open()
  assert.equal(await fixture.queue.request('c', 'secp256k1'), 'chosen')
  assert.equal(await fixture.queue.request('b', 'secp256k1'), 'left')
  assert.deepEqual(await fixture.queue.request('a', 'secp256k1'), at(1, 1))
  await fixture.generated()
  assert.equal(fixture.owners.size, 3)
  assert.equal(new Set(fixture.owners.values()).size, 3)
})

test('stays below the rate at which the peers accept generations', async () => {
  const fixture = new Fixture()
  fixture.pool.secp256k1 = 100_000
  fixture.queue.serve()
  let made = 0
  const minutes = 60
  for (let step = 0; step < minutes * 60; step++) {
    while (fixture.generations.length > 0) {
      fixture.generations.shift()?.resolve()
      made++
      await settle()
    }
    await fixture.pass(1000)
  }
  // The peers allow 200, and one more every two seconds (GENERATIONS of ceremony.ts).
  assert.ok(made < 200 + (minutes * 60) / 2, String(made))
  assert.ok(made > 1000, String(made))
})
