import { DatabaseSync } from 'node:sqlite'
import { RecordStore, type Entry } from './record.ts'
import { State } from './state.ts'
import type { KeyMaterial } from '@custody/threshold'

/** Record and state together: the only way to change the state is to append. */
export class Store {
  readonly record: RecordStore
  readonly state = new State()
  readonly #database: DatabaseSync

  constructor(path: string, now: () => number) {
    this.record = new RecordStore(path, now)
    this.#database = this.record.database
    this.record.replay((entry) => this.#apply(entry))
  }

  #apply(entry: Entry): void {
    if (entry.kind === 'imported') this.state.apply({ height: entry.height, at: entry.body['at'], kind: entry.body['kind'], body: entry.body['body'] }, true)
    else this.state.apply(entry)
  }

  /** Durable when it returns. */
  append(kind: string, body: Record<string, unknown>): Entry {
    const entry = this.record.append(kind, body)
    this.#apply(entry)
    return entry
  }

  /** Several entries, one disk flush; all or none. */
  appendAll(entries: readonly { kind: string; body: Record<string, unknown> }[]): Entry[] {
    const appended = this.record.appendAll(entries)
    for (const entry of appended) this.#apply(entry)
    return appended
  }

  clock(): number { return this.record.clock() }
  seconds(): number { return Math.floor(this.record.clock() / 1000) }

  /** Sealed shares live beside the record, for old epochs must be deletable. */
  saveShare(material: KeyMaterial): void {
    this.#database.prepare('INSERT INTO share (key_id, epoch, material) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET material = excluded.material').run(material.keyId, material.epoch, encodeMaterial(material))
  }

  share(keyId: string, epoch: number): KeyMaterial | null {
    const row = this.#database.prepare('SELECT material FROM share WHERE key_id = ? AND epoch = ?').get(keyId, epoch) as { material: string } | undefined
    return row ? decodeMaterial(row.material) : null
  }

  shares(): KeyMaterial[] {
    return (this.#database.prepare('SELECT material FROM share ORDER BY key_id, epoch').all() as { material: string }[]).map((row) => decodeMaterial(row.material))
  }

  deleteShare(keyId: string, epoch: number): void {
    this.#database.prepare('DELETE FROM share WHERE key_id = ? AND epoch = ?').run(keyId, epoch)
  }

  saveClock(): void { this.record.saveClock() }
  close(): void { this.record.close() }
}

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'base64'))
const text = (value: Uint8Array): string => Buffer.from(value).toString('base64')

export function encodeMaterial(material: KeyMaterial): string {
  return JSON.stringify({ ...material, publicKey: text(material.publicKey), chainCode: text(material.chainCode), sealedShare: text(material.sealedShare) })
}

export function decodeMaterial(encoded: string): KeyMaterial {
  const value = JSON.parse(encoded)
  return { ...value, publicKey: bytes(value.publicKey), chainCode: bytes(value.chainCode), sealedShare: bytes(value.sealedShare) }
}
