import {
  closeSync, existsSync, fstatSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, unlinkSync, writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import type { KeyMaterial } from '@custody/threshold'

const KEY_ID = /^[A-Za-z0-9_-]{1,64}$/
const DRAFT = '.draft'

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'base64'))
const text = (value: Uint8Array): string => Buffer.from(value).toString('base64')

export function encodeMaterial(material: KeyMaterial): string {
  const { publicKey, chainCode, sealedShare } = material
  return JSON.stringify({ ...material, publicKey: text(publicKey), chainCode: text(chainCode), sealedShare: text(sealedShare) })
}

function decodeMaterial(encoded: string): KeyMaterial {
  const value = JSON.parse(encoded)
  return { ...value, publicKey: bytes(value.publicKey), chainCode: bytes(value.chainCode), sealedShare: bytes(value.sealedShare) }
}

/** Zeros over a file's bytes, on disk before its name goes: an unlinked file alone can be brought back. */
function wipe(descriptor: number): void {
  const { size } = fstatSync(descriptor)
  const zeros = Buffer.alloc(size)
  for (let written = 0; written < size;) written += writeSync(descriptor, zeros, written, size - written, written)
  fsyncSync(descriptor)
  closeSync(descriptor)
}

/**
 * Sealed shares, a file each in a folder beside the record. Not in a database: its free pages and its log keep what was
 * deleted, and an old epoch's shares of two nodes are the key for ever. Files are overwritten and unlinked.
 */
export class Shares {
  readonly #folder: string
  readonly #known = new Set<string>()

  constructor(folder: string) {
    this.#folder = folder
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (const name of readdirSync(folder)) {
      // A share that was being written when the node ended: nobody has counted on it.
      if (name.endsWith(DRAFT)) this.#unlink(name)
      else this.#known.add(name)
    }
  }

  #name(keyId: string, epoch: number): string {
    if (!KEY_ID.test(keyId) || !Number.isSafeInteger(epoch) || epoch < 0) throw new TypeError('A key id has letters, digits, _ and -')
    return `${keyId}.${epoch}`
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

  /** Durable when it returns. Another share of the same epoch, from a refresh that came to nothing, is wiped. */
  save(material: KeyMaterial): void {
    const name = this.#name(material.keyId, material.epoch)
    const path = join(this.#folder, name)
    const replaced = this.#known.has(name) ? openSync(path, 'r+') : null
    writeFileSync(`${path}${DRAFT}`, encodeMaterial(material), { mode: 0o600, flush: true })
    renameSync(`${path}${DRAFT}`, path)
    this.#sync()
    this.#known.add(name)
    if (replaced !== null) wipe(replaced)
  }

  has(keyId: string, epoch: number): boolean { return this.#known.has(`${keyId}.${epoch}`) }

  read(keyId: string, epoch: number): KeyMaterial | null {
    return this.has(keyId, epoch) ? decodeMaterial(readFileSync(join(this.#folder, this.#name(keyId, epoch)), 'utf8')) : null
  }

  /** Each share, read when its turn comes; what is saved meanwhile does not come twice. */
  *all(): Generator<KeyMaterial> {
    for (const name of Array.from(this.#known)) yield decodeMaterial(readFileSync(join(this.#folder, name), 'utf8'))
  }

  delete(keyId: string, epoch: number): void {
    if (!this.has(keyId, epoch)) return
    const name = this.#name(keyId, epoch)
    this.#unlink(name)
    this.#known.delete(name)
  }

  /**
   * Takes shares over from a database of an earlier version, and cleans that: what was deleted from it before is still in
   * its free pages and its log. Begun again at the next start where it was cut off.
   */
  adopt(database: DatabaseSync): void {
    const { user_version: version } = database.prepare('PRAGMA user_version').get() as { user_version: number }
    if (version >= 1) return
    if (database.prepare(`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'share'`).get()) {
      const rows = database.prepare('SELECT material FROM share').iterate() as Iterable<unknown> as Iterable<{ material: string }>
      for (const { material } of rows) this.save(decodeMaterial(material))
      database.exec('PRAGMA secure_delete=ON; DROP TABLE share')
    }
    database.exec('VACUUM; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA user_version=1; PRAGMA wal_checkpoint(TRUNCATE)')
  }
}

/** The shares of a folder that may be in use, and is only read. */
export function* readShares(folder: string): Generator<KeyMaterial> {
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder)) if (!name.endsWith(DRAFT)) yield decodeMaterial(readFileSync(join(folder, name), 'utf8'))
}

/** Where the shares of a record are: `record.shares` beside `record.sqlite`. */
export const sharesFolder = (record: string): string => `${record.replace(/\.sqlite$/, '')}.shares`
