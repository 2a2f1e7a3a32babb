import { DatabaseSync } from 'node:sqlite'
import { PeerHeads } from './heads.ts'
import { RecordStore, type Entry } from './record.ts'
import { State } from './state.ts'
import type { KeyMaterial } from '@custody/threshold'

const FLUSH_MS = 20

/** Record and state together: the only way to change the state is to append. */
export class Store {
  readonly record: RecordStore
  readonly state = new State()
  readonly heads: PeerHeads
  readonly #database: DatabaseSync
  #waiting: { kind: string; body: Record<string, unknown> }[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(path: string, now: () => number) {
    this.record = new RecordStore(path, now)
    this.#database = this.record.database
    this.heads = new PeerHeads(this.#database)
    this.record.replay((entry) => this.#apply(entry))
  }

  #apply(entry: Entry): void {
    if (entry.kind === 'imported') this.state.apply({ height: entry.height, at: entry.body['at'], kind: entry.body['kind'], body: entry.body['body'] }, true)
    else this.state.apply(entry)
  }

  /** Durable when it returns. */
  append(kind: string, body: Record<string, unknown>): Entry { return this.appendAll([{ kind, body }])[0]! }

  /** Several entries, one disk flush; all or none. What waited goes first, and the peers' newest heads along, under the same flush. */
  appendAll(entries: readonly { kind: string; body: Record<string, unknown> }[]): Entry[] {
    const waiting = this.#waiting
    let kept = (): void => {}
    const appended = this.record.appendAll([...waiting, ...entries], () => { kept = this.heads.write() })
    this.#waiting = []
    kept()
    for (const entry of appended) this.#apply(entry)
    return appended.slice(waiting.length)
  }

  /**
   * For what may be lost in a crash because it can be made again (a finished signature of a step that is on record):
   * it shares the next entry's disk flush, or gets its own in a moment. Until then it is not part of the record.
   */
  appendSoon(kind: string, body: Record<string, unknown>): void {
    this.#waiting.push({ kind, body })
    this.#arm()
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => {
      try {
        this.flush()
      } catch {
        // A full disk, say: the next step will tell its caller; this waits on.
        this.#arm()
      }
    }, FLUSH_MS)
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#waiting.length > 0) this.appendAll([])
  }

  /** Writes the peers' newest heads down where they changed, with what waits. On an idle machine nothing changes. */
  saveHeads(): void {
    if (this.heads.isBehind) this.appendAll([])
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

  hasShare(keyId: string, epoch: number): boolean {
    return this.#database.prepare('SELECT 1 FROM share WHERE key_id = ? AND epoch = ?').get(keyId, epoch) !== undefined
  }

  deleteShare(keyId: string, epoch: number): void {
    this.#database.prepare('DELETE FROM share WHERE key_id = ? AND epoch = ?').run(keyId, epoch)
  }

  saveClock(): void { this.record.saveClock() }
  close(): void {
    this.flush()
    this.saveHeads()
    this.record.close()
  }
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
