// Public keys that can be enrolled for a caller.
import assert from 'node:assert/strict'
import { createHash, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { test } from 'node:test'
import * as fc from '../../../testing/property.ts'
import {
  AuthError,
  canonicalPublicKey,
  fingerprintOfKey,
  parsePublicKey,
  publicKeyWord,
} from './index.ts'
import { keyWithLines, refusesSync, rsaPair } from '../testing/support.ts'

const pair = rsaPair()
const pem = pair.publicKey.export({ type: 'spki', format: 'pem' }) as string
const spki = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' }) as string

test('reads RSA-4096 SubjectPublicKeyInfo with any line endings', () => {
  for (const text of [pem, pem.trim(), `\n  ${pem}\n`, pem.replaceAll('\n', '\r\n')]) {
    const key = parsePublicKey(text)
    assert.ok(key.equals(pair.publicKey))
    assert.equal(key.type, 'public')
  }
})

test('a fingerprint is the SHA-256 of the key, however its PEM is formatted', () => {
  // As `openssl pkey -pubin -outform DER | sha256sum` prints it.
  const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64')
  const expected = createHash('sha256').update(der).digest('hex')
  assert.match(expected, /^[0-9a-f]{64}$/)
  for (const text of [pem, pem.replaceAll('\n', '\r\n')])
    assert.equal(fingerprintOfKey(parsePublicKey(text)), expected)
  assert.notEqual(fingerprintOfKey(rsaPair().publicKey), expected)
})

test('attack: chosen text lines in the PEM of a key are neither stored nor displayed', () => {
  const hostile = keyWithLines(pem, ['PEM', 'pwned', 'exit'])
  assert.match(hostile, /\nPEM\npwned\nexit\n/)
  assert.equal(parsePublicKey(hostile).asymmetricKeyDetails?.modulusLength, 4096)
  const stored = canonicalPublicKey(hostile)
  assert.ok(parsePublicKey(stored).equals(parsePublicKey(hostile)))
  const [begin, ...lines] = stored.split('\n')
  assert.deepEqual([begin, lines.pop()], ['-----BEGIN PUBLIC KEY-----', '-----END PUBLIC KEY-----'])
  assert.ok(
    lines.slice(0, -1).every((line) => /^[A-Za-z0-9+/]{64}$/.test(line)),
    stored,
  )
  assert.equal(canonicalPublicKey(stored), stored)
  assert.match(publicKeyWord(hostile), /^[A-Za-z0-9+/]+={0,2}$/)
  for (const text of [pem, pem.replaceAll('\n', '\r\n'), `  ${pem}`])
    assert.equal(canonicalPublicKey(text), pem.trim())
})

test('refuses a key with too few bits and states their number', () => {
  for (const bits of [1024, 2048, 3072]) {
    refusesSync(
      () => parsePublicKey(spki(rsaPair(bits).publicKey)),
      'public_key',
      new RegExp(`has ${bits} bits`),
    )
  }
})

test('refuses an exponent of 3', () => {
  // A real modulus with another exponent, so that no key has to be generated.
  const jwk = pair.publicKey.export({ format: 'jwk' })
  const withExponent = (e: string) => spki(createPublicKey({ format: 'jwk', key: { ...jwk, e } }))
  refusesSync(() => parsePublicKey(withExponent('Aw')), 'public_key', /exponent/)
  refusesSync(
    () => parsePublicKey(withExponent(Buffer.from([1, 0, 0]).toString('base64url'))),
    'public_key',
    /exponent/,
  )
})

test('refuses a private key and reports it as disclosed', () => {
  for (const type of ['pkcs8', 'pkcs1'] as const) {
    refusesSync(
      () => parsePublicKey(pair.privateKey.export({ type, format: 'pem' }) as string),
      'public_key',
      /private key.*disclosed/,
    )
  }
  refusesSync(
    () =>
      parsePublicKey(pem + (pair.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string)),
    'public_key',
    /private key/,
  )
})

test('refuses keys of other types', () => {
  for (const key of [
    generateKeyPairSync('ed25519').publicKey,
    generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey,
    generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).publicKey,
  ]) {
    refusesSync(() => parsePublicKey(spki(key)), 'public_key', /must be an RSA key/)
  }
})

test('refuses keys in other containers', () => {
  const pkcs1 = pair.publicKey.export({ type: 'pkcs1', format: 'pem' }) as string
  const der = pair.publicKey.export({ type: 'spki', format: 'der' })
  const certificate = `-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----`
  for (const text of [
    pkcs1,
    certificate,
    der.toString('base64'),
    JSON.stringify(pair.publicKey.export({ format: 'jwk' })),
    'ssh-rsa AAAAB3NzaC1yc2E= me',
    '',
    ' ',
    pem + pem,
    `comment\n${pem}`,
    `${pem}comment`,
  ]) {
    refusesSync(() => parsePublicKey(text), 'public_key', /one PEM block/)
  }
})

test('refuses keys with damaged contents', () => {
  const wrap = (base64: string) => `-----BEGIN PUBLIC KEY-----\n${base64}\n-----END PUBLIC KEY-----`
  const der = pair.publicKey.export({ type: 'spki', format: 'der' })
  for (const text of [
    wrap('AAAA'),
    wrap('===='),
    wrap(der.subarray(0, 300).toString('base64')),
    wrap(createHash('sha512').update('x').digest('base64')),
  ]) {
    refusesSync(() => parsePublicKey(text), 'public_key')
  }
  refusesSync(() => parsePublicKey(wrap('A'.repeat(20_000))), 'public_key')
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc
          .uint8Array({ maxLength: 600 })
          .map((bytes) => wrap(Buffer.from(bytes).toString('base64'))),
      ),
      (text) => {
        assert.throws(() => parsePublicKey(text), AuthError)
      },
    ),
  )
})

test('accepts keys at the limits of bits, exponent and length', () => {
  const jwk = pair.publicKey.export({ format: 'jwk' })
  const withBits = (bits: number) => {
    const n = Buffer.alloc(bits / 8, 0xff)
    return spki(createPublicKey({ format: 'jwk', key: { ...jwk, n: n.toString('base64url') } }))
  }
  assert.equal(parsePublicKey(withBits(16_384)).asymmetricKeyDetails?.modulusLength, 16_384)
  refusesSync(
    () => parsePublicKey(withBits(16_392)),
    'public_key',
    /^has 16392 bits; at most 16384 are accepted$/,
  )
  const even = spki(
    createPublicKey({
      format: 'jwk',
      key: { ...jwk, e: Buffer.from([1, 0, 2]).toString('base64url') },
    }),
  )
  refusesSync(
    () => parsePublicKey(even),
    'public_key',
    /^has a public exponent below 65537, or an even one$/,
  )
  const [first, ...rest] = pem.trim().split('\n')
  const filled = (length: number) =>
    [`${first}${' '.repeat(length - pem.trim().length)}`, ...rest].join('\n')
  assert.ok(parsePublicKey(filled(16_384)).equals(pair.publicKey))
  refusesSync(() => parsePublicKey(filled(16_385)), 'public_key', /one PEM block/)
  const unread = `-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----`
  refusesSync(() => parsePublicKey(unread), 'public_key', /^is not a readable PEM public key$/)
})
