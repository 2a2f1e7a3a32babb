import { DatabaseSync } from 'node:sqlite'
import { sha256hex } from '../canonical.ts'
import { RecordError } from './entries/error.ts'
import { entryOf, type Entry, type Kind, type NewEntry, type Row } from './entries/index.ts'

const GENESIS = '0'.repeat(64)
const hashOf = (height: number, at: number, kind: string, body: string, previous: string): string =>
  sha256hex(JSON.stringify([height, at, kind, body, previous]))

/**
 * By so many milliseconds the host's clock may leap beyond the time that passed before it is
 * doubted. A leap that were believed would be kept for good, and requests would be refused until
 * the true time has come there.
 */
export const LEAP_MAX_MS = 300_000

const COLUMNS = 'height, at, kind, body, hash'

/**
 * The node's memory: append-only, each entry carries the hash of the one before it, and is of a
 * kind and a shape that this version knows, when it is written and when it is read. An append is
 * durable (WAL with synchronous=FULL) when it returns. Nothing updates or deletes an entry.
 */
export class RecordStore {
  readonly database: DatabaseSync
  #height = 0
  #head = GENESIS
  /** Unix milliseconds; the node's clock never reads less, over restarts too. */
  #clock = 0
  /** `#monotonic` when the clock was last believed. */
  #believedAt = 0
  #doubted: number | null = null
  readonly #insert
  readonly #now: () => number
  readonly #monotonic: (() => number) | null

  /**
   * @param monotonic milliseconds that passed, by which leaps of the clock are noticed; without
   *   it none is doubted
   */
  constructor(path: string, now: () => number, monotonic: (() => number) | null = null) {
    this.#now = now
    this.#monotonic = monotonic
    this.#believedAt = monotonic?.() ?? 0
    const database = new DatabaseSync(path)
    this.database = database
    // Exclusive: two processes on one home would fork the chain.
    database.exec(
      'PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;',
    )
    database.exec(`
      CREATE TABLE IF NOT EXISTS record (
        height INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL) STRICT;
      CREATE TRIGGER IF NOT EXISTS record_no_update BEFORE UPDATE ON record
        BEGIN SELECT RAISE(ABORT, 'the record is append-only'); END;
      CREATE TRIGGER IF NOT EXISTS record_no_delete BEFORE DELETE ON record
        BEGIN SELECT RAISE(ABORT, 'the record is append-only'); END;
      CREATE TABLE IF NOT EXISTS clock (one INTEGER PRIMARY KEY CHECK (one = 1), at INTEGER NOT NULL) STRICT;
      CREATE TABLE IF NOT EXISTS peer_head (
        node INTEGER PRIMARY KEY, generation INTEGER NOT NULL, height INTEGER NOT NULL, proof TEXT NOT NULL) STRICT;`)
    this.#insert = database.prepare(`INSERT INTO record (${COLUMNS}) VALUES (?, ?, ?, ?, ?)`)
  }

  get height(): number {
    return this.#height
  }
  get head(): string {
    return this.#head
  }

  /**
   * Milliseconds, never less than any value it gave before. It stands still while the host's clock
   * is doubted.
   */
  clock(): number {
    const now = this.#now()
    this.#doubted = now > this.#clock && this.#isLeap(now) ? now : null
    if (now > this.#clock && this.#doubted === null) this.#believe(now)
    return this.#clock
  }

  /**
   * What the host's clock says, where that is a leap ahead that nobody has confirmed; else null.
   */
  doubted(): number | null {
    this.clock()
    return this.#doubted
  }

  /** Somebody else has told that the host's clock is right. */
  confirm(): void {
    const now = this.#now()
    if (now > this.#clock) this.#believe(now)
    this.#doubted = null
  }

  #believe(now: number): void {
    this.#clock = now
    this.#believedAt = this.#monotonic?.() ?? 0
  }

  /**
   * Across restarts nobody knows how much time passed, so there a host that was off for long is
   * doubted as well.
   */
  #isLeap(now: number): boolean {
    if (!this.#monotonic || this.#clock === 0) return false
    return now - this.#clock - Math.max(0, this.#monotonic() - this.#believedAt) > LEAP_MAX_MS
  }

  /** Keeps the high-water mark of the clock while nothing else is written. */
  saveClock(): void {
    const upsert =
      'INSERT INTO clock (one, at) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET at = max(at, excluded.at)'
    this.database.prepare(upsert).run(this.clock())
  }

  /**
   * Walks the whole chain, verifying each hash and each shape; hands every entry to `each`. Throws
   * at the first break.
   */
  replay(each: (entry: Entry) => void): void {
    const mark = this.database.prepare('SELECT at FROM clock WHERE one = 1').get() as
      | { at: number }
      | undefined
    const rows = this.database
      .prepare(`SELECT ${COLUMNS} FROM record ORDER BY height`)
      .iterate() as Iterable<unknown> as Iterable<Row>
    for (const row of rows) {
      const { height, at, kind, body, hash } = row
      if (height !== this.#height + 1)
        throw new RecordError(`The record is broken: entry ${this.#height + 1} is missing`)
      if (hashOf(height, at, kind, body, this.#head) !== hash) {
        throw new RecordError(`The record is broken: entry ${height} does not match its hash`)
      }
      this.#height = height
      this.#head = hash
      const entry = entryOf(row)
      if (at > this.#clock) this.#clock = at
      // The operator's repair: from here on time goes on from there.
      if (entry.kind === 'clock') this.#clock = entry.body.to
      each(entry)
    }
    if (mark && mark.at > this.#clock) this.#clock = mark.at
  }

  /** @throws RecordError before anything is written, where the entry could not be read again */
  append({ kind, body }: NewEntry): Entry {
    const height = this.#height + 1
    const at = this.clock()
    const text = JSON.stringify(body)
    const entry = entryOf({ height, at, kind, body: text })
    const hash = hashOf(height, at, kind, text, this.#head)
    this.#insert.run(height, at, kind, text, hash)
    this.#height = height
    this.#head = hash
    return entry
  }

  /**
   * Several entries under one disk flush; all or none. @param beside what is written beside the
   * record with them
   */
  appendAll(entries: readonly NewEntry[], beside: () => void = () => {}): Entry[] {
    const [height, head] = [this.#height, this.#head]
    this.database.exec('BEGIN IMMEDIATE')
    try {
      const appended = entries.map((entry) => this.append(entry))
      beside()
      this.database.exec('COMMIT')
      return appended
    } catch (error) {
      this.#height = height
      this.#head = head
      if (this.database.isTransaction) this.database.exec('ROLLBACK')
      throw error
    }
  }

  /**
   * Sets the clock back to the host's, whatever it was told before, and writes that down.
   * @throws RecordError where the clock is not ahead of the host's
   */
  repairClock(): Entry<'clock'> {
    const [from, to] = [this.clock(), this.#now()]
    if (to >= from)
      throw new RecordError(
        "The clock of this record is not ahead of the host's: no repair is required",
      )
    const [entry] = this.appendAll([{ kind: 'clock', body: { from, to } }], () => {
      this.database.prepare('UPDATE clock SET at = ? WHERE one = 1').run(to)
    })
    this.#believe(to)
    return entry as Entry<'clock'>
  }

  hashAt(height: number): string | null {
    if (height === 0) return GENESIS
    const row = this.database.prepare('SELECT hash FROM record WHERE height = ?').get(height) as
      | { hash: string }
      | undefined
    return row?.hash ?? null
  }

  read(height: number): Entry {
    const row = this.database
      .prepare(`SELECT ${COLUMNS} FROM record WHERE height = ?`)
      .get(height) as Row | undefined
    const previous = this.hashAt(height - 1)
    if (
      !row ||
      previous === null ||
      hashOf(row.height, row.at, row.kind, row.body, previous) !== row.hash
    ) {
      throw new RecordError(`The record is broken at entry ${height}`)
    }
    return entryOf(row)
  }

  /** An entry that the state says is of a kind. */
  readAs<K extends Kind>(height: number, kind: K): Entry<K> {
    const entry = this.read(height)
    if (entry.kind !== kind)
      throw new RecordError(
        `The record's entry ${height} has the kind "${entry.kind}", not "${kind}"`,
      )
    return entry as Entry<K>
  }

  /** A page of raw rows for a peer that rebuilds its memory. */
  page(from: number, limit: number): Row[] {
    return this.database
      .prepare(`SELECT ${COLUMNS} FROM record WHERE height >= ? ORDER BY height LIMIT ?`)
      .all(from, limit) as never
  }

  static readonly genesis = GENESIS
  static readonly hashOf = hashOf

  close(): void {
    this.database.close()
  }
}
