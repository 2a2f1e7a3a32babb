import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { LargeMap } from './large.ts'

const operation = fc.oneof(
  fc.record({ is: fc.constant('set' as const), key: fc.nat(12), value: fc.nat() }),
  fc.record({ is: fc.constant('delete' as const), key: fc.nat(12) }),
  fc.record({ is: fc.constant('clear' as const) }),
)

test('behaves as a Map, in parts of any size', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5 }),
      fc.array(operation, { maxLength: 40 }),
      (max, all) => {
        const [large, plain] = [new LargeMap<number, number>(max), new Map<number, number>()]
        for (const each of all) {
          if (each.is === 'set') {
            large.set(each.key, each.value)
            plain.set(each.key, each.value)
          } else if (each.is === 'delete')
            assert.equal(large.delete(each.key), plain.delete(each.key))
          else {
            large.clear()
            plain.clear()
          }
          assert.equal(large.size, plain.size)
          assert.deepEqual([...large], [...plain])
        }
        assert.deepEqual([...large.keys()], [...plain.keys()])
        assert.deepEqual([...large.values()], [...plain.values()])
        const seen: unknown[] = []
        large.forEach((value, key, map) => seen.push([key, value, map === large]))
        assert.deepEqual(
          seen,
          [...plain].map(([key, value]) => [key, value, true]),
        )
        for (let key = 0; key <= 12; key++)
          assert.deepEqual([large.get(key), large.has(key)], [plain.get(key), plain.has(key)])
      },
    ),
  )
})
