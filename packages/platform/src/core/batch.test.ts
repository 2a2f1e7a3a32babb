import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Batch } from './batch.ts'

/** Creates a batch whose calls the test answers by hand. */
function setUp(options: { most: number; lanes: number; pause?: () => Promise<void> }) {
  const calls: {
    items: readonly number[]
    answer: (answers: readonly string[]) => void
    fail: (error: Error) => void
  }[] = []
  const batch = new Batch<number, string>(
    (items) => new Promise((answer, fail) => calls.push({ items, answer, fail })),
    options,
  )
  const turn = () =>
    new Promise<void>((resolve) => {
      setImmediate(() => {
        setImmediate(resolve)
      })
    })
  return { batch, calls, turn }
}
const doubled = (items: readonly number[]) => items.map((item) => String(item * 2))

test('requests of one event-loop turn are sent as one batch, in order; later ones form the next', async () => {
  const { batch, calls, turn } = setUp({ most: 10, lanes: 1 })
  const first = [1, 2, 3].map((item) => batch.ask(item))
  await turn()
  const second = [4, 5].map((item) => batch.ask(item))
  await turn()
  assert.deepEqual(
    calls.map(({ items }) => items),
    [[1, 2, 3]],
    'the second waits for the first',
  )
  calls[0]?.answer(doubled([1, 2, 3]))
  assert.deepEqual(await Promise.all(first), ['2', '4', '6'])
  await turn()
  assert.deepEqual(calls[1]?.items, [4, 5])
  assert.equal(batch.isIdle, false)
  calls[1]?.answer(doubled([4, 5]))
  assert.deepEqual(await Promise.all(second), ['8', '10'])
  await turn()
  assert.equal(batch.isIdle, true)
})

test('a batch never exceeds its maximum size, and batches never exceed their maximum concurrency', async () => {
  const { batch, calls, turn } = setUp({ most: 2, lanes: 2 })
  const all = [1, 2, 3, 4, 5].map((item) => batch.ask(item))
  for (let n = 0; n < 4; n++) await turn()
  assert.deepEqual(
    calls.map(({ items }) => items),
    [
      [1, 2],
      [3, 4],
    ],
  )
  calls[1]?.answer(doubled([3, 4]))
  await turn()
  await turn()
  assert.deepEqual(calls[2]?.items, [5])
  calls[0]?.answer(doubled([1, 2]))
  calls[2]?.answer(doubled([5]))
  assert.deepEqual(await Promise.all(all), ['2', '4', '6', '8', '10'])
})

test('a failed batch fails all of its items, and no other items', async () => {
  const { batch, calls, turn } = setUp({ most: 2, lanes: 1 })
  const all = [1, 2, 3].map((item) => batch.ask(item).catch((error: Error) => error.message))
  await turn()
  calls[0]?.fail(new Error('lost'))
  await turn()
  await turn()
  calls[1]?.answer(doubled([3]))
  assert.deepEqual(await Promise.all(all), ['lost', 'lost', '6'])
  const short = batch.ask(7).catch((error: Error) => error.message)
  await turn()
  calls[2]?.answer([])
  assert.equal(await short, '0 results for 1 requests')
})

test('a configured delay lets more requests join a batch, and a full batch is sent immediately', async () => {
  const pauses: (() => void)[] = []
  const { batch, calls, turn } = setUp({
    most: 3,
    lanes: 2,
    pause: () => new Promise((resolve) => pauses.push(resolve)),
  })
  const all = [batch.ask(1)]
  await turn()
  all.push(batch.ask(2))
  await turn()
  assert.equal(calls.length, 0)
  pauses[0]?.()
  await turn()
  assert.deepEqual(calls[0]?.items, [1, 2])
  const more = [3, 4, 5, 6].map((item) => batch.ask(item))
  await turn()
  pauses[1]?.()
  await turn()
  assert.deepEqual(calls[1]?.items, [3, 4, 5])
  calls[0]?.answer(doubled([1, 2]))
  calls[1]?.answer(doubled([3, 4, 5]))
  await turn()
  pauses[2]?.()
  await turn()
  calls[2]?.answer(doubled([6]))
  assert.deepEqual(await Promise.all([...all, ...more]), ['2', '4', '6', '8', '10', '12'])
})
