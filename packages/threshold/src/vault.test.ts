import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import * as fc from '../../../testing/property.ts'

import { sealedUnder, startRefresh, startSign, Vault } from './index.ts'
import type { Curve, KeyMaterial } from './index.ts'
import { complete, keygenSessions, openVaults, sessionId } from '../testing/helpers.ts'

const folder = mkdtempSync(join(tmpdir(), 'threshold-vault-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const sealed = { name: 'ThresholdError', code: 'SEALED' }

function opens(vault: Vault, key: KeyMaterial): Promise<unknown> {
  const other = key.party === 1 ? 2 : 1
  return startSign({
    vault,
    key,
    sessionId: sessionId(),
    participants: [key.party, other],
    path: [],
    message: new Uint8Array(32),
  }).step([])
}

test('a key file is new, random, 32 bytes long and readable only by its owner', async () => {
  const path = join(folder, 'kek')
  await Vault.createKeyFile(path)
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.equal(readFileSync(path).length, 32)
  const before = readFileSync(path)
  await assert.rejects(Vault.createKeyFile(path), sealed)
  assert.deepEqual(readFileSync(path), before)
  await Vault.open({ kind: 'file', path })
  for (const mode of [0o640, 0o604, 0o644, 0o660]) {
    chmodSync(path, mode)
    await assert.rejects(Vault.open({ kind: 'file', path }), sealed)
  }
})

test('refuses files that are not key files', async () => {
  for (const [name, content] of [
    ['short', randomBytes(31)],
    ['long', randomBytes(33)],
    ['zero', Buffer.alloc(32)],
  ] as const) {
    const path = join(folder, name)
    writeFileSync(path, content, { mode: 0o600 })
    await assert.rejects(Vault.open({ kind: 'file', path }), sealed)
  }
  await assert.rejects(Vault.open({ kind: 'file', path: join(folder, 'missing') }), sealed)
  await assert.rejects(Vault.open({ kind: 'file', path: folder }), sealed)
})

test('only the same passphrase and salt decrypt what they encrypted', async () => {
  const vaults = await openVaults()
  const salt = new Uint8Array(randomBytes(16))
  const passphrase = 'three nodes, two of them sign'
  vaults.set(1, await Vault.open({ kind: 'passphrase', passphrase, salt }))
  const key = (await complete(keygenSessions(vaults, 'ed25519'))).get(1)!
  await opens(await Vault.open({ kind: 'passphrase', passphrase, salt }), key)
  await assert.rejects(
    opens(await Vault.open({ kind: 'passphrase', passphrase: `${passphrase}!`, salt }), key),
    sealed,
  )
  const other = new Uint8Array(randomBytes(16))
  await assert.rejects(
    opens(await Vault.open({ kind: 'passphrase', passphrase, salt: other }), key),
    sealed,
  )
  await assert.rejects(Vault.open({ kind: 'passphrase', passphrase: 'short', salt }), {
    code: 'BAD_ARGUMENT',
  })
  await assert.rejects(Vault.open({ kind: 'passphrase', passphrase, salt: new Uint8Array(8) }), {
    code: 'BAD_ARGUMENT',
  })
})

for (const curve of ['secp256k1', 'ed25519'] as Curve[]) {
  test(`${curve}: opens a share only with its own key-encryption key and under its own name`, async () => {
    const vaults = await openVaults()
    const [vault, other] = [vaults.get(1)!, vaults.get(2)!]
    const keys = await complete(keygenSessions(vaults, curve))
    const key = keys.get(1)!
    await opens(vault, key)
    await assert.rejects(opens(other, key), sealed)
    const chainCode = Uint8Array.from(key.chainCode)
    chainCode[0]! ^= 1
    const elsewhere: Partial<KeyMaterial>[] = [
      { epoch: 1 },
      { keyId: 'key2' },
      { party: 2 },
      { chainCode },
      { sealedShare: keys.get(2)!.sealedShare },
      { sealedShare: new Uint8Array() },
      { sealedShare: new Uint8Array(200) },
    ]
    for (const change of elsewhere)
      await assert.rejects(opens(vault, { ...key, ...change }), sealed)
    const refresh = startRefresh({ vault: other, key, sessionId: sessionId() })
    await assert.rejects(refresh.step([]), sealed)

    const at = fc.integer({ min: 0, max: key.sealedShare.length - 1 })
    await fc.assert(
      fc.asyncProperty(at, fc.integer({ min: 0, max: 7 }), fc.boolean(), async (byte, bit, cut) => {
        const changed = Uint8Array.from(key.sealedShare)
        changed[byte]! ^= 1 << bit
        const sealedShare = cut ? key.sealedShare.slice(0, byte) : changed
        await assert.rejects(opens(vault, { ...key, sealedShare }), sealed)
      }),
      { numRuns: 100 },
    )
  })
}

test('refuses the key of one curve for the other curve', async () => {
  const vaults = await openVaults()
  const key = (await complete(keygenSessions(vaults, 'ed25519'))).get(1)!
  const posing = { ...key, curve: 'secp256k1' as const }
  assert.throws(
    () => startRefresh({ vault: vaults.get(1)!, key: posing, sessionId: sessionId() }),
    {
      code: 'BAD_ARGUMENT',
    },
  )
})

test('two encryptions of one share differ completely, because data keys are new each time', async () => {
  const vaults = await openVaults()
  const pair = await Promise.all(
    ['a', 'a'].map((id) => complete(keygenSessions(vaults, 'ed25519', id))),
  )
  const [one, two] = pair.map((keys) => Buffer.from(keys.get(1)!.sealedShare))
  assert.deepEqual(one!.subarray(0, 4), two!.subarray(0, 4))
  assert.notDeepEqual(one!.subarray(4, 16), two!.subarray(4, 16))
  assert.notDeepEqual(one!.subarray(16, 64), two!.subarray(16, 64))
})

test('a share opens only with its own key; shares of an earlier vault can be moved to a key', async () => {
  const path = join(folder, 'earlier')
  await Vault.createKeyFile(path)
  const earlier = await Vault.open({ kind: 'file', path })
  const vaults = await openVaults()
  vaults.set(1, earlier)
  const old = (await complete(keygenSessions(vaults, 'ed25519'))).get(1)!
  assert.equal(sealedUnder(old.sealedShare), null)
  const [first, second] = ['a1'.repeat(8), 'b2'.repeat(8)].map((name) => ({
    name,
    key: new Uint8Array(randomBytes(32)),
  }))
  const own = (...keys: { name: string; key: Uint8Array }[]) => Vault.open({ kind: 'keys', keys })
  const moving = await Vault.open({ kind: 'keys', keys: [first!], earlier })
  await opens(moving, old)
  const moved = { ...old, sealedShare: await moving.rewrap(old.sealedShare, old) }
  assert.equal(sealedUnder(moved.sealedShare), first!.name)
  await opens(await own(first!), moved)
  await opens(await own(second!, first!), moved)
  await assert.rejects(opens(await own(first!), old), sealed)
  await assert.rejects(opens(await own(second!), moved), sealed)
  await assert.rejects(opens(earlier, moved), sealed)
  await assert.rejects(opens(await own({ name: first!.name, key: second!.key }), moved), sealed)
  // The name within the share is verified: the share cannot be opened with the same key under
  // another name.
  const renamed = Buffer.from(moved.sealedShare)
  renamed.write(second!.name, 4, 'hex')
  await assert.rejects(
    opens(await own({ name: second!.name, key: first!.key }), { ...moved, sealedShare: renamed }),
    sealed,
  )
  for (const meta of [{ epoch: 1 }, { party: 2 }, { keyId: 'other' }]) {
    await assert.rejects(
      (await own(second!, first!)).rewrap(moved.sealedShare, { ...moved, ...meta }),
      sealed,
    )
  }
  const again = await (await own(second!, first!)).rewrap(moved.sealedShare, moved)
  assert.equal(sealedUnder(again), second!.name)
  await opens(await own(second!), { ...moved, sealedShare: again })
  await fc.assert(
    fc.asyncProperty(
      fc.nat(again.length - 1),
      fc.integer({ min: 1, max: 255 }),
      async (at, bits) => {
        const changed = Buffer.from(again)
        changed[at]! ^= bits
        await assert.rejects((await own(second!)).rewrap(changed, moved), sealed)
      },
    ),
  )
  const wrong = { name: 'ThresholdError', code: 'BAD_ARGUMENT' }
  for (const keys of [
    [],
    [first!, first!],
    [{ name: 'short', key: first!.key }],
    [{ name: first!.name, key: new Uint8Array(31) }],
    [{ name: first!.name, key: new Uint8Array(32) }],
  ])
    await assert.rejects(Vault.open({ kind: 'keys', keys }), wrong)
})
