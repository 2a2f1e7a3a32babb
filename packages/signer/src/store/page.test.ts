import assert from 'node:assert/strict'
import test from 'node:test'
import { pageAbove, type Page } from './page.ts'

/** Entries at these heights. Each odd one has an item, whose size is its height. */
const HEIGHTS = [1, 3, 4, 5, 7, 8]
const pageOf = (after: number, limits: { entries?: number; size?: number } = {}): Page<string> =>
  pageAbove(
    HEIGHTS,
    after,
    (height) => height,
    { entries: 100, size: 100, ...limits },
    (height) => (height % 2 === 0 ? null : { item: `at ${height}`, size: height }),
  )

test('a page begins with the first entry above a height, whether or not the height has an entry', () => {
  const all = ['at 1', 'at 3', 'at 5', 'at 7']
  const begins = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((after) => pageOf(after).items.length)
  assert.deepEqual(begins, [4, 3, 3, 2, 2, 1, 1, 0, 0, 0])
  assert.deepEqual(pageOf(0), { items: all, to: null })
  assert.deepEqual(pageOf(9), { items: [], to: null })
})

test('a page ends at its limits, and the pages together contain each item once', () => {
  assert.deepEqual(pageOf(0, { entries: 2 }), { items: ['at 1', 'at 3'], to: 3 })
  assert.deepEqual(pageOf(3, { entries: 1 }), { items: [], to: 4 })
  assert.deepEqual(pageOf(0, { size: 4 }), { items: ['at 1', 'at 3'], to: 4 })
  assert.deepEqual(pageOf(4, { size: 4 }), { items: ['at 5'], to: 5 })
  for (const limits of [{ entries: 1 }, { entries: 2 }, { size: 0 }, { size: 8 }]) {
    const items: string[] = []
    let after: number | null = 0
    while (after !== null) {
      const page: Page<string> = pageOf(after, limits)
      items.push(...page.items)
      assert.ok(page.to === null || page.to > after)
      after = page.to
    }
    assert.deepEqual(items, ['at 1', 'at 3', 'at 5', 'at 7'])
  }
})
