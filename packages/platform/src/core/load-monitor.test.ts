import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { PRIORITY_MS, LoadMonitor, systemMeters, type Meters } from './load-monitor.ts'

test('a burst has priority for two seconds, and again only after a phase with few requests', async () => {
  let now = 0
  const pressure = new LoadMonitor(() => now)
  const seen = () => [pressure.isBurst, pressure.isHigh]
  const answers: (() => void)[] = []
  const answered = () => new Promise<void>((resolve) => answers.push(resolve))
  const ask = (count: number) => Array.from({ length: count }, () => pressure.during(answered))
  const pending = ask(7)
  assert.deepEqual(seen(), [false, false], 'seven are no crowd')
  pending.push(...ask(1))
  assert.deepEqual(seen(), [true, true])
  now += PRIORITY_MS - 1
  assert.deepEqual(seen(), [true, true])
  now += 1
  assert.equal(pressure.isBurst, false, 'nothing waits for longer')
  answers.pop()?.()
  await pending.pop()
  now += 300
  pending.push(...ask(1))
  assert.equal(pressure.isBurst, true)
  now += 299
  assert.equal(pressure.isBurst, true)
  now += 1
  assert.equal(pressure.isBurst, false)
  for (const answer of answers.splice(0)) answer()
  await Promise.all(pending.splice(0))
  now += 10 * PRIORITY_MS
  pending.push(...ask(8))
  now += PRIORITY_MS
  assert.equal(pressure.isBurst, false, 'a long rest makes no longer burst')
  for (const answer of answers) answer()
  await Promise.all(pending)
})

/** Meters whose values change only when a test advances them. */
class FakeMeters implements Meters {
  readonly #loop = { all: 0, busy: 0 }
  readonly #processors = { all: 0, busy: 0 }
  loop = () => ({ ...this.#loop })
  processors = () => ({ ...this.#processors })

  /**
   * Advances the time; `loop` and `machine` are the shares of the time in which the event loop and
   * the machine are busy.
   */
  pass(ms: number, { loop = 0, machine = 0 } = {}): void {
    this.#loop.all += ms
    this.#loop.busy += ms * loop
    this.#processors.all += 2 * ms
    this.#processors.busy += 2 * ms * machine
  }
}

test('background work is throttled only while many requests run and the process is busy', async () => {
  let now = 0
  const meters = new FakeMeters()
  const pressure = new LoadMonitor(() => now, meters)
  const answers: (() => void)[] = []
  const ask = () => pressure.during(() => new Promise<void>((resolve) => answers.push(resolve)))
  const pending = Array.from({ length: 8 }, ask)
  now += PRIORITY_MS
  meters.pass(120, { loop: 0.1 })
  assert.equal(
    pressure.isHigh,
    false,
    'the requests wait for something else: the event loop is idle',
  )
  meters.pass(120, { loop: 1 })
  assert.equal(pressure.isHigh, true)
  meters.pass(49)
  assert.equal(pressure.isHigh, true, 'the last result counts until 50 ms have passed')
  meters.pass(1)
  assert.equal(pressure.isHigh, false)
  meters.pass(100, { loop: 0.9 })
  assert.equal(pressure.isHigh, true, '90 % is full')
  meters.pass(100, { loop: 0.89 })
  assert.equal(pressure.isHigh, false, 'less is not')
  answers[0]?.()
  await pending[0]
  meters.pass(120, { loop: 1 })
  assert.equal(pressure.isHigh, false, 'seven requests are few')
  const failed = pressure.during(async () => {
    throw new Error('refused')
  })
  await assert.rejects(failed, /refused/)
  assert.equal(pressure.isHigh, false, 'a request that failed is no longer counted')
  pending.push(ask())
  meters.pass(120, { loop: 1 })
  assert.equal(pressure.isHigh, true, 'eight requests wait again')
  meters.pass(1000, { machine: 0.94 })
  assert.equal(pressure.isHigh, false, '94 % of all processors is not full')
  meters.pass(60, { machine: 0.95 })
  assert.equal(
    pressure.isHigh,
    true,
    'the event loop is idle, and all processors of its machine are busy',
  )
  meters.pass(60)
  assert.equal(pressure.isHigh, false, 'they are no longer busy')
  for (const answer of answers) answer()
  await Promise.all(pending)
})

test('the CPU and event-loop counters advance, and their busy part is within the total', async () => {
  const pressure = new LoadMonitor()
  assert.equal(pressure.isHigh, false, 'there is no request')
  const [before, began] = [systemMeters.processors(), systemMeters.loop()]
  // The system updates both counters in steps, so the first reading may be unchanged for a while.
  while (systemMeters.processors().all === before.all || systemMeters.loop().all === began.all)
    await sleep(10)
  for (const { all, busy } of [systemMeters.processors(), systemMeters.loop()])
    assert.ok(busy > 0 && busy <= all, `${busy} of ${all}`)
})
