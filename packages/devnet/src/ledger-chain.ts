import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Journal } from './journal.ts'
import { Producer } from './producer.ts'
import type { Timing } from './timing.ts'

/** Accounts with pending changes that can be committed or discarded. */
export class View<Account> {
  readonly #below: { get: (key: string) => Account | undefined }
  readonly changes = new Map<string, Account>()

  constructor(below: { get: (key: string) => Account | undefined }) {
    this.#below = below
  }

  get(key: string): Account | undefined {
    return this.changes.get(key) ?? this.#below.get(key)
  }

  set(key: string, account: Account): void {
    this.changes.set(key, account)
  }
}

/**
 * `in`: it is included in the ledger, successful or not; `later`: it may become valid; `never`: it
 * is dropped.
 */
export type Verdict = 'in' | 'later' | 'never'
export type Included<Tx, Outcome> = { tx: Tx; outcome: Outcome }
export type Ledger<Tx, Outcome> = {
  index: number
  time: number
  parent: string
  hash: string
  transactions: Included<Tx, Outcome>[]
}
export type Place<Tx, Outcome> = Included<Tx, Outcome> & {
  ledger: Ledger<Tx, Outcome>
  order: number
}

/** Rules in which chains of accounts with sequences differ. */
export interface Rules<Account, Tx extends { hash: string; raw: string }, Outcome> {
  code: string
  genesisTime: number
  genesis: () => Map<string, Account>
  /**
   * Parses a transaction.
   * @throws Error if the bytes are not a transaction
   */
  read: (raw: string) => Tx
  /** Applies a transaction. It changes the view only if the verdict is `in`. */
  apply: (
    view: View<Account>,
    tx: Tx,
    at: { index: number; time: number },
  ) => { verdict: Verdict; outcome: Outcome }
  hash: (ledger: Omit<Ledger<Tx, Outcome>, 'hash'>) => string
}

type LedgerRecord = { index: number; time: number; hash: string; raw: string[] }

/** Maximum number of seconds by which one command moves a ledger's time forward. */
export const SECONDS_MAX = 1000
const BUSY_MS = 1000
const IDLE_MS = 30_000
/** Number of ledgers that follow the last transaction at the busy pace. */
const QUIET_LEDGERS = 3

/**
 * A chain of final ledgers over accounts with sequences. Each ledger is on disk before any request
 * can read it. A start applies all transactions again and compares every hash.
 */
export class LedgerChain<Account, Tx extends { hash: string; raw: string }, Outcome> {
  readonly rules: Rules<Account, Tx, Outcome>
  readonly ledgers: Ledger<Tx, Outcome>[] = []
  readonly accounts: Map<string, Account>
  readonly places = new Map<string, Place<Tx, Outcome>>()
  readonly #timing: Timing
  #open: View<Account>
  #waiting: Tx[] = []
  readonly #journal: Journal<LedgerRecord>
  readonly #producer: Producer
  readonly #watchers = new Set<(ledger: Ledger<Tx, Outcome>) => void>()
  #quiet = 0

  private constructor(
    rules: Rules<Account, Tx, Outcome>,
    timing: Timing,
    journal: Journal<LedgerRecord>,
    records: LedgerRecord[],
  ) {
    this.#timing = timing
    this.rules = rules
    this.#journal = journal
    this.accounts = rules.genesis()
    const first = { index: 1, time: rules.genesisTime, parent: '0'.repeat(64), transactions: [] }
    this.ledgers.push({ ...first, hash: rules.hash(first) })
    for (const record of records) this.#replay(record)
    this.#open = new View(this.accounts)
    this.#producer = new Producer({
      timing,
      busyMs: BUSY_MS,
      idleMs: IDLE_MS,
      isBusy: () => this.#waiting.length > 0 || this.#quiet < QUIET_LEDGERS,
      produce: async () => void this.close(),
    })
  }

  static open<Account, Tx extends { hash: string; raw: string }, Outcome>(
    rules: Rules<Account, Tx, Outcome>,
    home: string,
    timing: Timing,
  ): LedgerChain<Account, Tx, Outcome> {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    const { journal, records } = Journal.open<LedgerRecord>(join(home, 'ledgers.journal'))
    const chain = new LedgerChain(rules, timing, journal, records)
    chain.#producer.wake()
    return chain
  }

  get head(): Ledger<Tx, Outcome> {
    return this.ledgers.at(-1)!
  }

  ledger(index: number): Ledger<Tx, Outcome> | undefined {
    return this.ledgers[index - 1]
  }

  /** Clock in Unix seconds; the ledgers may be ahead of it. */
  get seconds(): number {
    return Math.floor(this.#timing.now() / 1000)
  }

  /** Transactions that wait for a ledger. */
  get waiting(): readonly Tx[] {
    return this.#waiting
  }

  /** Accounts after the waiting transactions. */
  get open(): { get: (key: string) => Account | undefined } {
    return this.#open
  }

  stop(): void {
    this.#producer.stop()
    this.#journal.close()
  }

  /**
   * Tries a transaction after the waiting ones, and adds it to them unless it can never be
   * included.
   */
  submit(tx: Tx): { verdict: Verdict; outcome: Outcome } {
    const tried = this.rules.apply(this.#open, tx, {
      index: this.head.index + 1,
      time: this.#now(),
    })
    if (tried.verdict !== 'never') {
      this.#waiting.push(tx)
      if (tried.verdict === 'in') this.#reopen()
      this.#producer.wake()
    }
    return tried
  }

  /**
   * Closes a ledger with the waiting transactions. There is no await between its creation and its
   * journaling.
   */
  close(seconds = 0): Ledger<Tx, Outcome> {
    const { index, hash, time } = this.head
    const next = { index: index + 1, time: Math.max(time, this.#now()) + seconds, parent: hash }
    const view = new View(this.accounts)
    const transactions: Included<Tx, Outcome>[] = []
    let rest = this.#waiting
    // A transaction that waited for another one's sequence may be included after it.
    for (let before = -1; before !== transactions.length;) {
      before = transactions.length
      const later: Tx[] = []
      for (const tx of rest) {
        const { verdict, outcome } = this.rules.apply(view, tx, next)
        if (verdict === 'in') transactions.push({ tx, outcome })
        if (verdict === 'later') later.push(tx)
      }
      rest = later
    }
    const ledger = { ...next, transactions, hash: this.rules.hash({ ...next, transactions }) }
    this.#journal.append([
      {
        index: ledger.index,
        time: ledger.time,
        hash: ledger.hash,
        raw: transactions.map(({ tx }) => tx.raw),
      },
    ])
    this.#waiting = rest
    this.#connect(ledger, view)
    this.#reopen()
    this.#quiet = transactions.length > 0 ? 0 : this.#quiet + 1
    this.#producer.wake()
    for (const closed of this.#watchers) closed(ledger)
    return ledger
  }

  at(index: number): Ledger<Tx, Outcome> | undefined {
    return this.ledgers[index - 1]
  }

  /**
   * Calls back for every ledger that is closed from now on.
   * @returns a function that stops this
   */
  watch(closed: (ledger: Ledger<Tx, Outcome>) => void): () => void {
    this.#watchers.add(closed)
    return () => void this.#watchers.delete(closed)
  }

  mine(count: number, seconds = 0): Ledger<Tx, Outcome> {
    for (let made = 0; made < count; made += 1) this.close(made === 0 ? seconds : 0)
    return this.head
  }

  #reopen(): void {
    this.#open = new View(this.accounts)
    for (const tx of this.#waiting)
      this.rules.apply(this.#open, tx, { index: this.head.index + 1, time: this.#now() })
  }

  #connect(ledger: Ledger<Tx, Outcome>, view: View<Account>): void {
    for (const [key, account] of view.changes) this.accounts.set(key, account)
    this.ledgers.push(ledger)
    for (const [order, included] of ledger.transactions.entries())
      this.places.set(included.tx.hash, { ...included, ledger, order })
  }

  #replay({ index, time, hash, raw }: LedgerRecord): void {
    const view = new View(this.accounts)
    const next = { index, time, parent: this.head.hash }
    const transactions = raw.map((each) => {
      const tx = this.rules.read(each)
      return { tx, outcome: this.rules.apply(view, tx, next).outcome }
    })
    const made = this.rules.hash({ ...next, transactions })
    if (index !== this.head.index + 1 || made !== hash) {
      throw new Error(
        `${this.rules.code}: ledger ${index} was restored as ${made}, but the journal has ${hash}`,
      )
    }
    this.#connect({ ...next, transactions, hash }, view)
  }

  /** Never before the head's time, because an operator may have moved it forward. */
  #now(): number {
    return Math.max(this.head.time, this.seconds)
  }
}
