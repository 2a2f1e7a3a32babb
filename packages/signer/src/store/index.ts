import type { KeyMaterial } from '@custody/threshold'
import { PeerHeads } from './heads.ts'
import { RecordError } from './entries/error.ts'
import { entryOf, type Body, type Entry, type Kind, type NewEntry } from './entries/index.ts'
import { RecordStore } from './record.ts'
import { Shares, sharesFolder } from './shares.ts'
import { State, type ImportedEntry, type StepBody } from './state.ts'

/**
 * Delay in milliseconds. If many signatures are made, one follows every few dozen milliseconds, so
 * most are written by the next step's flush.
 */
const FLUSH_MS = 100

/** Record and state together. The state can only be changed by appending an entry. */
export class Store {
  readonly record: RecordStore
  readonly state = new State()
  readonly heads: PeerHeads
  readonly shares: Shares
  #waiting: NewEntry[] = []
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  /** @param monotonic see {@link RecordStore} */
  constructor(path: string, now: () => number, monotonic: (() => number) | null = null) {
    this.record = new RecordStore(path, now, monotonic)
    this.heads = new PeerHeads(this.record.database)
    this.record.replay((entry) => {
      this.#apply(entry)
    })
    // Opened only after the record has been read to its end and is known to be complete and to
    // belong to this node.
    this.shares = new Shares(sharesFolder(path))
    this.shares.adopt(this.record.database)
    // Also completes deletions that a killed node had begun, and deletes shares whose deletion was
    // never ordered.
    this.wipeUnused()
  }

  /**
   * Deletes shares that do not sign any more: of forgotten epochs, and of failed runs at the
   * current epoch. Shares of a later epoch remain until the next refresh starts; and shares of keys
   * that are not on record remain, because this node may have certified such a key and lost the
   * last message of its generation.
   */
  wipeUnused(): void {
    const { state } = this
    this.shares.retain(({ keyId, epoch, session }) => {
      const key = state.keys.get(keyId)
      if (!key || epoch > key.epoch) return true
      const wanted = state.sessionOf(keyId, epoch)
      return wanted !== undefined && this.#isOf(session, { keyId, epoch, wanted })
    })
  }

  /**
   * Deletes shares of earlier refresh runs above the current epoch, except the prepared one; no
   * node can switch to them.
   */
  wipeUnprepared(keyId: string): void {
    const { keys, prepared } = this.state
    const epoch = keys.get(keyId)!.epoch + 1
    const wanted = prepared.get(keyId)
    this.shares.retain(
      (file) =>
        file.keyId !== keyId ||
        file.epoch < epoch ||
        (wanted?.epoch === file.epoch &&
          this.#isOf(file.session, { keyId, epoch: file.epoch, wanted: wanted.session })),
    )
  }

  /**
   * Returns whether a file belongs to a session. A file without a session is from an earlier
   * version, and is used if there is no other.
   */
  #isOf(
    session: string | null,
    { keyId, epoch, wanted }: { keyId: string; epoch: number; wanted: string | null },
  ): boolean {
    return session === wanted || (session === null && !this.shares.hasExactly(keyId, epoch, wanted))
  }

  /**
   * Returns the number of shares of keys that, as far as this node knows, are not certified by all
   * three nodes.
   */
  uncertified(): number {
    return this.shares.count(({ keyId }) => !this.state.keys.has(keyId))
  }

  /** Returns the encrypted share of an epoch that signs here. */
  shareOf(keyId: string, epoch: number): KeyMaterial | null {
    const session = this.state.sessionOf(keyId, epoch)
    return session === undefined ? null : this.shares.read(keyId, epoch, session)
  }

  #apply(entry: Entry): void {
    if (entry.kind !== 'imported') this.state.apply(entry)
    else {
      const { at, kind, body } = entry.body
      this.state.take({ height: entry.height, at, kind, body } as ImportedEntry)
    }
  }

  /** Appends one entry; durable when it returns. */
  append<K extends Kind>(kind: K, body: Body<K>): Entry<K> {
    return this.appendAll([{ kind, body } as NewEntry])[0] as Entry<K>
  }

  /**
   * Repairs the clock of the record.
   * @returns the clock's values before and after the repair, in Unix ms
   * @throws RecordError if there is nothing to repair
   */
  repairClock(): { from: number; to: number } {
    const entry = this.record.repairClock()
    this.#apply(entry)
    return entry.body
  }

  /**
   * Appends several entries by one flush, all or none. Waiting entries are written first; the
   * peers' newest heads are written too.
   */
  appendAll(entries: readonly NewEntry[]): Entry[] {
    const waiting = this.#waiting
    let stored = (): void => {}
    const appended = this.record.appendAll([...waiting, ...entries], () => {
      stored = this.heads.write()
    })
    this.#waiting = []
    stored()
    for (const entry of appended) this.#apply(entry)
    return appended.slice(waiting.length)
  }

  /**
   * Appends an entry that may be lost in a crash because it can be made again (a finished signature
   * of a recorded step). It is written by the next entry's disk flush, or shortly afterwards by its
   * own. Until then it is not part of the record.
   */
  appendSoon<K extends Kind>(kind: K, body: Body<K>): void {
    // Validated now instead of at the flush, because an invalid entry would block all later
    // entries.
    entryOf({ height: this.record.height + 1, at: 0, kind, body: JSON.stringify(body) })
    // A step that ends after the node has closed the record is lost, as in a crash.
    if (this.#isClosed) return
    this.#waiting.push({ kind, body } as NewEntry)
    this.#arm()
  }

  #arm(): void {
    this.#timer ??= setTimeout(() => {
      try {
        this.flush()
      } catch {
        // For example a full disk: the next step reports the error to its caller; this entry
        // continues to wait.
        this.#arm()
      }
    }, FLUSH_MS)
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#waiting.length > 0) this.appendAll([])
  }

  /**
   * Writes the peers' newest heads if they changed, together with waiting entries. Writes nothing
   * on an idle machine.
   */
  saveHeads(): void {
    if (this.heads.isBehind) this.appendAll([])
  }

  /** Returns the step that was recorded at a height: of this node, or copied from a peer. */
  stepBodyAt(height: number): StepBody {
    const entry = this.record.read(height)
    if (entry.kind === 'step') return entry.body
    if (entry.kind === 'imported' && entry.body.kind === 'step') return entry.body.body
    throw new RecordError(`The record's entry ${height} is not a step; its kind is "${entry.kind}"`)
  }

  clock(): number {
    return this.record.clock()
  }
  seconds(): number {
    return Math.floor(this.record.clock() / 1000)
  }

  saveClock(): void {
    this.record.saveClock()
  }
  close(): void {
    this.#isClosed = true
    this.flush()
    this.saveHeads()
    this.record.close()
  }
}
