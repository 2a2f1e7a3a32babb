import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../../testing/property.ts'
import { AddressLimit, SITE_FACTOR } from './rate-limit.ts'

const NOW = Date.UTC(2026, 5, 1)
/** Returns the IPv6 address with this number; each address is in a /48 of its own. */
const ipv6 = (n: number) => `2001:${(n >> 16).toString(16)}:${(n & 0xffff).toString(16)}::1`

test('requests of 50,001 new addresses do not reset the counter of a limited address', () => {
  const limit = new AddressLimit(100)
  for (let n = 0; n < 101; n++) limit.count('203.0.113.9', NOW)
  for (let n = 0; n <= 50_001; n++) limit.count(ipv6(n), NOW)
  assert.equal(limit.count('203.0.113.9', NOW).exceeded, true)
  assert.equal(limit.look('203.0.113.9', NOW).remaining, 0)
})

test('an address that first appears when the table is full has its own limit', () => {
  const limit = new AddressLimit(100)
  for (let n = 0; n <= 100_000; n++) assert.equal(limit.count(ipv6(n), NOW).exceeded, false)
  for (let n = 0; n < 101; n++) limit.count('203.0.113.9', NOW)
  assert.equal(limit.count('203.0.113.9', NOW).exceeded, true)
  assert.equal(
    limit.count('203.0.113.9', NOW + 60_000).exceeded,
    false,
    'the next minute starts a new count',
  )
})

test('IPv6 addresses of one /64 share a limit, and those of one /48 share a looser limit', () => {
  const limit = new AddressLimit(10)
  for (let n = 0; n < 10; n++)
    assert.equal(limit.count(`2001:db8::${n.toString(16)}`, NOW).exceeded, false)
  assert.equal(limit.count('2001:db8::ffff', NOW).exceeded, true)
  for (let n = 0; n < 10; n++) limit.count(n % 2 === 0 ? '192.0.2.1' : '::ffff:192.0.2.1', NOW)
  assert.equal(limit.count('::ffff:c000:201', NOW).exceeded, true)
  assert.equal(
    limit.count('::ffff:192.0.2.2', NOW).exceeded,
    false,
    'IPv4 in IPv6 notation is not one network',
  )
  for (let n = 0; n < 10 * SITE_FACTOR; n++)
    assert.equal(limit.count(`2001:db8:1:${n.toString(16)}::1`, NOW).exceeded, false)
  assert.equal(limit.look('2001:db8:1:ffff::1', NOW).remaining, 0)
  assert.equal(limit.count('2001:db8:1:ffff::1', NOW).exceeded, true)
  assert.equal(limit.count('2001:db8:2::1', NOW).exceeded, false)
})

test("a client's count is never below its requests, and is exact while the table has room", () => {
  const requests = fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 300 })
  fc.assert(
    fc.property(requests, fc.constantFrom(1, 5, 100), (names, tableSize) => {
      const limit = new AddressLimit(5, tableSize)
      const made = new Map<number, number>()
      for (const name of names) {
        const before = made.get(name) ?? 0
        made.set(name, before + 1)
        const { exceeded, remaining } = limit.count(
          name % 2 === 0 ? `192.0.2.${name}` : ipv6(name),
          NOW,
        )
        if (before + 1 > 5) assert.equal(exceeded, true)
        if (tableSize === 100)
          assert.deepEqual([exceeded, remaining], [before + 1 > 5, Math.max(0, 4 - before)])
      }
    }),
    { numRuns: 300 },
  )
})
