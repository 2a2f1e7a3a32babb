import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { before, test } from 'node:test'
import * as fc from '../../../testing/property.ts'

import { derivePublicKey, ThresholdError } from './index.ts'
import type { Curve, InMessage, KeyMaterial, Session, SignResult } from './index.ts'
import {
  carry,
  complete,
  forge,
  isValid,
  keygenSessions,
  openVaults,
  PAIRS,
  refreshSessions,
  signAndCheck,
  signSessions,
} from '../testing/helpers.ts'
import type { Envelope, Keys, Tamper, Vaults } from '../testing/helpers.ts'

// Party 1, or its connection to the others, is hostile. No message may cause a crash or a valid
// signature of other data; every error is a ThresholdError.
const HOSTILE = 1

/** For a long run, set for example FUZZ_SCALE=50. */
const SCALE = Number(process.env['FUZZ_SCALE'] ?? 1)

let vaults: Vaults
const keys = {} as Record<Curve, Keys>
/** Messages of finished sessions, for replays. */
const archive: Envelope[] = []

before(async () => {
  vaults = await openVaults()
  for (const curve of ['secp256k1', 'ed25519'] as const) {
    keys[curve] = await complete(keygenSessions(vaults, curve))
    const record: Tamper = (envelope) => {
      archive.push(envelope)
      return [{ from: envelope.from, payload: envelope.payload }]
    }
    await carry(signSessions(vaults, keys[curve], [1, 2], [0], new Uint8Array(32)), record)
    await carry(refreshSessions(vaults, keys[curve]), record)
  }
})

type Change = (envelope: Envelope) => InMessage[]
const fraction = fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })
const bit = fc.integer({ min: 0, max: 7 })

function flip(bytes: Uint8Array, at: number, mask: number): Uint8Array {
  const changed = Uint8Array.from(bytes)
  if (changed.length > 0) changed[Math.floor(at * changed.length)]! ^= mask
  return changed
}

/** Damage by a faulty connection. The result must be MALFORMED: no party is ever banned for it. */
const damage: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(fraction, bit).map(([at, b]): Change => ({ from, payload }) => [
    { from, payload: flip(payload, at, 1 << b) },
  ]),
  fraction.map((at): Change => ({ from, payload }) => [
    { from, payload: payload.slice(0, Math.floor(at * payload.length)) },
  ]),
  fc.uint8Array({ minLength: 1, maxLength: 64 }).map((tail): Change => ({ from, payload }) => [
    { from, payload: new Uint8Array(Buffer.concat([payload, tail])) },
  ]),
  fc.uint8Array({ maxLength: 300 }).map((payload): Change => ({ from }) => [{ from, payload }]),
  fc.constant<Change>(({ from }) => [{ from, payload: new Uint8Array((1 << 20) + 1) }]),
  fc.constant<Change>(({ from, payload }) => [
    { from, payload },
    { from, payload },
  ]),
  fc.constant<Change>(() => []),
  fc.constantFrom(0, 4, 255, -1, 0.5, 2 ** 32 + 1).map((from): Change => ({ payload }) => [
    { from, payload },
  ]),
  fc.constant<Change>(({ to, payload }) => [{ from: to, payload }]),
  fraction.map((at): Change => ({ from }) => [
    { from, payload: archive[Math.floor(at * archive.length)]!.payload },
  ]),
)

/** Actions of a cheating party: the frame is valid, the content is not. */
const cheating: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(fraction, bit).map(([at, b]): Change => ({ from, payload }) => [
    { from, payload: forge(payload, (_, body) => flip(body, at, 1 << b)) },
  ]),
  // Most of a DKLs23 message is oblivious transfer; the last bytes contain values that are checked
  // in another way.
  fc
    .tuple(fc.integer({ min: 0, max: 400 }), bit)
    .map(([back, b]): Change => ({ from, payload }) => [
      {
        from,
        payload: forge(payload, (_, body) => {
          body[Math.max(0, body.length - 1 - back)]! ^= 1 << b
        }),
      },
    ]),
  fraction.map((at): Change => ({ from, payload }) => [
    { from, payload: forge(payload, (_, body) => body.subarray(0, Math.floor(at * body.length))) },
  ]),
  fc.uint8Array({ maxLength: 300 }).map((body): Change => ({ from, payload }) => [
    { from, payload: forge(payload, () => body) },
  ]),
  // A length prefix that exceeds the remaining data, or a body of one repeated byte.
  fc.integer({ min: 0, max: 255 }).map((byte): Change => ({ from, payload }) => [
    { from, payload: forge(payload, (_, body) => Buffer.alloc(body.length, byte)) },
  ]),
  fc.integer({ min: 0, max: 255 }).map((byte): Change => ({ from, payload }) => [
    {
      from,
      payload: forge(payload, (_, body) =>
        Buffer.concat([body.subarray(0, 4), Buffer.alloc(Math.max(0, body.length - 4), byte)]),
      ),
    },
  ]),
  // Changes the round, the sender or the recipient.
  fc
    .tuple(fc.constantFrom(4, 5, 6), fc.integer({ min: 0, max: 255 }))
    .map(([at, value]): Change => ({ from, payload }) => [
      { from, payload: forge(payload, (header) => void header.writeUInt8(value, at)) },
    ]),
  // The body of an earlier run with the binding of this one.
  fraction.map((at): Change => ({ from, payload }) => [
    {
      from,
      payload: forge(payload, () => archive[Math.floor(at * archive.length)]!.payload.subarray(55)),
    },
  ]),
)

function tamperIn(
  round: number,
  victim: number | null,
  change: Change,
): { tamper: Tamper; hit: () => boolean } {
  let hit = false
  return {
    hit: () => hit,
    tamper: (envelope) => {
      const honest = [{ from: envelope.from, payload: envelope.payload }]
      if (envelope.from !== HOSTILE || envelope.round !== round) return honest
      if (victim !== null && envelope.to !== victim) return honest
      const changed = change(envelope)
      const same =
        changed.length === 1 &&
        changed[0]!.from === envelope.from &&
        Buffer.from(changed[0]!.payload).equals(envelope.payload)
      if (!same) hit = true
      return changed
    },
  }
}

function checkErrors(errors: Map<number, unknown>, damageOnly: boolean): void {
  for (const [party, error] of errors) {
    assert.ok(error instanceof ThresholdError, `not a ThresholdError: ${String(error)}`)
    if (damageOnly) assert.equal(error.code, 'MALFORMED', error.message)
    assert.ok(['ABORT', 'CHEAT', 'MALFORMED'].includes(error.code), error.code)
    if (error.code === 'CHEAT') assert.equal(error.counterparty, party === HOSTILE ? null : HOSTILE)
  }
}

async function fuzz<R>(
  start: () => Map<number, Session<R>>,
  rounds: number,
  changes: fc.Arbitrary<Change>,
  damageOnly: boolean,
  runs: number,
  victims: readonly number[],
  check: (party: number, result: R) => void,
): Promise<Map<string, number>> {
  const seen = new Map<string, number>()
  const victim = fc.constantFrom(null, ...victims)
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: rounds }),
      victim,
      changes,
      async (round, to, change) => {
        const { tamper, hit } = tamperIn(round, to, change)
        const { results, errors } = await carry(start(), tamper)
        checkErrors(errors, damageOnly)
        if (damageOnly && hit()) assert.ok(errors.size > 0, 'damage passed unnoticed')
        for (const [party, result] of results) check(party, result)
        for (const error of errors.values()) {
          const { code } = error as ThresholdError
          seen.set(code, (seen.get(code) ?? 0) + 1)
        }
      },
    ),
    { numRuns: runs * SCALE },
  )
  return seen
}

for (const [name, changes, damageOnly] of [
  ['damaged', damage, true],
  ['forged', cheating, false],
] as const) {
  for (const curve of ['secp256k1', 'ed25519'] as Curve[]) {
    test(`${curve}: signing with ${name} messages gives a valid result or an error`, async (t) => {
      const message = new Uint8Array(randomBytes(32))
      const path = [3, 1]
      const seen = await fuzz<SignResult>(
        () => signSessions(vaults, keys[curve], [1, 2], path, message),
        curve === 'secp256k1' ? 3 : 2,
        changes,
        damageOnly,
        200,
        [2],
        (party, result) =>
          assert.ok(isValid(curve, keys[curve].get(party)!, path, message, result)),
      )
      t.diagnostic(JSON.stringify(Object.fromEntries(seen)))
    })

    test(`${curve}: a refresh with ${name} messages gives a valid result or an error`, async (t) => {
      const before = keys[curve].get(1)!
      const seen = await fuzz<KeyMaterial>(
        () => refreshSessions(vaults, keys[curve]),
        curve === 'secp256k1' ? 6 : 4,
        changes,
        damageOnly,
        curve === 'secp256k1' ? 6 : 150,
        [2, 3],
        (_, key) => {
          assert.deepEqual(key.publicKey, before.publicKey)
          assert.deepEqual(key.chainCode, before.chainCode)
        },
      )
      t.diagnostic(JSON.stringify(Object.fromEntries(seen)))
    })

    test(`${curve}: key generation with ${name} messages gives a valid result or an error`, async (t) => {
      const seen = await fuzz<KeyMaterial>(
        () => keygenSessions(vaults, curve),
        curve === 'secp256k1' ? 6 : 4,
        changes,
        damageOnly,
        curve === 'secp256k1' ? 6 : 150,
        [2, 3],
        (_, key) => derivePublicKey(curve, key.publicKey, key.chainCode, [0]),
      )
      t.diagnostic(JSON.stringify(Object.fromEntries(seen)))
    })
  }
}

test('after all these attempts the keys can still sign', async () => {
  for (const curve of ['secp256k1', 'ed25519'] as const) {
    for (const pair of PAIRS)
      await signAndCheck(vaults, keys[curve], pair, [1], new Uint8Array(randomBytes(32)))
  }
})

for (const curve of ['secp256k1', 'ed25519'] as const) {
  test(`${curve}: the echo detects a party that sends different messages to its peers`, async () => {
    // Party 1 runs twice and sends messages of one run to party 2 and of the other to party 3.
    const round = curve === 'secp256k1' ? 3 : 1
    const honest = keygenSessions(vaults, curve)
    let other: Uint8Array | undefined
    const { results, errors } = await carry(honest, (envelope) => {
      if (envelope.from !== 1 || envelope.round !== round)
        return [{ from: envelope.from, payload: envelope.payload }]
      if (envelope.to === 2) return [{ from: 1, payload: envelope.payload }]
      // Another, well-formed chain code commitment (the first bytes of the public part after the
      // proof's).
      other = forge(envelope.payload, (_, body) => {
        body[4 + (curve === 'secp256k1' ? 36 : 2)]! ^= 1
      })
      return [{ from: 1, payload: other }]
    })
    assert.ok(other)
    assert.equal(results.size, 0)
    assert.ok(
      [2, 3].some((party) => /echo mismatch/.test(String(errors.get(party)))),
      [...errors.values()].join('; '),
    )
    for (const error of errors.values())
      assert.ok(error instanceof ThresholdError && error.code === 'ABORT')
  })
}

test('secp256k1: a cheat in the multiplication is proven and names the party', async () => {
  const { results, errors } = await carry(
    signSessions(vaults, keys.secp256k1, [1, 2], [], new Uint8Array(32)),
    ({ from, round, payload }) =>
      from === 1 && round === 1
        ? [
            {
              from,
              payload: forge(payload, (_, body) => {
                body[Math.floor(body.length / 2)]! ^= 1
              }),
            },
          ]
        : [{ from, payload }],
  )
  assert.equal(results.size, 0)
  const error = errors.get(2)
  assert.ok(error instanceof ThresholdError)
  assert.equal(error.code, 'CHEAT')
  assert.equal(error.counterparty, 1)
})

test('refuses arguments of wrong types without crashing', async () => {
  for (const inbox of [
    [{}],
    [{ from: 1 }],
    [{ from: 1, payload: 'text' }],
    [null],
    'text',
    null,
    7,
  ]) {
    const [session] = [
      ...signSessions(vaults, keys.ed25519, [1, 2], [], new Uint8Array(1)).values(),
    ]
    await session!.step([])
    await assert.rejects(session!.step(inbox as never), { name: 'ThresholdError' })
  }
})
