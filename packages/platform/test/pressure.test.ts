import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { FIRST_MS, Pressure } from '../src/pressure.ts'

/** The event loop has nothing else to do for so long. */
const spin = (ms: number) => { for (const until = performance.now() + ms; performance.now() < until;); }

test('a burst goes first for two seconds, and again only as long as requests were few meanwhile', async () => {
  let now = 0
  const pressure = new Pressure(() => now)
  const seen = () => [pressure.isBurst, pressure.isHigh]
  const answers: (() => void)[] = []
  const answered = () => new Promise<void>((resolve) => answers.push(resolve))
  const ask = (count: number) => Array.from({ length: count }, () => pressure.during(answered))
  const asked = ask(7)
  assert.deepEqual(seen(), [false, false], 'seven are no crowd')
  asked.push(...ask(1))
  assert.deepEqual(seen(), [true, true])
  now += FIRST_MS - 1
  assert.deepEqual(seen(), [true, true])
  now += 1
  assert.equal(pressure.isBurst, false, 'nothing waits for longer')
  answers.pop()?.()
  await asked.pop()
  now += 300
  asked.push(...ask(1))
  assert.equal(pressure.isBurst, true)
  now += 299
  assert.equal(pressure.isBurst, true)
  now += 1
  assert.equal(pressure.isBurst, false)
  for (const answer of answers.splice(0)) answer()
  await Promise.all(asked.splice(0))
  now += 10 * FIRST_MS
  asked.push(...ask(8))
  now += FIRST_MS
  assert.equal(pressure.isBurst, false, 'a long rest makes no longer burst')
  for (const answer of answers) answer()
  await Promise.all(asked)
})

test('where many requests are answered for longer, other work makes way while loop or machine is full, and nowhere else', async () => {
  let now = 0
  const machine = { all: 0, busy: 0 }
  const pressure = new Pressure(() => now, () => ({ ...machine }))
  const answers: (() => void)[] = []
  const ask = () => pressure.during(() => new Promise<void>((resolve) => answers.push(resolve)))
  const asked = Array.from({ length: 8 }, ask)
  now += FIRST_MS
  await sleep(120)
  assert.equal(pressure.isHigh, false, 'they wait for somebody else: the processor is free')
  spin(120)
  assert.equal(pressure.isHigh, true)
  assert.equal(pressure.isHigh, true, 'what was seen a moment ago counts on')
  answers[0]?.()
  await asked[0]
  spin(120)
  assert.equal(pressure.isHigh, false, 'few wait for their answers')
  const failed = pressure.during(async () => { throw new Error('refused') })
  await assert.rejects(failed, /refused/)
  asked.push(ask())
  spin(120)
  assert.equal(pressure.isHigh, true, 'what failed is counted no more, and eight wait again')
  await sleep(200)
  assert.equal(pressure.isHigh, false)
  Object.assign(machine, { all: 1000, busy: 940 })
  await sleep(60)
  assert.equal(pressure.isHigh, false)
  Object.assign(machine, { all: 2000, busy: 1890 })
  await sleep(60)
  assert.equal(pressure.isHigh, true, 'the loop waits, and all processors of its machine are busy')
  await sleep(60)
  assert.equal(pressure.isHigh, false, 'they are no longer')
  for (const answer of answers) answer()
  await Promise.all(asked)
})
