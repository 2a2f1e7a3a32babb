import assert from 'node:assert/strict'
import { createCipheriv, createDecipheriv, generateKeyPairSync, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import { engines, startRefresh, startSign, ThresholdError, Vault } from './index.ts'
import type { Curve, KeyMaterial, ShareMeta } from './index.ts'
import { complete, hash, keygenSessions, openVaults, sessionId } from '../testing/helpers.ts'
import type { Vaults } from '../testing/helpers.ts'

// A share sealed with a key that the test has, so that the test can rewrite its content.
// native/src/vault.rs defines the format.
const NAME = 'c3'.repeat(8)
const KEY = randomBytes(32)

function associated(meta: ShareMeta, purpose: string): Buffer {
  const epoch = Buffer.alloc(4)
  epoch.writeUInt32BE(meta.epoch)
  const texts = [purpose, meta.engine, meta.curve].map((text) => Buffer.from(text))
  return hash(
    'custody/threshold/share/v1',
    ...texts,
    Buffer.from([meta.party]),
    Buffer.from(meta.keyId),
    epoch,
  )
}

function open(key: Uint8Array, nonce: Uint8Array, aad: Uint8Array, text: Buffer): Buffer {
  const cipher = createDecipheriv('aes-256-gcm', key, nonce)
    .setAAD(aad)
    .setAuthTag(text.subarray(-16))
  return Buffer.concat([cipher.update(text.subarray(0, -16)), cipher.final()])
}

function seal(key: Uint8Array, nonce: Uint8Array, aad: Uint8Array, plain: Buffer): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(aad)
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

/** Returns the same share as another version of the engine would have sealed it. */
function asOf(version: string, key: KeyMaterial): KeyMaterial {
  const sealed = Buffer.from(key.sealedShare)
  const [wrapNonce, wrapped] = [sealed.subarray(12, 24), sealed.subarray(24, 72)]
  const dataKey = open(KEY, wrapNonce, associated(key, `wrap/${NAME}`), wrapped)
  const plain = open(
    dataKey,
    sealed.subarray(72, 84),
    associated(key, 'share'),
    sealed.subarray(84),
  )
  // postcard encodes a text as its length and its bytes; the version comes first.
  const rest = plain.subarray(1 + plain[0]!)
  const changed = Buffer.concat([Buffer.from([version.length]), Buffer.from(version), rest])
  const nonce = randomBytes(12)
  const sealedShare = Buffer.concat([
    sealed.subarray(0, 72),
    nonce,
    seal(dataKey, nonce, associated(key, 'share'), changed),
  ])
  return { ...key, engineVersion: version, sealedShare: new Uint8Array(sealedShare) }
}

async function ownVaults(): Promise<Vaults> {
  return (await openVaults()).set(
    1,
    await Vault.open({ kind: 'keys', keys: [{ name: NAME, key: KEY }] }),
  )
}

function start(vault: Vault, key: KeyMaterial) {
  return startSign({
    vault,
    key,
    sessionId: sessionId(),
    participants: [1, 2],
    path: [],
    message: new Uint8Array(32),
  })
}

for (const curve of ['secp256k1', 'ed25519'] as Curve[]) {
  test(`${curve}: refuses a share of an unlisted version, and lists the versions and a remedy`, async () => {
    const { id, version, versions } = engines[curve]
    assert.equal(versions[0], version)
    const vaults = await ownVaults()
    const vault = vaults.get(1)!
    const key = (await complete(keygenSessions(vaults, curve))).get(1)!
    // Rewriting alone does not change the behaviour.
    await start(vault, asOf(version, key)).step([])

    const other = asOf('0.0.9', key)
    const hasCode = (code: string) => (error: unknown) =>
      error instanceof ThresholdError &&
      error.code === code &&
      error.message.includes(`${id} "0.0.9"`) &&
      error.message.includes(versions.join(', ')) &&
      /refresh the key/.test(error.message)
    assert.throws(() => start(vault, other), hasCode('BAD_ARGUMENT'))
    assert.throws(
      () => startRefresh({ vault, key: other, sessionId: sessionId() }),
      hasCode('BAD_ARGUMENT'),
    )
    // A caller that states a listed version for the share is refused as well.
    await assert.rejects(start(vault, { ...other, engineVersion: version }).step([]), {
      code: 'SEALED',
    })

    const pair = generateKeyPairSync('x25519')
    const raw = (der: Buffer) => new Uint8Array(der.subarray(-32))
    const secret = raw(pair.privateKey.export({ format: 'der', type: 'pkcs8' }))
    const backup = await vault.sealBackup(
      other.sealedShare,
      other,
      raw(pair.publicKey.export({ format: 'der', type: 'spki' })),
    )
    await assert.rejects(vault.restoreBackup(backup, secret, other), hasCode('SEALED'))
  })
}

test('lists only released engine versions', () => {
  const lock = readFileSync(new URL('../native/Cargo.lock', import.meta.url), 'utf8')
  for (const { id, versions } of Object.values(engines)) {
    assert.ok(lock.includes(`name = "${id}"\nversion = "${versions[0]}"\n`))
    for (const version of versions) assert.match(version, /^\d+\.\d+\.\d+$/)
  }
})
