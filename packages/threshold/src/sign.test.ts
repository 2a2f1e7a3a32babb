import assert from 'node:assert/strict'
import { randomBytes, randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { before, test } from 'node:test'

import { engines, startSign, ThresholdError } from './index.ts'
import type { Curve } from './index.ts'
import {
  complete,
  keygenSessions,
  openVaults,
  PAIRS,
  signAndCheck,
  signSessions,
} from '../testing/helpers.ts'
import type { Keys, Vaults } from '../testing/helpers.ts'

let vaults: Vaults
const keys = {} as Record<Curve, Keys>

function randomPath(): number[] {
  return Array.from({ length: randomInt(0, 5) }, () => randomInt(0, 2 ** 31))
}

before(async () => {
  vaults = await openVaults()
  for (const curve of ['secp256k1', 'ed25519'] as const) {
    keys[curve] = await complete(keygenSessions(vaults, curve))
  }
})

for (const curve of ['secp256k1', 'ed25519'] as const) {
  test(`${curve}: the three parties agree on the key`, () => {
    const [first, ...others] = [...keys[curve].values()]
    assert.ok(first)
    assert.equal(first.engine, engines[curve].id)
    assert.equal(first.engineVersion, engines[curve].version)
    assert.equal(first.epoch, 0)
    assert.equal(first.publicKey.length, curve === 'secp256k1' ? 33 : 32)
    assert.equal(first.chainCode.length, 32)
    for (const other of others) {
      assert.deepEqual(other.publicKey, first.publicKey)
      assert.deepEqual(other.chainCode, first.chainCode)
      assert.notDeepEqual(other.sealedShare, first.sealedShare)
    }
    // The order of completion is not deterministic.
    assert.deepEqual([...keys[curve].values()].map((key) => key.party).sort(), [1, 2, 3])
  })

  test(`${curve}: 250 signatures over all pairs and random paths verify with noble`, async () => {
    for (let i = 0; i < 250; i += 1) {
      const pair = PAIRS[i % 3]!
      // RFC 8032 signs whole messages, including the empty one; ECDSA signs a digest.
      const message = randomBytes(curve === 'secp256k1' ? 32 : randomInt(0, 600))
      await signAndCheck(vaults, keys[curve], pair, randomPath(), new Uint8Array(message))
    }
  })

  test(`${curve}: the order of the participants does not matter`, async () => {
    const message = new Uint8Array(randomBytes(32))
    await signAndCheck(vaults, keys[curve], [3, 1], [7], message)
  })

  test(`${curve}: concurrent sessions do not affect each other`, async () => {
    await Promise.all(
      Array.from({ length: 6 }, (_, i) =>
        signAndCheck(vaults, keys[curve], PAIRS[i % 3]!, [i], new Uint8Array(randomBytes(32))),
      ),
    )
  })

  test(`${curve}: refuses invalid signing arguments`, () => {
    const key = keys[curve].get(1)!
    const good = {
      vault: vaults.get(1)!,
      key,
      sessionId: new Uint8Array(randomBytes(32)),
      participants: [1, 2] as [number, number],
      path: [0],
      message: new Uint8Array(randomBytes(32)),
    }
    const refused = [
      { ...good, sessionId: new Uint8Array(31) },
      { ...good, participants: [1, 1] as [number, number] },
      { ...good, participants: [2, 3] as [number, number] },
      { ...good, participants: [1, 4] as [number, number] },
      { ...good, participants: [1, 2, 3] as unknown as [number, number] },
      { ...good, path: [2 ** 31] },
      { ...good, path: [-1] },
      { ...good, path: [0.5] },
      { ...good, path: Array.from({ length: 33 }, () => 0) },
      { ...good, message: new Uint8Array(curve === 'secp256k1' ? 31 : (1 << 20) + 1) },
      { ...good, vault: {} as never },
      { ...good, key: { ...key, engine: 'other' as never } },
      { ...good, key: { ...key, engineVersion: '0.0.1' } },
      { ...good, key: { ...key, epoch: 0.5 } },
      { ...good, key: { ...key, epoch: 2 ** 32 } },
      { ...good, key: { ...key, party: 1.5 } },
      { ...good, key: { ...key, curve: 'p256' as never } },
      { ...good, key: { ...key, publicKey: new Uint8Array(5) } },
    ]
    for (const options of refused) {
      assert.throws(
        () => startSign(options),
        (error) => error instanceof ThresholdError && error.code === 'BAD_ARGUMENT',
      )
    }
  })
}

test('a session can be used only once', async () => {
  const sessions = signSessions(vaults, keys.ed25519, [1, 2], [], new Uint8Array(1))
  const first = sessions.get(1)!
  await complete(sessions)
  await assert.rejects(first.step([]), { code: 'BAD_ARGUMENT' })
})

test('an aborted session accepts no further step, even if it was in the middle of one', async () => {
  const [session] = [
    ...signSessions(vaults, keys.secp256k1, [1, 2], [], new Uint8Array(32)).values(),
  ]
  const step = session!.step([])
  session!.abort()
  await assert.rejects(step, { code: 'ABORT' })
  await assert.rejects(session!.step([]), { code: 'BAD_ARGUMENT' })
})

test('refuses a step that overlaps another step of the session', async () => {
  const [session] = [
    ...signSessions(vaults, keys.secp256k1, [1, 2], [], new Uint8Array(32)).values(),
  ]
  const first = session!.step([])
  await assert.rejects(session!.step([]), { code: 'BAD_ARGUMENT' })
  await assert.rejects(first, { code: 'ABORT' })
})

test('a step runs outside the event loop', async () => {
  const [all, own] = [process.cpuUsage(), process.threadCpuUsage()]
  await complete(keygenSessions(vaults, 'secp256k1', 'another'))
  const sum = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1000
  const [allMs, ownMs] = [sum(process.cpuUsage(all)), sum(process.threadCpuUsage(own))]
  assert.ok(
    ownMs < allMs / 2,
    `the thread of the event loop used ${ownMs} of ${allMs} ms of processor time`,
  )
})

test('the engine versions stored in shares equal those in the lockfile', () => {
  const lock = readFileSync(new URL('../native/Cargo.lock', import.meta.url), 'utf8')
  for (const { id, version } of Object.values(engines)) {
    assert.ok(lock.includes(`name = "${id}"\nversion = "${version}"\n`), `${id} ${version}`)
  }
})
