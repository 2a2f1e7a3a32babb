// When a transfer is judged again that the policy does not allow now.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { waitMs } from './judge-again.ts'

const NOW_S = 1_800_000_000
const NOW_MS = NOW_S * 1000
const after = (...seconds: (number | null)[]) =>
  waitMs(
    seconds.map((each) => (each === null ? null : NOW_S + each)),
    NOW_MS,
  )
const TEN_MINUTES_MS = 600_000
const LONGEST_S = 168 * 3600 + 120

test('a transfer is judged again when the first node has room, and one second later', () => {
  assert.equal(after(30), 31_000)
  assert.equal(after(90, 30, null), 31_000)
  assert.equal(waitMs([NOW_S + 1], NOW_MS + 900), 1100)
})

test('a transfer is judged again after at most ten minutes', () => {
  assert.equal(after(3600), TEN_MINUTES_MS)
  assert.equal(after(null), TEN_MINUTES_MS)
  assert.equal(after(), TEN_MINUTES_MS)
})

test('attack: a time that no window can have is ignored', () => {
  assert.equal(after(LONGEST_S + 1), TEN_MINUTES_MS)
  assert.equal(after(LONGEST_S + 1, 40), 41_000)
  assert.equal(after(Number.MAX_SAFE_INTEGER), TEN_MINUTES_MS)
})

test('a time that has passed, or another reason than a full window, is followed by five seconds', () => {
  assert.equal(after(-1), 5000)
  assert.equal(after(-1000, 30), 5000)
  assert.equal(waitMs(undefined, NOW_MS), 5000)
})
