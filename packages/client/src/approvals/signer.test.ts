// Keys that sign statements, compared with node:crypto.
import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, verify, type KeyObject } from 'node:crypto'
import { test } from 'node:test'
import { ApprovalError, keySigner } from './approvals.ts'

const bytes = new Uint8Array(Buffer.from('custody/approval/v1\n{}'))
const pkcs8 = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }) as string
const ed25519 = generateKeyPairSync('ed25519').privateKey
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

const spkiOf = (key: KeyObject): string =>
  createPublicKey(key as never)
    .export({ type: 'spki', format: 'der' })
    .toString('base64')

test('signs as node:crypto verifies, with keys of every supported form', async () => {
  const sec1 = p256.export({ type: 'sec1', format: 'pem' }) as string
  for (const [key, pem, alg] of [
    [ed25519, pkcs8(ed25519), 'Ed25519'],
    [p256, pkcs8(p256), 'ES256'],
    [p256, sec1, 'ES256'],
    [
      p256,
      `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${sec1}`,
      'ES256',
    ],
  ] as const) {
    const signer = keySigner(pem)
    assert.deepEqual([signer.alg, signer.spki], [alg, spkiOf(key)])
    const signature = await signer.sign(bytes)
    const hash = alg === 'ES256' ? 'sha256' : null
    const publicKey = { key: createPublicKey(key as never), dsaEncoding: 'ieee-p1363' as const }
    assert.equal(verify(hash, bytes, publicKey, signature), true)
    assert.equal(verify(hash, Buffer.from('other'), publicKey, signature), false)
  }
})

test('refuses every other key, with a sentence that contains no part of it', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey
  const encrypted = ed25519.export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: 'x',
  }) as string
  const publicPem = createPublicKey(ed25519 as never).export({ type: 'spki', format: 'pem' })
  const lines = pkcs8(p256).split('\n')
  const cut = [lines[0], lines[1], ...lines.slice(3)].join('\n')
  for (const [pem, message] of [
    [pkcs8(rsa), /an Ed25519 or P-256 key is required/],
    [pkcs8(p384), /an Ed25519 or P-256 key is required/],
    [p384.export({ type: 'sec1', format: 'pem' }) as string, /is not a PEM file/],
    [encrypted, /encrypted/],
    [publicPem as string, /public key/],
    [cut, /is not a PEM file/],
    ['', /is not a PEM file/],
    ['-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----', /is not a PEM file/],
  ] as const)
    assert.throws(
      () => keySigner(pem),
      (error) => {
        assert.ok(error instanceof ApprovalError, String(error))
        assert.equal(error.code, 'SIGNER')
        assert.match(error.message, message)
        return true
      },
    )
})
