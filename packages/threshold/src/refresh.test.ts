import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { before, test } from 'node:test'

import { ThresholdError } from './index.ts'
import type { Curve } from './index.ts'
import {
  carry,
  complete,
  forge,
  keygenSessions,
  openVaults,
  PAIRS,
  refreshSessions,
  signAndCheck,
  signSessions,
} from '../testing/helpers.ts'
import type { Keys, Vaults } from '../testing/helpers.ts'

let vaults: Vaults
before(async () => {
  vaults = await openVaults()
})

for (const curve of ['secp256k1', 'ed25519'] as Curve[]) {
  let old: Keys
  let fresh: Keys

  test(`${curve}: a refresh keeps the key and increases the epoch, and every pair signs`, async () => {
    old = await complete(keygenSessions(vaults, curve))
    fresh = await complete(refreshSessions(vaults, old))
    for (const [party, key] of fresh) {
      assert.equal(key.epoch, 1)
      assert.deepEqual(key.publicKey, old.get(party)!.publicKey)
      assert.deepEqual(key.chainCode, old.get(party)!.chainCode)
      assert.notDeepEqual(key.sealedShare, old.get(party)!.sealedShare)
    }
    for (const pair of PAIRS) {
      await signAndCheck(vaults, fresh, pair, [44, 0, 3], new Uint8Array(randomBytes(32)))
    }
  })

  test(`${curve}: shares of the old epoch can sign until they are deleted`, async () => {
    for (const pair of PAIRS)
      await signAndCheck(vaults, old, pair, [1], new Uint8Array(randomBytes(32)))
  })

  test(`${curve}: an old share and a new one cannot sign together`, async () => {
    for (const [stale, current] of [
      [1, 2],
      [3, 1],
    ] as const) {
      const mixed: Keys = new Map([
        [stale, old.get(stale)!],
        [current, fresh.get(current)!],
      ])
      const { results, errors } = await carry(
        signSessions(vaults, mixed, [stale, current], [1], new Uint8Array(32)),
      )
      assert.equal(results.size, 0)
      assert.ok(
        [...errors.values()].every((e) => e instanceof ThresholdError && e.code !== 'CHEAT'),
      )
    }
  })

  test(`${curve}: shares of two refresh attempts at the same epoch cannot sign together`, async () => {
    const other = await complete(refreshSessions(vaults, old))
    const mixed: Keys = new Map([
      [1, fresh.get(1)!],
      [2, other.get(2)!],
    ])
    const { results, errors } = await carry(
      signSessions(vaults, mixed, [1, 2], [], new Uint8Array(32)),
    )
    assert.equal(results.size, 0)
    assert.ok(
      [...errors.values()].every((e) => e instanceof ThresholdError && e.code === 'MALFORMED'),
    )

    // Each message receives the binding that its receiver expects, so that the engines themselves
    // must refuse it.
    const bindings = new Map<number, Buffer>()
    const { results: none, errors: refused } = await carry(
      signSessions(vaults, mixed, [1, 2], [], new Uint8Array(32)),
      ({ from, payload }) => {
        bindings.set(from, Buffer.from(payload.subarray(7, 39)))
        return [{ from, payload }]
      },
    )
    assert.equal(none.size + refused.size, 2)
    const sessions = signSessions(vaults, mixed, [1, 2], [], new Uint8Array(32))
    const first = new Map<number, Uint8Array>()
    for (const [party, session] of sessions) {
      const step = await session.step([])
      first.set(party, step.messages[0]!.payload)
    }
    const rebound = (from: number, to: number) =>
      forge(first.get(from)!, (header) => void header.set(first.get(to)!.subarray(7, 39), 7))
    let inbox = { one: rebound(2, 1), two: rebound(1, 2) }
    await assert.rejects(
      async () => {
        for (let round = 0; round < 4; round += 1) {
          const one = await sessions.get(1)!.step([{ from: 2, payload: inbox.one }])
          const two = await sessions.get(2)!.step([{ from: 1, payload: inbox.two }])
          assert.equal(one.kind, 'send')
          assert.equal(two.kind, 'send')
          first.set(1, one.messages[0]!.payload).set(2, two.messages[0]!.payload)
          inbox = { one: rebound(2, 1), two: rebound(1, 2) }
        }
      },
      { name: 'ThresholdError', code: 'ABORT' },
    )
  })

  test(`${curve}: a second refresh uses the shares of the first`, async () => {
    const again = await complete(refreshSessions(vaults, fresh))
    assert.equal(again.get(3)!.epoch, 2)
    for (const pair of PAIRS)
      await signAndCheck(vaults, again, pair, [9], new Uint8Array(randomBytes(32)))
  })

  test(`${curve}: shares of different epochs cannot be refreshed together`, async () => {
    const mixed: Keys = new Map([
      [1, old.get(1)!],
      [2, fresh.get(2)!],
      [3, fresh.get(3)!],
    ])
    const { results, errors } = await carry(refreshSessions(vaults, mixed))
    assert.equal(results.size, 0)
    assert.ok(errors.size > 0)
  })
}
