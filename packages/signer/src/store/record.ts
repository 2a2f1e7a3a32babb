import { DatabaseSync } from 'node:sqlite'
import { sha256hex } from '../canonical.ts'
import { RecordError } from './entries/error.ts'
import { entryOf, type Entry, type Kind, type NewEntry, type Row } from './entries/index.ts'

const GENESIS = '0'.repeat(64)
const hashOf = (height: number, at: number, kind: string, body: string, previous: string): string =>
  sha256hex(JSON.stringify([height, at, kind, body, previous]))

/**
 * Maximum number of milliseconds by which the host's clock may advance more than the elapsed time
 * before it is doubted. A wrong time would be stored permanently, and requests would be rejected
 * until the real time has reached it.
 */
export const LEAP_MAX_MS = 300_000

const COLUMNS = 'height, at, kind, body, hash'

/**
 * The node's record: append-only; each entry contains the hash of the previous one, and its kind
 * and schema are validated when it is written and when it is read. An append is durable (WAL with
 * synchronous=FULL) when it returns. Entries are never updated or deleted.
 */
export class RecordStore {
  readonly database: DatabaseSync
  #height = 0
  #head = GENESIS
  /** Unix milliseconds; the node's clock never decreases, also across restarts. */
  #clock = 0
  /** Value of `#monotonic` when the clock was last trusted. */
  #believedAt = 0
  #doubted: number | null = null
  readonly #insert
  readonly #now: () => number
  readonly #monotonic: (() => number) | null

  /**
   * @param monotonic elapsed milliseconds, by which leaps of the clock are detected; without it the
   *   clock is never doubted
   */
  constructor(path: string, now: () => number, monotonic: (() => number) | null = null) {
    this.#now = now
    this.#monotonic = monotonic
    this.#believedAt = monotonic?.() ?? 0
    const database = new DatabaseSync(path)
    this.database = database
    // Exclusive lock, because two processes with one data folder would fork the chain.
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
   * Returns milliseconds, never less than an earlier result. Constant while the host's clock is
   * doubted.
   */
  clock(): number {
    const now = this.#now()
    this.#doubted = now > this.#clock && this.#isLeap(now) ? now : null
    if (now > this.#clock && this.#doubted === null) this.#believe(now)
    return this.#clock
  }

  /** Returns the time of the host's clock if it is an unconfirmed leap ahead; otherwise null. */
  doubted(): number | null {
    this.clock()
    return this.#doubted
  }

  /** Trusts the host's clock, because another host has confirmed it. */
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
   * The elapsed time is unknown across restarts, so the clock of a host that was off for long is
   * doubted too.
   */
  #isLeap(now: number): boolean {
    if (!this.#monotonic || this.#clock === 0) return false
    return now - this.#clock - Math.max(0, this.#monotonic() - this.#believedAt) > LEAP_MAX_MS
  }

  /** Stores the clock's high-water mark while no entries are written. */
  saveClock(): void {
    const upsert = `INSERT INTO clock (one, at) VALUES (1, ?) ON CONFLICT (one) DO UPDATE
        SET at = max(at, excluded.at)`
    this.database.prepare(upsert).run(this.clock())
  }

  /**
   * Reads the whole chain, verifies each hash and each schema, and passes every entry to `each`.
   * Throws at the first error.
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
      // The operator's repair sets the clock from here on.
      if (entry.kind === 'clock') this.#clock = entry.body.to
      each(entry)
    }
    if (mark && mark.at > this.#clock) this.#clock = mark.at
  }

  /**
   * Appends one entry.
   * @throws RecordError before anything is written, if the entry could not be read again
   */
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
   * Appends several entries by one disk flush; all or none.
   * @param beside writes further data in the same database transaction
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
   * Sets the clock back to the host's, whatever its value, and records this.
   * @throws RecordError if the clock is not ahead of the host's
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

  /** Returns an entry, which must be of the given kind. */
  readAs<K extends Kind>(height: number, kind: K): Entry<K> {
    const entry = this.read(height)
    if (entry.kind !== kind)
      throw new RecordError(
        `The record's entry ${height} has the kind "${entry.kind}", not "${kind}"`,
      )
    return entry as Entry<K>
  }

  /** Returns a page of raw rows for a peer that rebuilds its record. */
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
