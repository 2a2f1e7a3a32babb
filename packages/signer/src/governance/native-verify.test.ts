import { ed25519 } from '@noble/curves/ed25519.js'
import { p256 } from '@noble/curves/nist.js'
import { isSignedByKey, PolicyError, statementBytes, type PersonKey } from '@custody/policy'
import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { test } from 'node:test'
import * as fc from '../../../../testing/property.ts'
import { keyOf, newKey, policyWith } from '../../../policy/testing/documents.ts'
import { signWith, statementsOf } from '../../../policy/testing/statements.ts'
import { isSignedNatively } from './native-verify.ts'

const statement = statementsOf(policyWith([])).approval
const bytes = statementBytes(statement)
const ALGORITHMS = [
  ['Ed25519', keyOf('alice'), ed25519.Point.Fn.ORDER],
  ['ES256', keyOf('bob'), p256.Point.Fn.ORDER],
] as const

/** Checks that both functions give the same result, and returns it. */
function both(key: PersonKey, signature: string | undefined): boolean | string {
  const result = (verify: typeof isSignedByKey): boolean | string => {
    try {
      return verify(key, statement, signature === undefined ? {} : { signature })
    } catch (error) {
      assert.ok(error instanceof PolicyError)
      return error.code
    }
  }
  const native = result(isSignedNatively)
  assert.equal(native, result(isSignedByKey), `${key.alg} ${signature}`)
  return native
}

const text = (raw: Uint8Array): string => Buffer.from(raw).toString('base64')
const rawOf = (signature: string | undefined): Uint8Array => Buffer.from(signature!, 'base64')
const joined = (...parts: Uint8Array[]): Uint8Array => Buffer.concat(parts)
const littleEndian = (value: bigint): Uint8Array => bigEndian(value).reverse()
const bigEndian = (value: bigint): Uint8Array =>
  Uint8Array.from(Buffer.from(value.toString(16).padStart(64, '0'), 'hex'))
const fromLittle = (raw: Uint8Array): bigint =>
  BigInt(`0x${Buffer.from(raw).reverse().toString('hex')}`)
const keyWith = (alg: PersonKey['alg'], prefix: string, point: Uint8Array): PersonKey => ({
  id: 'k1',
  kind: 'key',
  alg,
  spki: text(joined(Buffer.from(prefix, 'hex'), point)),
})
const ED_PREFIX = '302a300506032b6570032100'
const EC_PREFIX = '3059301306072a8648ce3d020106082a8648ce3d030107034200'

test('accepts the signatures of both algorithms, and of no other key or statement', () => {
  for (const [alg, { key, privateKey }] of ALGORITHMS) {
    const { signature } = signWith({ key, privateKey }, statement)
    assert.equal(both(key, signature), true)
    assert.equal(both(newKey('k1', alg).key, signature), false)
    const other = signWith({ key, privateKey }, { ...statement, by: 'dan' })
    assert.equal(both(key, other.signature), false)
    assert.equal(both(key, undefined), false)
  }
})

test('an ES256 signature has two forms; values outside of the order are refused', () => {
  const [, [, test1, order]] = ALGORITHMS
  const raw = rawOf(signWith(test1, statement).signature)
  const [r, s] = [raw.slice(0, 32), raw.slice(32)]
  const sOf = BigInt(`0x${Buffer.from(s).toString('hex')}`)
  assert.equal(both(test1.key, text(joined(r, bigEndian(order - sOf)))), true)
  const zero = new Uint8Array(32)
  const most = new Uint8Array(32).fill(255)
  for (const [one, two] of [
    [zero, s],
    [r, zero],
    [zero, zero],
    [r, bigEndian(order)],
    [bigEndian(order), s],
    [most, most],
    [s, r],
  ] as const)
    assert.equal(both(test1.key, text(joined(one, two))), false)
  const der = sign('sha256', bytes, test1.privateKey)
  assert.equal(both(test1.key, text(der)), false)
})

test('an Ed25519 signature has one form, also with points of small order', () => {
  const [[, test1, order]] = ALGORITHMS
  const raw = rawOf(signWith(test1, statement).signature)
  const [R, S] = [raw.slice(0, 32), raw.slice(32)]
  assert.equal(both(test1.key, text(joined(R, littleEndian(fromLittle(S) + order)))), false)
  // A signature by a known scalar, with R of the given kind.
  const { Point } = ed25519
  const scalar = 123_456_789n
  const A = Point.BASE.multiply(scalar)
  const key = keyWith('Ed25519', ED_PREFIX, A.toBytes())
  const torsion = Point.fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05')
  const nonce = 987_654_321n
  const signedWith = (encoded: Uint8Array, r: bigint): string => {
    const hash = createHash('sha512')
      .update(joined(encoded, A.toBytes(), bytes))
      .digest()
    return text(joined(encoded, littleEndian((r + fromLittle(hash) * scalar) % order)))
  }
  assert.equal(both(key, signedWith(Point.BASE.multiply(nonce).toBytes(), nonce)), true)
  assert.equal(
    both(key, signedWith(Point.BASE.multiply(nonce).add(torsion).toBytes(), nonce)),
    false,
  )
  assert.equal(both(key, signedWith(Point.ZERO.toBytes(), 0n)), true)
  for (const encoded of [
    // The neutral element with the sign bit, and with y + p.
    `01${'00'.repeat(30)}80`,
    `ee${'ff'.repeat(30)}7f`,
    `ee${'ff'.repeat(30)}ff`,
    'ff'.repeat(32),
  ])
    assert.equal(both(key, signedWith(Buffer.from(encoded, 'hex'), 0n)), false)
  // Keys of small order or with a part of small order.
  for (const point of [torsion, Point.ZERO, A.add(torsion)])
    assert.equal(both(keyWith('Ed25519', ED_PREFIX, point.toBytes()), text(raw)), 'KEY')
})

test('a malformed key or text is refused', () => {
  const spkiOf = (publicKey: KeyObject): string =>
    publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  for (const [alg, { key, privateKey }] of ALGORITHMS) {
    const { signature } = signWith({ key, privateKey }, statement)
    const canonical = signature!
    const url = canonical.replaceAll('+', '-').replaceAll('/', '_')
    for (const bad of [
      '',
      canonical.slice(0, -2),
      canonical.slice(0, -1),
      `${canonical}=`,
      `${canonical}AAAA`,
      ` ${canonical}`,
      `${canonical}\n`,
      canonical.replace(/.==$/, (end) => `${end[0] === 'B' ? 'C' : 'B'}==`),
      ...(url === canonical ? [] : [url]),
      text(rawOf(canonical).slice(1)),
      text(joined(rawOf(canonical), new Uint8Array(1))),
    ])
      assert.equal(both(key, bad), false, bad)
    const foreign = alg === 'ES256' ? 'Ed25519' : 'ES256'
    assert.equal(both({ ...key, alg: foreign } as PersonKey, canonical), 'KEY')
    assert.equal(both({ ...key, spki: key.spki.slice(4) }, canonical), 'KEY')
  }
  const k256 = generateKeyPairSync('ec', { namedCurve: 'secp256k1' })
  assert.equal(
    both({ id: 'k1', kind: 'key', alg: 'ES256', spki: spkiOf(k256.publicKey) }, 'AAAA'),
    'KEY',
  )
  const notOnCurve = joined(Uint8Array.of(4), new Uint8Array(64).fill(1))
  assert.equal(both(keyWith('ES256', EC_PREFIX, notOnCurve), 'AAAA'), 'KEY')
})

test('property: gives the result of isSignedByKey for changed signatures', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...ALGORITHMS),
      fc.integer({ min: 0, max: 63 }),
      fc.integer({ min: 0, max: 255 }),
      ([, test1], at, change) => {
        const raw = Uint8Array.from(rawOf(signWith(test1, statement).signature))
        raw[at]! ^= change
        assert.equal(both(test1.key, text(raw)), change === 0)
      },
    ),
    { numRuns: 150 },
  )
})
