import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { linkSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import type { KeyMaterial } from '@custody/threshold'
import { encodeMaterial } from '../src/store/shares.ts'
import { Store } from '../src/store/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'signer-shares-'))
after(() => { rmSync(folder, { recursive: true, force: true }) })

let homes = 0
const home = (): string => {
  const path = mkdtempSync(join(folder, `${homes++}-`))
  return join(path, 'record.sqlite')
}
function material(epoch: number, keyId = 's-1'): KeyMaterial {
  return {
    engine: 'dkls23-secp256k1', engineVersion: '1', curve: 'secp256k1', keyId, epoch, party: 1, publicKey: new Uint8Array(33),
    chainCode: new Uint8Array(32), sealedShare: new Uint8Array(randomBytes(20_000)),
  }
}
const open = (path: string) => new Store(path, () => 1)
const KEY = { key_id: 's-1', curve: 'secp256k1' as const, public_key: '02', chain_code: '00', mode: 'local', epoch: 0, signatures: [] }

/** A window of a share, anywhere in a home, in any spelling. */
function isIn(path: string, share: KeyMaterial): boolean {
  const windows = [0, 6000, 12_000, 18_000].map((at) => Buffer.from(share.sealedShare.subarray(at, at + 48)))
  const pieces = windows.flatMap((window) => [window, Buffer.from(window.toString('hex')), Buffer.from(window.toString('base64'))])
  const home = join(path, '..')
  return readdirSync(home, { recursive: true }).map((name) => join(home, String(name))).filter((each) => statSync(each).isFile())
    .some((each) => pieces.some((piece) => readFileSync(each).includes(piece)))
}

test('a share is kept over a restart, closed to others, and a deleted one is overwritten before its name goes', () => {
  const path = home()
  const first = open(path)
  const [old, next] = [material(0), material(1)]
  for (const each of [old, next]) first.shares.save(each)
  first.close()
  const store = open(path)
  assert.deepEqual(store.shares.read('s-1', 1), next)
  const shares = join(path, '..', 'record.shares')
  assert.deepEqual([statSync(shares).mode & 0o777, statSync(join(shares, 's-1.0')).mode & 0o777], [0o700, 0o600])
  // A second name of the same file: what is left on the disk.
  linkSync(join(shares, 's-1.0'), join(folder, 'blocks'))
  store.shares.delete('s-1', 0)
  assert.deepEqual([store.shares.has('s-1', 0), store.shares.read('s-1', 0), isIn(path, old), isIn(path, next)], [false, null, false, true])
  assert.ok(readFileSync(join(folder, 'blocks')).every((byte) => byte === 0))
  store.close()
})

test('a share of a refresh that came to nothing is overwritten by the next one of that epoch', () => {
  const path = home()
  const store = open(path)
  const [failed, next] = [material(1), material(1)]
  store.shares.save(failed)
  linkSync(join(path, '..', 'record.shares', 's-1.1'), join(folder, 'failed'))
  store.shares.save(next)
  assert.ok(readFileSync(join(folder, 'failed')).every((byte) => byte === 0))
  assert.deepEqual([store.shares.read('s-1', 1), isIn(path, failed)], [next, false])
  store.close()
})

test('killed between the entry and the file: the next start finishes it; a share half written is no share', () => {
  const path = home()
  const store = open(path)
  const [old, next, half] = [material(0), material(1), material(2)]
  for (const each of [old, next]) store.shares.save(each)
  store.append('key', KEY)
  store.append('refreshed', { key_id: 's-1', epoch: 1 })
  store.append('forgotten', { key_id: 's-1', epoch: 0 })
  writeFileSync(join(path, '..', 'record.shares', 's-1.2.draft'), encodeMaterial(half))
  store.close()
  assert.ok(isIn(path, old) && isIn(path, half), 'it was killed before')
  const again = open(path)
  assert.deepEqual(
    [
      again.shares.has('s-1', 0), again.shares.has('s-1', 1), again.shares.has('s-1', 2), isIn(path, old), isIn(path, next),
      isIn(path, half),
    ],
    [false, true, false, false, true, false]
  )
  again.close()
})

/** A home of an earlier version: shares in a table, an old epoch deleted from it. */
function earlier(path: string, shares: readonly KeyMaterial[], deleted: readonly KeyMaterial[]): void {
  const store = open(path)
  store.append('key', KEY)
  store.close()
  rmSync(join(path, '..', 'record.shares'), { recursive: true })
  const database = new DatabaseSync(path)
  database.exec(`PRAGMA user_version=0;
    CREATE TABLE share (key_id TEXT NOT NULL, epoch INTEGER NOT NULL, material TEXT NOT NULL, PRIMARY KEY (key_id, epoch)) STRICT`)
  for (const each of [...deleted, ...shares]) {
    database.prepare('INSERT INTO share VALUES (?, ?, ?)').run(each.keyId, each.epoch, encodeMaterial(each))
  }
  for (const each of deleted) database.prepare('DELETE FROM share WHERE key_id = ? AND epoch = ?').run(each.keyId, each.epoch)
  database.close()
}

test('shares of an earlier version move out of the database, and what was deleted from it before is gone too', () => {
  const path = home()
  const [old, next] = [material(0), material(1)]
  earlier(path, [next], [old])
  assert.ok(isIn(path, old), 'a deleted share is in the free pages')
  const store = open(path)
  assert.deepEqual([store.shares.read('s-1', 1), store.state.keys.get('s-1')?.curve, isIn(path, old)], [next, 'secp256k1', false])
  store.shares.delete('s-1', 1)
  assert.ok(!isIn(path, next))
  store.close()
  assert.equal(open(path).record.height, 1)
})

test('cut off in the middle of the move: the next start begins it again', () => {
  const path = home()
  const [old, next] = [material(0), material(1)]
  earlier(path, [next], [old])
  const store = open(path)
  store.close()
  // Moved and dropped, but neither cleaned nor marked.
  const database = new DatabaseSync(path)
  database.exec('PRAGMA user_version=0; CREATE TABLE junk (material TEXT); ')
  database.prepare('INSERT INTO junk VALUES (?)').run(encodeMaterial(old))
  database.exec('DROP TABLE junk')
  database.close()
  assert.ok(isIn(path, old))
  const again = open(path)
  assert.deepEqual([again.shares.read('s-1', 1), isIn(path, old)], [next, false])
  again.close()
})

test('a key id that is no name never becomes a path', () => {
  const store = open(home())
  for (const keyId of ['../x', 'a/b', '', '.', 'a'.repeat(65), 'a\0b']) {
    assert.throws(() => { store.shares.save(material(0, keyId)) }, TypeError)
  }
  store.close()
})
