import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { ed25519, x25519 } from '@noble/curves/ed25519.js'

import { ThresholdError } from './index.ts'
import type { Curve } from './index.ts'
import {
  carry,
  complete,
  forge,
  hash,
  keygenSessions,
  openVaults,
  PARTIES,
  refreshSessions,
} from '../testing/helpers.ts'
import type { Envelope } from '../testing/helpers.ts'

/** The header, the checksum and the length of the public part come first. */
const PUBLIC = 55 + 4
const TAG = 16
const SESSION_KEY = { secp256k1: 0, ed25519: 32 }
const FRAGMENTS = { secp256k1: 2, ed25519: 3 }

type Point = InstanceType<typeof ed25519.Point>

function partsOf({ payload }: Envelope): { shown: Buffer; hidden: Buffer } {
  const bytes = Buffer.from(payload)
  const end = PUBLIC + bytes.readUInt32BE(PUBLIC - 4)
  return { shown: bytes.subarray(PUBLIC, end), hidden: bytes.subarray(end) }
}

const pass = ({ from, payload }: Envelope) => [{ from, payload }]

test('ed25519: the messages of the parties contain no part of a share in plain text', async () => {
  const vaults = await openVaults()
  const keys = await complete(keygenSessions(vaults, 'ed25519'))
  for (const start of [
    () => keygenSessions(vaults, 'ed25519'),
    () => refreshSessions(vaults, keys),
  ]) {
    const seen: Envelope[] = []
    const { errors, results } = await carry(start(), (envelope) => {
      seen.push(envelope)
      return pass(envelope)
    })
    assert.equal(errors.size, 0)
    const constants = new Map<number, Point>()
    const fragments = seen.filter(({ round }) => round === FRAGMENTS.ed25519)
    assert.equal(fragments.length, 6)
    for (const envelope of fragments) {
      const { hidden } = partsOf(envelope)
      // After the chain code commitment and the session key: the engine's header, the number of
      // points, the points, the proof.
      const { shown } = partsOf(
        seen.find(({ round, from }) => round === 1 && from === envelope.from)!,
      )
      const count = shown.readUInt8(69)
      const points = Array.from({ length: count }, (_, at) =>
        ed25519.Point.fromBytes(shown.subarray(70 + at * 32, 102 + at * 32)),
      )
      // A refresh uses shares of zero: its first point is not sent.
      const [c0, c1] = count === 2 ? (points as [Point, Point]) : [ed25519.Point.ZERO, points[0]!]
      constants.set(envelope.from, c0)
      const expected = c0.add(c1.multiply(BigInt(envelope.to)))
      for (let at = 0; at + 32 <= hidden.length; at += 1) {
        const scalar =
          BigInt(
            `0x${Buffer.from(hidden.subarray(at, at + 32))
              .reverse()
              .toString('hex')}`,
          ) % ed25519.Point.Fn.ORDER
        const isFragment = scalar !== 0n && ed25519.Point.BASE.multiply(scalar).equals(expected)
        assert.ok(
          !isFragment,
          `the fragment of ${envelope.from} for ${envelope.to} is in the clear`,
        )
      }
    }
    // The values that were read are the points of the polynomials: their sum is the public key.
    const sum = [...constants.values()].reduce((a, b) => a.add(b))
    if (results.get(1)!.epoch === 0)
      assert.deepEqual(sum.toBytes(), Uint8Array.from(results.get(1)!.publicKey))
    else assert.ok(sum.equals(ed25519.Point.ZERO))
  }
})

for (const curve of ['secp256k1', 'ed25519'] as Curve[]) {
  test(`${curve}: encrypted parts have the size of a ciphertext, and all parts of a run differ`, async () => {
    const vaults = await openVaults()
    const sealed: Buffer[] = []
    const lengths: number[] = []
    const { errors } = await carry(keygenSessions(vaults, curve), (envelope) => {
      const { hidden } = partsOf(envelope)
      if (hidden.length > 0) sealed.push(hidden)
      if (envelope.round === FRAGMENTS[curve]) lengths.push(hidden.length)
      return pass(envelope)
    })
    assert.equal(errors.size, 0)
    assert.equal(sealed.length, curve === 'secp256k1' ? 18 : 6)
    assert.ok(
      lengths.every((length) => length >= 32 + TAG && length < 64 + TAG),
      lengths.join(),
    )
    assert.equal(new Set(sealed.map((each) => each.toString('hex'))).size, sealed.length)
  })

  for (const run of ['key generation', 'refresh'] as const) {
    test(`${curve}: the echo detects a relay that replaces a session key in a ${run}`, async () => {
      const vaults = await openVaults()
      const keys = run === 'refresh' ? await complete(keygenSessions(vaults, curve)) : null
      // A relay between 1 and 3 sends each its own key in place of the other's. Then it may change
      // their echoes to match.
      for (const hidesIt of [false, true]) {
        const sessions = keys ? refreshSessions(vaults, keys) : keygenSessions(vaults, curve)
        const own = x25519.getPublicKey(new Uint8Array(randomBytes(32)))
        const said = new Map<number, Buffer>()
        let last = 0
        const { results, errors } = await carry(sessions, (envelope) => {
          const { from, to, round, payload } = envelope
          last = Math.max(last, round)
          if (round === 1) said.set(from, partsOf(envelope).shown)
          if (from + to !== 4 || round > (hidesIt ? 2 : 1)) return pass(envelope)
          const exchanged = Buffer.from(said.get(from)!)
          exchanged.set(own, SESSION_KEY[curve])
          return [
            {
              from,
              payload: forge(payload, (header, body) => {
                const seen = (party: number): Buffer =>
                  party === from ? exchanged : said.get(party)!
                body.set(
                  round === 1
                    ? exchanged
                    : hash(
                        'custody/threshold/echo/v1',
                        header.subarray(7),
                        Buffer.from([1]),
                        ...PARTIES.flatMap((party) => [Buffer.from([party]), seen(party)]),
                      ),
                  4,
                )
              }),
            },
          ]
        })
        assert.equal(results.size, 0)
        assert.equal(last, 2, 'noticed in the round after')
        assert.deepEqual([...errors.keys()].sort(), [1, 2, 3])
        for (const error of errors.values()) {
          assert.ok(
            error instanceof ThresholdError &&
              error.code === 'ABORT' &&
              error.message.startsWith('echo mismatch'),
            String(error),
          )
        }
      }
    })
  }

  test(`${curve}: refuses a session key without a secret, or of another party`, async () => {
    const vaults = await openVaults()
    const seen = new Map<number, Uint8Array>()
    const wrong = [() => Buffer.alloc(32), () => Buffer.alloc(32).fill(1, 0, 1), () => seen.get(2)!]
    for (const key of wrong) {
      const sessions = keygenSessions(vaults, curve)
      const first = new Map<number, Envelope>()
      for (const [from, session] of sessions) {
        const step = await session.step([])
        first.set(from, { from, to: 0, round: 1, payload: step.messages[0]!.payload })
        seen.set(
          from,
          partsOf(first.get(from)!).shown.subarray(SESSION_KEY[curve], SESSION_KEY[curve] + 32),
        )
      }
      const forged = forge(first.get(1)!.payload, (_, body) => {
        body.set(key(), 4 + SESSION_KEY[curve])
      })
      const inbox = [
        { from: 1, payload: forged },
        { from: 2, payload: first.get(2)!.payload },
      ]
      await assert.rejects(
        sessions.get(3)!.step(inbox),
        (error) =>
          error instanceof ThresholdError &&
          error.counterparty !== 3 &&
          /session key/.test(error.message),
      )
      for (const session of sessions.values()) session.abort()
    }
  })
}
