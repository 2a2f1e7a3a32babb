import { PeerHeads } from './heads.ts'
import { RecordError } from './entries/error.ts'
import { entryOf, type Body, type Entry, type Kind, type NewEntry } from './entries/index.ts'
import { RecordStore } from './record.ts'
import { Shares, sharesFolder } from './shares.ts'
import { State, type ImportedEntry, type StepBody } from './state.ts'

/** Signatures come every few dozen milliseconds where many are made: most then go with the next step's flush. */
const FLUSH_MS = 100

/** Record and state together: the only way to change the state is to append. */
export class Store {
  readonly record: RecordStore
  readonly state = new State()
  readonly heads: PeerHeads
  readonly shares: Shares
  #waiting: NewEntry[] = []
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(path: string, now: () => number) {
    this.record = new RecordStore(path, now)
    this.heads = new PeerHeads(this.record.database)
    const forgotten: { key_id: string; epoch: number }[] = []
    this.record.replay((entry) => {
      this.#apply(entry)
      if (entry.kind === 'forgotten') forgotten.push(entry.body)
    })
    // Only now: the record has been read to its end, and is known to be whole and this node's own.
    this.shares = new Shares(sharesFolder(path))
    this.shares.adopt(this.record.database)
    // A node that was killed between the entry and the file ends here what it had begun.
    for (const { key_id: keyId, epoch } of forgotten) this.shares.delete(keyId, epoch)
  }

  #apply(entry: Entry): void {
    if (entry.kind !== 'imported') this.state.apply(entry)
    else {
      const { at, kind, body } = entry.body
      this.state.take({ height: entry.height, at, kind, body } as ImportedEntry)
    }
  }

  /** Durable when it returns. */
  append<K extends Kind>(kind: K, body: Body<K>): Entry<K> { return this.appendAll([{ kind, body } as NewEntry])[0] as Entry<K> }

  /** Several entries, one flush, all or none. What waited goes first; the peers' newest heads go along. */
  appendAll(entries: readonly NewEntry[]): Entry[] {
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
  appendSoon<K extends Kind>(kind: K, body: Body<K>): void {
    // Now, and not with the flush: what cannot be written must not wait there for ever, before all that comes after it.
    entryOf({ height: this.record.height + 1, at: 0, kind, body: JSON.stringify(body) })
    // A step that ends after the node has: lost, as in a crash.
    if (this.#isClosed) return
    this.#waiting.push({ kind, body } as NewEntry)
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

  /** What entered signing at a height: here, or at a peer whose record was taken. */
  stepBodyAt(height: number): StepBody {
    const entry = this.record.read(height)
    if (entry.kind === 'step') return entry.body
    if (entry.kind === 'imported' && entry.body.kind === 'step') return entry.body.body
    throw new RecordError(`The record's entry ${height} is no step, but of the kind "${entry.kind}"`)
  }

  clock(): number { return this.record.clock() }
  seconds(): number { return Math.floor(this.record.clock() / 1000) }

  saveClock(): void { this.record.saveClock() }
  close(): void {
    this.#isClosed = true
    this.flush()
    this.saveHeads()
    this.record.close()
  }
}
