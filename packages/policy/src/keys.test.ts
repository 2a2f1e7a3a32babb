// Public keys and signatures: published vectors, node:crypto as a second implementation, and keys
// and signatures that some implementations accept.
import assert from 'node:assert/strict'
import { createHash, createPublicKey, sign, verify } from 'node:crypto'
import { test } from 'node:test'
import { ed25519 } from '@noble/curves/ed25519.js'
import { p256 } from '@noble/curves/nist.js'
import * as fc from '../../../testing/property.ts'
import { newKey } from '../testing/documents.ts'
import { PolicyError } from './error.ts'
import { isSignedBy, parseSpki, type KeyAlgorithm } from './keys.ts'

const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'))
const ED_PREFIX = '302a300506032b6570032100'
const EC_PREFIX = '3059301306072a8648ce3d020106082a8648ce3d030107034200'
const spki = (prefix: string, key: string) => Buffer.from(prefix + key, 'hex').toString('base64')
const b64 = (hex: string) => Buffer.from(hex, 'hex').toString('base64')

test('verifies the vectors of RFC 8032, section 7.1', () => {
  for (const [key, message, signature] of [
    [
      'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
      '',
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
    ],
    [
      '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
      '72',
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    ],
  ] as const) {
    const parsed = parseSpki('Ed25519', spki(ED_PREFIX, key), '')
    assert.equal(isSignedBy(parsed, bytesOf(message), b64(signature)), true)
    assert.equal(isSignedBy(parsed, bytesOf(`${message}00`), b64(signature)), false)
  }
})

test('verifies the P-256 SHA-256 vector of RFC 6979, appendix A.2.5', () => {
  const key =
    '04' +
    '60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6' +
    '7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299'
  const parsed = parseSpki('ES256', spki(EC_PREFIX, key), '')
  const signature =
    'efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716' +
    'f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8'
  const sample = new TextEncoder().encode('sample')
  assert.equal(isSignedBy(parsed, sample, b64(signature)), true)
  assert.equal(isSignedBy(parsed, new TextEncoder().encode('test'), b64(signature)), false)
})

for (const alg of ['Ed25519', 'ES256'] as const)
  test(`agrees with node:crypto on ${alg} signatures, also on changed ones`, () => {
    const { key, privateKey } = newKey('k', alg)
    const publicKey = createPublicKey(privateKey)
    const parsed = parseSpki(alg, key.spki, '')
    const dsaEncoding = 'ieee-p1363' as const
    let valid = 0
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        fc.option(fc.tuple(fc.nat(63), fc.integer({ min: 1, max: 255 }))),
        (message, change) => {
          const raw =
            alg === 'ES256'
              ? sign('sha256', message, { key: privateKey, dsaEncoding })
              : sign(null, message, privateKey)
          if (change !== null) raw[change[0]] = (raw[change[0]] as number) ^ change[1]
          const expected =
            alg === 'ES256'
              ? verify('sha256', message, { key: publicKey, dsaEncoding }, raw)
              : verify(null, message, publicKey, raw)
          assert.equal(isSignedBy(parsed, message, raw.toString('base64')), expected)
          if (expected) valid++
        },
      ),
      { numRuns: 300 },
    )
    assert.ok(valid > 50)
  })

test('accepts both forms of an ES256 signature, and one form of an Ed25519 signature', () => {
  const message = new Uint8Array([1, 2, 3])
  const ec = newKey('k', 'ES256')
  const raw = sign('sha256', message, { key: ec.privateKey, dsaEncoding: 'ieee-p1363' })
  const order = p256.Point.CURVE().n
  const s = BigInt(`0x${raw.subarray(32).toString('hex')}`)
  const other = Buffer.concat([
    raw.subarray(0, 32),
    Buffer.from((order - s).toString(16).padStart(64, '0'), 'hex'),
  ])
  const parsed = parseSpki('ES256', ec.key.spki, '')
  for (const each of [raw, other])
    assert.equal(isSignedBy(parsed, message, each.toString('base64')), true)

  const ed = newKey('k')
  const signature = sign(null, message, ed.privateKey)
  const group = ed25519.Point.CURVE().n
  const own = [...signature.subarray(32)].reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n)
  const above = Buffer.from(
    (own + group).toString(16).padStart(64, '0').match(/../g)!.reverse().join(''),
    'hex',
  )
  const changed = Buffer.concat([signature.subarray(0, 32), above])
  const key = parseSpki('Ed25519', ed.key.spki, '')
  assert.equal(isSignedBy(key, message, signature.toString('base64')), true)
  assert.equal(isSignedBy(key, message, changed.toString('base64')), false)
})

test('refuses an Ed25519 signature whose R has a part of small order, as node:crypto does', () => {
  // The owner of a key can create a signature that only verification with cofactor accepts.
  const { Point, utils } = ed25519
  const secret = new Uint8Array(32).fill(7)
  const { scalar, point } = utils.getExtendedPublicKey(secret)
  const torsion = Point.fromHex('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05')
  assert.ok(torsion.isSmallOrder())
  const message = new Uint8Array([9])
  const R = Point.BASE.multiply(5n).add(torsion)
  const group = Point.CURVE().n
  const hashed = createHash('sha512')
    .update(Buffer.concat([R.toBytes(), point.toBytes(), message]))
    .digest()
  const k = [...hashed].reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n) % group
  const S = (5n + k * scalar) % group
  const s = Buffer.from(S.toString(16).padStart(64, '0').match(/../g)!.reverse().join(''), 'hex')
  const signature = Buffer.concat([R.toBytes(), s])
  assert.equal(ed25519.verify(signature, message, point.toBytes(), { zip215: false }), true)
  const text = spki(ED_PREFIX, Buffer.from(point.toBytes()).toString('hex'))
  const der = Buffer.from(text, 'base64')
  const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' })
  assert.equal(verify(null, message, publicKey, signature), false)
  assert.equal(
    isSignedBy(parseSpki('Ed25519', text, ''), message, signature.toString('base64')),
    false,
  )
})

test('refuses signatures in other encodings', () => {
  const { key, privateKey } = newKey('k', 'ES256')
  const parsed = parseSpki('ES256', key.spki, '')
  const message = new Uint8Array([1])
  const raw = sign('sha256', message, { key: privateKey, dsaEncoding: 'ieee-p1363' })
  for (const text of [
    sign('sha256', message, privateKey).toString('base64'),
    raw.toString('base64url'),
    raw.toString('hex'),
    raw.toString('base64').replace('==', ''),
    `${raw.toString('base64')}\n`,
    Buffer.alloc(64).toString('base64'),
    '',
  ])
    assert.equal(isSignedBy(parsed, message, text), false, text)
})

test('refuses keys of another kind, in another encoding, or that are no valid point', () => {
  const [ed, ec] = [newKey('a').key.spki, newKey('b', 'ES256').key.spki]
  const rsa = '30820122300d06092a864886f70d01010105000382010f00'
  const identity = '0100000000000000000000000000000000000000000000000000000000000000'
  const order8 = '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05'
  const notCanonical = 'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f'
  for (const [alg, text] of [
    ['ES256', ed],
    ['Ed25519', ec],
    ['Ed25519', b64(rsa)],
    ['Ed25519', ed.replace(/=*$/, '')],
    ['Ed25519', `${ed}AAAA`],
    ['Ed25519', 'not base64'],
    ['Ed25519', ''],
    ['Ed25519', spki(ED_PREFIX, identity)],
    ['Ed25519', spki(ED_PREFIX, order8)],
    ['Ed25519', spki(ED_PREFIX, notCanonical)],
    ['ES256', spki(EC_PREFIX, `04${'11'.repeat(64)}`)],
    ['ES256', spki(EC_PREFIX, `04${'00'.repeat(64)}`)],
    [
      'ES256',
      spki(
        '3039301306072a8648ce3d020106082a8648ce3d030107032200',
        '0260fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6',
      ),
    ],
  ] as [KeyAlgorithm, string][])
    assert.throws(
      () => parseSpki(alg, text, 'people[0].keys[0].spki'),
      (error) =>
        error instanceof PolicyError &&
        error.code === 'KEY' &&
        error.path === 'people[0].keys[0].spki',
      `${alg} ${text}`,
    )
})
