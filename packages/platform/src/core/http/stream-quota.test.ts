import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from '../../../../../testing/property.ts'
import { ApiError } from '../errors.ts'
import { clientNetworks } from './client-network.ts'
import { StreamQuota, STREAMS_MAX, type StreamOwner } from './stream-quota.ts'

const payer = (ip: string, resource: string | null = null): StreamOwner => ({
  kind: 'open',
  ...clientNetworks(ip),
  resource,
})
const key = (name: string, workspace: string): StreamOwner => ({
  kind: 'holder',
  name: `key ${name}`,
  share: `workspace ${workspace}`,
})

/**
 * Opens streams until one is refused.
 * @returns the number of opened streams and the error code of the refusal
 */
function fill(
  places: StreamQuota,
  owners: Iterable<StreamOwner>,
  end = () => {},
): { taken: number; code: string | null } {
  let taken = 0
  for (const owner of owners) {
    try {
      places.take(owner, end)
      taken++
    } catch (error) {
      if (error instanceof ApiError) return { taken, code: error.code }
      throw error
    }
  }
  return { taken, code: null }
}
const repeat = (owner: (at: number) => StreamOwner, count: number) =>
  Array.from({ length: count }, (_, at) => owner(at))

test('a client with every /64 of a /48 cannot take the stream slots of other clients', () => {
  const places = new StreamQuota()
  let ended = 0
  const attack = fill(
    places,
    repeat((at) => payer(`2001:db8:1:${at.toString(16)}::1`), STREAMS_MAX.open + 1),
    () => ended++,
  )
  assert.deepEqual(attack, { taken: STREAMS_MAX.open, code: 'UNAVAILABLE' })
  places.take(payer('203.0.113.9'), () => assert.fail('ended the stream of the new client'))
  assert.equal(ended, 1, 'one stream of the attacker ended for it')
  places.take(key('a', '1'), null)
  assert.equal(places.size, STREAMS_MAX.open + 1)
})

test('a workspace with many API keys cannot take the stream slots of another workspace', () => {
  const places = new StreamQuota()
  let ended = 0
  const attack = fill(
    places,
    repeat((at) => key(String(Math.floor(at / STREAMS_MAX.holder)), '1'), STREAMS_MAX.keyed + 1),
    () => ended++,
  )
  assert.deepEqual(attack, { taken: STREAMS_MAX.keyed, code: 'UNAVAILABLE' })
  places.take(key('other', '2'), null)
  assert.equal(ended, 1)
})

test('each key, network and invoice has a stream quota, and mapped IPv4 counts as IPv4', () => {
  const places = new StreamQuota()
  const more = STREAMS_MAX.address + 1
  assert.deepEqual(
    fill(
      places,
      repeat(() => key('a', '1'), more),
    ),
    { taken: STREAMS_MAX.holder, code: 'RATE_LIMITED' },
  )
  assert.deepEqual(
    fill(
      places,
      repeat((at) => payer(at % 2 === 0 ? '::ffff:192.0.2.1' : '192.0.2.1'), more),
    ),
    { taken: STREAMS_MAX.address, code: 'RATE_LIMITED' },
  )
  assert.deepEqual(
    fill(
      places,
      repeat((at) => payer(`2001:db8::${at.toString(16)}`), more),
    ),
    { taken: STREAMS_MAX.address, code: 'RATE_LIMITED' },
  )
  assert.deepEqual(
    fill(
      places,
      repeat((at) => payer(`198.51.100.${at}`, 'invoice 1'), STREAMS_MAX.resource + 1),
    ),
    { taken: STREAMS_MAX.resource, code: 'RATE_LIMITED' },
  )
})

test('a refused stream ends no other stream, and a slot that is returned twice counts once', () => {
  const places = new StreamQuota({ holder: 9, address: 9, resource: 9, keyed: 2, open: 2 })
  const end = () => assert.fail('ended')
  const give = places.take(payer('192.0.2.1'), end)
  places.take(payer('192.0.2.1'), end)
  places.assertFree(payer('192.0.2.2'))
  assert.throws(() => places.take(payer('192.0.2.1'), end), { code: 'UNAVAILABLE' })
  give()
  give()
  assert.equal(places.size, 1)
})

test('streams that must not be closed keep their slots, and a further stream is refused', () => {
  const places = new StreamQuota({ holder: 9, address: 9, resource: 9, keyed: 3, open: 3 })
  for (let at = 0; at < 3; at++) places.take(key('export', '1'), null)
  assert.throws(() => places.take(key('other', '2'), null), { code: 'UNAVAILABLE' })
})

test('for any sequence, quotas hold, and a client below its equal share is never refused', () => {
  const limits = { holder: 3, address: 3, resource: 4, keyed: 8, open: 8 }
  const ip = fc.constantFrom(
    '192.0.2.1',
    '192.0.2.2',
    '2001:db8:1:1::1',
    '2001:db8:1:2::1',
    '2001:db8:2:1::9',
    '::ffff:192.0.2.1',
  )
  const owner = fc.oneof(
    fc
      .tuple(fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 2 }))
      .map(([k, w]) => key(`${w}.${k}`, String(w))),
    fc
      .tuple(ip, fc.constantFrom(null, 'invoice 1', 'invoice 2'))
      .map(([address, resource]) => payer(address, resource)),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(owner, fc.nat(3)), { maxLength: 80 }), (steps) => {
      const places = new StreamQuota(limits)
      const open = new Map<object, { owner: StreamOwner; give: () => void }>()
      const having = (matches: (owner: StreamOwner) => boolean) =>
        [...open.values()].filter((each) => matches(each.owner)).length
      const share = (each: StreamOwner) => (each.kind === 'holder' ? each.share : each.site)
      for (const [next, action] of steps) {
        const first = open.entries().next().value
        if (action === 0 && first) {
          first[1].give()
          open.delete(first[0])
          continue
        }
        const id = {}
        const before = open.size
        try {
          open.set(id, { owner: next, give: places.take(next, () => open.delete(id)) })
          assert.ok(open.size >= before, 'at most one stream ends for another')
        } catch (error) {
          assert.ok(error instanceof ApiError)
          open.delete(id)
          assert.equal(open.size, before, 'a refusal ends nothing')
          if (error.code === 'UNAVAILABLE') {
            const shares = new Set(
              [...open.values()]
                .filter((each) => each.owner.kind === next.kind)
                .map((each) => share(each.owner)),
            )
            shares.add(share(next))
            assert.ok(
              (having((each) => share(each) === share(next)) + 1) * shares.size > limits.keyed,
              'it had less than an equal part',
            )
          }
        }
        for (const { owner: each } of open.values()) {
          if (each.kind === 'holder')
            assert.ok(
              having((other) => other.kind === 'holder' && other.name === each.name) <=
                limits.holder,
            )
          else {
            assert.ok(
              having((other) => other.kind === 'open' && other.network === each.network) <=
                limits.address,
            )
            assert.ok(
              each.resource === null ||
                having((other) => other.kind === 'open' && other.resource === each.resource) <=
                  limits.resource,
            )
          }
        }
        assert.ok(
          having((each) => each.kind === 'holder') <= limits.keyed &&
            having((each) => each.kind === 'open') <= limits.open,
        )
        assert.equal(places.size, open.size)
      }
      for (const { give } of open.values()) give()
      assert.deepEqual([places.size, places.names], [0, 0])
    }),
    { numRuns: 300 },
  )
})
