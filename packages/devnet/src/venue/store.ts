import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { Journal } from '../journal.ts'

interface Big {
  $n: string
}
const isBig = (value: unknown): value is Big =>
  typeof value === 'object' && value !== null && Object.keys(value).join() === '$n'

const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, each: unknown) =>
      typeof each === 'bigint' ? { $n: String(each) } : each,
    ),
  ) as unknown
const revived = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_, each: unknown) =>
    isBig(each) ? BigInt(each.$n) : each,
  ) as unknown

/**
 * State of a venue in an append-only file: one record for each operation with all its changes, so
 * that an operation is stored completely or not at all.
 */
export class Store<Entry extends object> {
  readonly #journal: Journal<unknown>

  private constructor(journal: Journal<unknown>) {
    this.#journal = journal
  }

  static open<Entry extends object>(path: string): { store: Store<Entry>; entries: Entry[] } {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const { journal, records } = Journal.open<unknown>(path)
    return {
      store: new Store<Entry>(journal),
      entries: records.map((record) => revived(record) as Entry),
    }
  }

  append(entry: Entry): void {
    this.#journal.append([plain(entry)])
  }

  close(): void {
    this.#journal.close()
  }
}
