import type { KeyMaterial } from '@custody/threshold'
import { PeerHeads } from './heads.ts'
import { RecordError } from './entries/error.ts'
import { entryOf, type Body, type Entry, type Kind, type NewEntry } from './entries/index.ts'
import { RecordStore } from './record.ts'
import { Shares, sharesFolder } from './shares.ts'
import { State, type ImportedEntry, type StepBody } from './state.ts'

/**
 * Signatures come every few dozen milliseconds where many are made: most then go with the next
 * step's flush.
 */
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

  /** @param monotonic as {@link RecordStore} has it */
  constructor(path: string, now: () => number, monotonic: (() => number) | null = null) {
    this.record = new RecordStore(path, now, monotonic)
    this.heads = new PeerHeads(this.record.database)
    this.record.replay((entry) => {
      this.#apply(entry)
    })
    // Only now: the record has been read to its end, and is known to be whole and this node's own.
    this.shares = new Shares(sharesFolder(path))
    this.shares.adopt(this.record.database)
    // Also what a node that was killed had begun to forget, and what it was never told to forget.
    this.wipeUnused()
  }

  /**
   * Wipes the shares that no longer sign: of epochs that are forgotten, and what runs that came to
   * nothing left at the current one. What is above stays until the next refresh begins; and shares
   * of keys that are not on record stay, for this node may have certified one and lost the last
   * message of its making.
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
   * Wipes what earlier runs of a refresh left above the current epoch, but for the one that is
   * prepared: no node can switch to it.
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
   * Whether a file's session is the wanted one. A file without one is of an earlier version: it
   * counts where there is no other.
   */
  #isOf(
    session: string | null,
    { keyId, epoch, wanted }: { keyId: string; epoch: number; wanted: string | null },
  ): boolean {
    return session === wanted || (session === null && !this.shares.hasExactly(keyId, epoch, wanted))
  }

  /** Shares of keys that all three nodes have not certified, as far as this one knows. */
  uncertified(): number {
    return this.shares.count(({ keyId }) => !this.state.keys.has(keyId))
  }

  /** The sealed share of an epoch that signs here. */
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

  /** Durable when it returns. */
  append<K extends Kind>(kind: K, body: Body<K>): Entry<K> {
    return this.appendAll([{ kind, body } as NewEntry])[0] as Entry<K>
  }

  /**
   * @returns where the clock stood and where it goes on, in Unix ms. @throws RecordError where
   *   there is nothing to repair
   */
  repairClock(): { from: number; to: number } {
    const entry = this.record.repairClock()
    this.#apply(entry)
    return entry.body
  }

  /**
   * Several entries, one flush, all or none. What waited goes first; the peers' newest heads go
   * along.
   */
  appendAll(entries: readonly NewEntry[]): Entry[] {
    const waiting = this.#waiting
    let kept = (): void => {}
    const appended = this.record.appendAll([...waiting, ...entries], () => {
      kept = this.heads.write()
    })
    this.#waiting = []
    kept()
    for (const entry of appended) this.#apply(entry)
    return appended.slice(waiting.length)
  }

  /**
   * For what may be lost in a crash because it can be made again (a finished signature of a step
   * that is on record): it shares the next entry's disk flush, or gets its own in a moment. Until
   * then it is not part of the record.
   */
  appendSoon<K extends Kind>(kind: K, body: Body<K>): void {
    // Now, and not with the flush: what cannot be written must not wait there for ever, before all
    // that comes after it.
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

  /**
   * Writes the peers' newest heads down where they changed, with what waits. On an idle machine
   * nothing changes.
   */
  saveHeads(): void {
    if (this.heads.isBehind) this.appendAll([])
  }

  /** What entered signing at a height: here, or at a peer whose record was taken. */
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
