import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { test } from 'node:test'

import type { Curve, KeyMaterial } from './index.ts'
import {
  complete,
  keygenSessions,
  openVaults,
  PAIRS,
  refreshSessions,
  signAndCheck,
} from '../testing/helpers.ts'
import type { Keys, Vaults } from '../testing/helpers.ts'

function recoveryKey() {
  const pair = generateKeyPairSync('x25519')
  const raw = (der: Buffer) => new Uint8Array(der.subarray(-32))
  return {
    publicKey: raw(pair.publicKey.export({ format: 'der', type: 'spki' })),
    secretKey: raw(pair.privateKey.export({ format: 'der', type: 'pkcs8' })),
  }
}

for (const curve of ['secp256k1', 'ed25519'] as Curve[]) {
  test(`${curve}: after one node is lost, two sign, and its restored backup signs again`, async () => {
    const vaults = await openVaults()
    const recovery = recoveryKey()
    const keys = await complete(keygenSessions(vaults, curve))
    const lost = keys.get(3)!
    const backup = await vaults.get(3)!.sealBackup(lost.sealedShare, lost, recovery.publicKey)

    // Node 3 and its vault are lost.
    const two: Keys = new Map([
      [1, keys.get(1)!],
      [2, keys.get(2)!],
    ])
    const left: Vaults = new Map([
      [1, vaults.get(1)!],
      [2, vaults.get(2)!],
    ])
    await signAndCheck(left, two, [1, 2], [4], new Uint8Array(randomBytes(32)))

    const fresh = (await openVaults()).get(1)!
    const sealedShare = await fresh.restoreBackup(backup, recovery.secretKey, lost)
    const restored: KeyMaterial = { ...lost, sealedShare }
    const nodes: Vaults = new Map([...left, [3, fresh]])
    const all: Keys = new Map([...two, [3, restored]])
    for (const pair of PAIRS)
      await signAndCheck(nodes, all, pair, [4, 5], new Uint8Array(randomBytes(32)))

    // The recovered share also takes part in a refresh, which makes the backup worthless.
    const refreshed = await complete(refreshSessions(nodes, all))
    for (const pair of PAIRS)
      await signAndCheck(nodes, refreshed, pair, [], new Uint8Array(randomBytes(32)))
  })

  test(`${curve}: a backup opens only for its key, party and epoch, and unchanged`, async () => {
    const vaults = await openVaults()
    const [vault, recovery] = [vaults.get(1)!, recoveryKey()]
    const key = (await complete(keygenSessions(vaults, curve))).get(1)!
    const backup = await vault.sealBackup(key.sealedShare, key, recovery.publicKey)
    const sealed = { code: 'SEALED' }
    await assert.rejects(vault.restoreBackup(backup, recoveryKey().secretKey, key), sealed)
    await assert.rejects(
      vault.restoreBackup(backup, recovery.secretKey, { ...key, epoch: 1 }),
      sealed,
    )
    await assert.rejects(
      vault.restoreBackup(backup, recovery.secretKey, { ...key, party: 2 }),
      sealed,
    )
    await assert.rejects(
      vault.restoreBackup(backup, recovery.secretKey, { ...key, keyId: 'other' }),
      sealed,
    )
    for (const at of [0, 4, 36, 50, backup.length - 1]) {
      const changed = Uint8Array.from(backup)
      changed[at]! ^= 1
      await assert.rejects(vault.restoreBackup(changed, recovery.secretKey, key), sealed)
    }
    await assert.rejects(vault.restoreBackup(new Uint8Array(), recovery.secretKey, key), sealed)
    await assert.rejects(
      vault.sealBackup(key.sealedShare, { ...key, epoch: 7 }, recovery.publicKey),
      sealed,
    )
    const refused = { code: 'BAD_ARGUMENT' }
    await assert.rejects(vault.sealBackup(key.sealedShare, key, new Uint8Array(32)), refused)
    await assert.rejects(vault.sealBackup(key.sealedShare, key, new Uint8Array(31)), refused)
    await assert.rejects(vault.restoreBackup(backup, new Uint8Array(16), key), refused)
  })
}
