import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { KeyMaterial } from '@custody/threshold'

const KEY_ID = /^[A-Za-z0-9_-]{1,64}$/
const SESSION = /^[0-9a-f]{64}$/
const DRAFT = '.draft'

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'base64'))
const text = (value: Uint8Array): string => Buffer.from(value).toString('base64')

export function encodeMaterial(material: KeyMaterial): string {
  const { publicKey, chainCode, sealedShare } = material
  return JSON.stringify({
    ...material,
    publicKey: text(publicKey),
    chainCode: text(chainCode),
    sealedShare: text(sealedShare),
  })
}

function decodeMaterial(encoded: string): KeyMaterial {
  const value = JSON.parse(encoded)
  return {
    ...value,
    publicKey: bytes(value.publicKey),
    chainCode: bytes(value.chainCode),
    sealedShare: bytes(value.sealedShare),
  }
}

/**
 * Overwrites a file with zeros, on disk before it is deleted, because a deleted file can be
 * recovered.
 */
function wipe(descriptor: number): void {
  const { size } = fstatSync(descriptor)
  const zeros = Buffer.alloc(size)
  for (let written = 0; written < size;)
    written += writeSync(descriptor, zeros, written, size - written, written)
  fsyncSync(descriptor)
  closeSync(descriptor)
}

/**
 * Identifies the share in a file. `session`: of the run of three nodes that generated it; null in
 * data folders of earlier versions.
 */
export interface ShareFile {
  name: string
  keyId: string
  epoch: number
  session: string | null
}

function fileOf(name: string): ShareFile {
  const [keyId = '', epoch = '', session = null] = name.split('.')
  return { name, keyId, epoch: Number(epoch), session }
}

/**
 * Encrypted shares, one file each in a folder next to the record. They are not in a database,
 * because its free pages and its WAL retain deleted data, and two nodes' shares of an old epoch
 * reveal the key permanently. Files are overwritten with zeros before they are deleted.
 *
 * A file is named by key, epoch and the session that generated the share, so that no other run can
 * overwrite it.
 */
export class Shares {
  readonly #folder: string
  readonly #cache = new Map<string, ShareFile>()

  constructor(folder: string) {
    this.#folder = folder
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(folder)) {
      // A share that was being written when the node stopped; no node depends on it.
      if (name.endsWith(DRAFT)) this.#unlink(name)
      else this.#cache.set(name, fileOf(name))
    }
  }

  #name(keyId: string, epoch: number, session: string | null): string {
    if (!KEY_ID.test(keyId) || !Number.isSafeInteger(epoch) || epoch < 0)
      throw new TypeError('A key id must consist of letters, digits, _ and -')
    if (session !== null && !SESSION.test(session))
      throw new TypeError('A session must be 64 hexadecimal digits')
    return session === null ? `${keyId}.${epoch}` : `${keyId}.${epoch}.${session}`
  }

  #sync(): void {
    const descriptor = openSync(this.#folder, 'r')
    fsyncSync(descriptor)
    closeSync(descriptor)
  }

  #unlink(name: string): void {
    const path = join(this.#folder, name)
    wipe(openSync(path, 'r+'))
    unlinkSync(path)
    this.#sync()
  }

  #write(name: string, material: KeyMaterial): void {
    const path = join(this.#folder, name)
    writeFileSync(`${path}${DRAFT}`, encodeMaterial(material), { mode: 0o600, flush: true })
    renameSync(`${path}${DRAFT}`, path)
    this.#sync()
    this.#cache.set(name, fileOf(name))
  }

  /**
   * Writes a new share; durable when it returns.
   * @throws Error if a share of that name exists
   */
  save(material: KeyMaterial, session: string | null): void {
    const name = this.#name(material.keyId, material.epoch, session)
    if (this.#cache.has(name)) throw new Error(`A share ${name} already exists`)
    this.#write(name, material)
  }

  /**
   * Writes a re-encrypted share, or one from a backup; deletes the earlier file. Durable when it
   * returns.
   */
  replace(material: KeyMaterial, session: string | null): void {
    const name = this.#name(material.keyId, material.epoch, session)
    const replaced = this.#cache.has(name) ? openSync(join(this.#folder, name), 'r+') : null
    this.#write(name, material)
    if (replaced !== null) wipe(replaced)
  }

  /**
   * Returns the share of a session; otherwise the share that an earlier version wrote without a
   * session.
   */
  #find(keyId: string, epoch: number, session: string | null): ShareFile | null {
    return (
      this.#cache.get(this.#name(keyId, epoch, session)) ??
      this.#cache.get(this.#name(keyId, epoch, null)) ??
      null
    )
  }

  has(keyId: string, epoch: number, session: string | null): boolean {
    return this.#find(keyId, epoch, session) !== null
  }

  /**
   * Returns whether there is a share of exactly this session; shares of earlier versions do not
   * count.
   */
  hasExactly(keyId: string, epoch: number, session: string | null): boolean {
    return this.#cache.has(this.#name(keyId, epoch, session))
  }

  read(keyId: string, epoch: number, session: string | null): KeyMaterial | null {
    const file = this.#find(keyId, epoch, session)
    return file && this.#read(file.name)
  }

  #read(name: string): KeyMaterial {
    return decodeMaterial(readFileSync(join(this.#folder, name), 'utf8'))
  }

  /** Returns the shares of a key at an epoch, of all runs. */
  of(keyId: string, epoch: number): { session: string | null; material: KeyMaterial }[] {
    return [...this.#cache.values()]
      .filter((file) => file.keyId === keyId && file.epoch === epoch)
      .map(({ name, session }) => ({ session, material: this.#read(name) }))
  }

  /**
   * Iterates over the shares, each read in its turn; shares that are saved during the iteration are
   * not returned twice.
   */
  *all(): Generator<{ session: string | null; material: KeyMaterial }> {
    for (const { name, session } of Array.from(this.#cache.values()))
      yield { session, material: this.#read(name) }
  }

  /** Deletes the share of a session. */
  delete(keyId: string, epoch: number, session: string | null): void {
    const name = this.#name(keyId, epoch, session)
    if (this.#cache.has(name)) this.#wipe(name)
  }

  count(matches: (file: ShareFile) => boolean): number {
    return [...this.#cache.values()].filter(matches).length
  }

  /** Deletes all shares for which `isInUse` returns false. */
  retain(isInUse: (file: ShareFile) => boolean): void {
    for (const file of Array.from(this.#cache.values())) if (!isInUse(file)) this.#wipe(file.name)
  }

  #wipe(name: string): void {
    this.#unlink(name)
    this.#cache.delete(name)
  }

  /**
   * Moves shares from a database of an earlier version to files, and cleans the database, whose
   * free pages and WAL retain deleted shares. If it is interrupted, it starts again at the next
   * start.
   */
  adopt(database: DatabaseSync): void {
    const { user_version: version } = database.prepare('PRAGMA user_version').get() as {
      user_version: number
    }
    if (version >= 1) return
    if (
      database.prepare(`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'share'`).get()
    ) {
      const rows = database
        .prepare('SELECT material FROM share')
        .iterate() as Iterable<unknown> as Iterable<{ material: string }>
      for (const { material } of rows) this.replace(decodeMaterial(material), null)
      database.exec('PRAGMA secure_delete=ON; DROP TABLE share')
    }
    database.exec(
      'VACUUM; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA user_version=1; PRAGMA wal_checkpoint(TRUNCATE)',
    )
  }
}

/** Reads the shares of a folder that may be in use, without changing it. */
export function* readShares(folder: string): Generator<KeyMaterial> {
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder))
    if (!name.endsWith(DRAFT)) yield decodeMaterial(readFileSync(join(folder, name), 'utf8'))
}

/** Returns the folder of a record's shares: `record.shares` next to `record.sqlite`. */
export const sharesFolder = (record: string): string => `${record.replace(/\.sqlite$/, '')}.shares`
