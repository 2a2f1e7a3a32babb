import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readOnce } from './read-once.ts'
import type { UnsignedTransaction } from './types.ts'

test('uses a cached result only for the same object, bytes and network', () => {
  let reads = 0
  const read = readOnce((of: { name: string }, unsigned: UnsignedTransaction) => {
    reads++
    if (unsigned.bytes === 'bad') throw new Error('bad')
    return `${of.name} ${unsigned.bytes}`
  })
  const [one, other] = [{ name: 'one' }, { name: 'other' }]
  const unsigned = { network: 'ETH', bytes: '01', inputs: [{ path: [1] }] }
  for (const _ of [1, 2]) assert.equal(read(one, unsigned), 'one 01')
  assert.equal(reads, 1)
  assert.equal(read(other, unsigned), 'other 01')
  assert.equal(read(one, { ...unsigned }), 'one 01')
  assert.equal(reads, 3)
  unsigned.bytes = '02'
  assert.equal(read(one, unsigned), 'one 02')
  // An unreadable transaction is not cached as readable, even if it was readable before.
  unsigned.bytes = 'bad'
  for (const _ of [1, 2]) assert.throws(() => read(one, unsigned), /bad/)
})
