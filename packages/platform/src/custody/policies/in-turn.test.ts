import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../../core/errors.ts'
import { inTurn } from './in-turn.ts'

const signal = new AbortController().signal
/** Creates a loop over the numbers from 1 to `count`, and the list of what it has processed. */
function over(count: number, max: number, failing: Record<number, Error> = {}) {
  const processed: number[] = []
  const run = inTurn<number>({
    first: 0,
    max,
    read: async (after, limit) =>
      Array.from({ length: count }, (_, index) => index + 1)
        .filter((each) => each > after)
        .slice(0, limit),
    process: async (row) => {
      processed.push(row)
      if (failing[row]) throw failing[row]
    },
  })
  return { processed, run }
}

test('each run continues after the run before, so that every row has its turn', async () => {
  const { processed, run } = over(5, 2)
  for (let runs = 0; runs < 4; runs++) assert.equal(await run(signal), false)
  assert.deepEqual(processed, [1, 2, 3, 4, 5, 1, 2])
})

test('a number of rows that is a multiple of the largest run begins again too', async () => {
  const { processed, run } = over(4, 2)
  for (let runs = 0; runs < 4; runs++) await run(signal)
  assert.deepEqual(processed, [1, 2, 3, 4, 1, 2])
})

test('an error of one row is thrown after all rows had their turn', async () => {
  const { processed, run } = over(4, 3, { 1: new Error('first'), 2: new Error('second') })
  await assert.rejects(run(signal), /first/)
  assert.deepEqual(processed, [1, 2, 3])
  await run(signal)
  assert.deepEqual(processed, [1, 2, 3, 4])
})

test('silent signer nodes are no error of the run', async () => {
  const silent = new ApiError('SIGNERS_UNAVAILABLE', 'no signer node has responded')
  const { processed, run } = over(2, 5, { 1: silent })
  assert.equal(await run(signal), false)
  assert.deepEqual(processed, [1, 2])
})

test('a run ends between two rows when the process stops, and continues there', async () => {
  const { processed, run } = over(3, 5)
  await run(AbortSignal.abort())
  assert.deepEqual(processed, [])
  await run(signal)
  assert.deepEqual(processed, [1, 2, 3])
})
