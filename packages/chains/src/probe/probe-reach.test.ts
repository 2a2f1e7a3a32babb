import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MeteredFetch } from './metered-fetch.ts'
import { measureHistory, type BlockMark } from './history-depth.ts'
import { Report } from './report.ts'

/** Determines how far back an endpoint's history reaches, with a limited number of requests. */
const DAY_S = 86_400
const HEAD_TIME = 1_800_000_000

/** A chain with a constant block time, of which an endpoint retains the newest blocks. */
async function reachOf({
  blockSeconds,
  height,
  keptDays,
}: {
  blockSeconds: number
  height: number
  keptDays: number
}) {
  const endpoint = { url: 'http://127.0.0.1:1' }
  const report = new Report(
    endpoint,
    new MeteredFetch(
      endpoint.url,
      () => Promise.reject(new Error('not asked')),
      () => 0,
      async () => undefined,
    ),
  )
  const timeOf = (at: number) => HEAD_TIME - (height - at) * blockSeconds
  let questions = 0
  let oldest = height
  await measureHistory(
    report,
    'blocks',
    { height, time: HEAD_TIME },
    0,
    async (at): Promise<BlockMark | null> => {
      questions++
      assert.ok(Number.isSafeInteger(at) && at >= 0 && at < height, `block ${at}`)
      if (timeOf(at) < HEAD_TIME - keptDays * DAY_S) return null
      oldest = Math.min(oldest, at)
      return { height: at, time: timeOf(at) }
    },
  )
  return { line: report.lines[0], questions, days: (HEAD_TIME - timeOf(oldest)) / DAY_S }
}

test('measures any length of history within 15 % with at most 16 requests', async () => {
  for (const blockSeconds of [0.2, 2, 12, 600]) {
    for (const keptDays of [1.5, 3, 6.5, 8, 20]) {
      const { questions, days } = await reachOf({
        blockSeconds,
        height: Math.ceil((400 * DAY_S) / blockSeconds),
        keptDays,
      })
      const name = `${keptDays} days of blocks of ${blockSeconds} s: ${days} by ${questions} questions`
      assert.ok(questions <= 16, name)
      assert.ok(days <= keptDays && days > keptDays * 0.85, name)
    }
  }
})

test('a history is ok from 7 days, limited from one hour, and missing below one hour', async () => {
  const height = 50_000_000
  const states: [number, string, RegExp][] = [
    [400, 'ok', /reaches back at least 30\.0 days/],
    [10, 'ok', /reaches back (?:9|10)\.\d days \(block \d+/],
    [3, 'limited', /reaches back only [23]\.\d days/],
    [0.02, 'missing', /reaches back only 2\d minutes/],
  ]
  for (const [keptDays, state, reason] of states) {
    const { line } = await reachOf({ blockSeconds: 2, height, keptDays })
    assert.deepEqual([line?.code, line?.state], ['history', state], line?.reason)
    assert.match(line?.reason ?? '', reason)
  }
})

test('reads a chain that is younger than the required history from its first block', async () => {
  const { line, questions } = await reachOf({ blockSeconds: 12, height: 3000, keptDays: 400 })
  assert.deepEqual([line?.state, questions], ['ok', 2])
  assert.match(line?.reason ?? '', /reaches back to the first block$/)
})
