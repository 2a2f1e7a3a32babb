import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pressure } from '../src/pressure.ts'

/** The event loop has nothing else to do for so long. */
const spin = (ms: number) => { for (const until = performance.now() + ms; performance.now() < until;); }

test('other work makes way where many requests are being answered and the loop is full, and nowhere else', async () => {
  const pressure = new Pressure()
  const answers: (() => void)[] = []
  const ask = () => pressure.during(() => new Promise<void>((resolve) => answers.push(resolve)))
  const asked = Array.from({ length: 8 }, ask)
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
  for (const answer of answers) answer()
  await Promise.all(asked)
})
