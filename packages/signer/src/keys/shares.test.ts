import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  linkSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import type { KeyMaterial } from '@custody/threshold'
import { encodeMaterial } from '../store/shares.ts'
import { Store } from '../store/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'signer-shares-'))
after(() => {
  rmSync(folder, { recursive: true, force: true })
})

let homes = 0
const home = (): string => {
  const path = mkdtempSync(join(folder, `${homes++}-`))
  return join(path, 'record.sqlite')
}
function material(epoch: number, keyId = 's-1'): KeyMaterial {
  return {
    engine: 'dkls23-secp256k1',
    engineVersion: '1',
    curve: 'secp256k1',
    keyId,
    epoch,
    party: 1,
    publicKey: new Uint8Array(33),
    chainCode: new Uint8Array(32),
    sealedShare: new Uint8Array(randomBytes(20_000)),
  }
}
const open = (path: string) => new Store(path, () => 1)
const KEY = {
  key_id: 's-1',
  curve: 'secp256k1' as const,
  public_key: '02',
  chain_code: '00',
  mode: 'local',
  epoch: 0,
  signatures: [],
}

/** Returns whether any part of a share is anywhere in a home, in any encoding. */
function isIn(path: string, share: KeyMaterial): boolean {
  const windows = [0, 6000, 12_000, 18_000].map((at) =>
    Buffer.from(share.sealedShare.subarray(at, at + 48)),
  )
  const pieces = windows.flatMap((window) => [
    window,
    Buffer.from(window.toString('hex')),
    Buffer.from(window.toString('base64')),
  ])
  const home = join(path, '..')
  return readdirSync(home, { recursive: true })
    .map((name) => join(home, String(name)))
    .filter((each) => statSync(each).isFile())
    .some((each) => pieces.some((piece) => readFileSync(each).includes(piece)))
}

test('a share survives a restart and is private; a deleted share is overwritten first', () => {
  const path = home()
  const first = open(path)
  const [old, next] = [material(0), material(1)]
  for (const each of [old, next]) first.shares.save(each, null)
  first.close()
  const store = open(path)
  assert.deepEqual(store.shares.read('s-1', 1, null), next)
  const shares = join(path, '..', 'record.shares')
  assert.deepEqual(
    [statSync(shares).mode & 0o777, statSync(join(shares, 's-1.0')).mode & 0o777],
    [0o700, 0o600],
  )
  // A second link to the same file shows what remains on the disk.
  linkSync(join(shares, 's-1.0'), join(folder, 'blocks'))
  store.shares.delete('s-1', 0, null)
  assert.deepEqual(
    [
      store.shares.has('s-1', 0, null),
      store.shares.read('s-1', 0, null),
      isIn(path, old),
      isIn(path, next),
    ],
    [false, null, false, true],
  )
  assert.ok(readFileSync(join(folder, 'blocks')).every((byte) => byte === 0))
  store.close()
})

test("no other run overwrites a share, and a failed run's share is wiped", () => {
  const path = home()
  const store = open(path)
  const [failed, next, made] = [material(1), material(1), material(0)]
  const [one, two] = ['1'.repeat(64), '2'.repeat(64)]
  store.append('key', { ...KEY, session: one })
  store.shares.save(made, one)
  store.shares.save(failed, one)
  assert.throws(() => {
    store.shares.save(next, one)
  }, /already exists/)
  assert.deepEqual(store.shares.read('s-1', 1, one), failed)
  linkSync(join(path, '..', 'record.shares', `s-1.1.${one}`), join(folder, 'failed'))
  store.wipeUnprepared('s-1')
  store.shares.save(next, two)
  store.append('prepared', { ...KEY, epoch: 1, session: two })
  store.wipeUnprepared('s-1')
  assert.ok(readFileSync(join(folder, 'failed')).every((byte) => byte === 0))
  assert.deepEqual(
    [
      store.shares.read('s-1', 1, two),
      store.shareOf('s-1', 1),
      store.shareOf('s-1', 0),
      isIn(path, failed),
    ],
    [next, null, made, false],
  )
  store.close()
})

test('a start keeps shares of the current and later epochs, and shares without a record', () => {
  const path = home()
  const store = open(path)
  const [one, two, three] = ['1'.repeat(64), '2'.repeat(64), '3'.repeat(64)]
  const [old, current, stray, above, unknown] = [
    material(0),
    material(1),
    material(1),
    material(2),
    material(0, 's-2'),
  ]
  store.append('key', { ...KEY, session: one })
  store.shares.save(old, one)
  store.shares.save(current, two)
  store.shares.save(stray, three)
  store.shares.save(above, three)
  store.shares.save(unknown, three)
  // The node never received its peers' message to delete the old epoch.
  store.append('refreshed', { key_id: 's-1', epoch: 1, session: two })
  store.close()
  const again = open(path)
  assert.deepEqual([isIn(path, old), isIn(path, stray)], [false, false])
  assert.deepEqual(
    [again.shareOf('s-1', 0), again.shareOf('s-1', 1), again.shareOf('s-1', 2)],
    [null, current, null],
  )
  assert.deepEqual([isIn(path, above), isIn(path, unknown), again.uncertified()], [true, true, 1])
  again.close()
})

test('an unnamed share of an earlier version is used if its session has no other share', () => {
  const path = home()
  const store = open(path)
  const [unnamed, named] = [material(1), material(1)]
  const session = '1'.repeat(64)
  store.append('key', KEY)
  store.shares.save(unnamed, null)
  store.append('refreshed', { key_id: 's-1', epoch: 1, session })
  store.close()
  const again = open(path)
  assert.deepEqual(again.shareOf('s-1', 1), unnamed)
  again.shares.save(named, session)
  again.wipeUnused()
  assert.deepEqual([again.shareOf('s-1', 1), isIn(path, unnamed)], [named, false])
  again.close()
})

test('a start finishes an interrupted deletion and ignores a half-written share', () => {
  const path = home()
  const store = open(path)
  const [old, next, half] = [material(0), material(1), material(2)]
  for (const each of [old, next]) store.shares.save(each, null)
  store.append('key', KEY)
  store.append('refreshed', { key_id: 's-1', epoch: 1 })
  store.append('forgotten', { key_id: 's-1', epoch: 0 })
  writeFileSync(join(path, '..', 'record.shares', 's-1.2.draft'), encodeMaterial(half))
  store.close()
  assert.ok(isIn(path, old) && isIn(path, half), 'it was killed before')
  const again = open(path)
  assert.deepEqual(
    [
      again.shares.has('s-1', 0, null),
      again.shares.has('s-1', 1, null),
      again.shares.has('s-1', 2, null),
      isIn(path, old),
      isIn(path, next),
      isIn(path, half),
    ],
    [false, true, false, false, true, false],
  )
  again.close()
})

/** Creates a home of an earlier version: shares in a table, from which an old epoch was deleted. */
function earlier(
  path: string,
  shares: readonly KeyMaterial[],
  deleted: readonly KeyMaterial[],
): void {
  const store = open(path)
  store.append('key', KEY)
  store.close()
  rmSync(join(path, '..', 'record.shares'), { recursive: true })
  const database = new DatabaseSync(path)
  database.exec(`PRAGMA user_version=0;
    CREATE TABLE share (key_id TEXT NOT NULL, epoch INTEGER NOT NULL, material TEXT NOT NULL, PRIMARY KEY (key_id, epoch)) STRICT`)
  for (const each of [...deleted, ...shares]) {
    database
      .prepare('INSERT INTO share VALUES (?, ?, ?)')
      .run(each.keyId, each.epoch, encodeMaterial(each))
  }
  for (const each of deleted)
    database.prepare('DELETE FROM share WHERE key_id = ? AND epoch = ?').run(each.keyId, each.epoch)
  database.close()
}

test('shares of an earlier version move out of the database without leaving deleted data', () => {
  const path = home()
  const [old, next] = [material(0), material(1)]
  earlier(path, [next], [old])
  assert.ok(isIn(path, old), 'a deleted share is in the free pages')
  const store = open(path)
  assert.deepEqual(
    [store.shares.read('s-1', 1, null), store.state.keys.get('s-1')?.curve, isIn(path, old)],
    [next, 'secp256k1', false],
  )
  store.shares.delete('s-1', 1, null)
  assert.ok(!isIn(path, next))
  store.close()
  assert.equal(open(path).record.height, 1)
})

test('the next start repeats a move that was interrupted', () => {
  const path = home()
  const [old, next] = [material(0), material(1)]
  earlier(path, [next], [old])
  const store = open(path)
  store.close()
  // The shares were moved and the table dropped, but the file was neither cleaned nor marked.
  const database = new DatabaseSync(path)
  database.exec('PRAGMA user_version=0; CREATE TABLE junk (material TEXT); ')
  database.prepare('INSERT INTO junk VALUES (?)').run(encodeMaterial(old))
  database.exec('DROP TABLE junk')
  database.close()
  assert.ok(isIn(path, old))
  const again = open(path)
  assert.deepEqual([again.shares.read('s-1', 1, null), isIn(path, old)], [next, false])
  again.close()
})

test('a malformed key id is never used as a path', () => {
  const store = open(home())
  for (const keyId of ['../x', 'a/b', '', '.', 'a'.repeat(65), 'a\0b']) {
    assert.throws(() => {
      store.shares.save(material(0, keyId), null)
    }, TypeError)
  }
  store.close()
})
