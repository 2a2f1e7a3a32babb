import { documentHash, readDocument, readSigned, statementHash } from '@custody/policy'
import { enrolmentMeaning } from './enrolments.ts'
import type { Item } from './items.ts'

/** Maximum number of items of each peer whose sightings are in memory. */
const NAMES_MAX = 10_000

/**
 * Times at which peers first received changes, ends of stops and approvals of standing rules, in Unix
 * seconds. The effect of such an item depends on both peers.
 */
export class Sightings {
  /** Times by node and by the name of the item. A peer cannot displace the times of the other. */
  readonly #times = new Map<number, Map<string, number>>()
  /** Names of items, whose documents would otherwise be parsed for each comparison. */
  readonly #names = new WeakMap<Item, { name: string | null }>()

  /** Stores when a peer received an item; the earliest time counts. */
  add(node: number, item: Item, seen_at_s: number): void {
    const name = this.#nameOf(item)
    if (name === null) return
    const times = this.#times.get(node) ?? new Map<string, number>()
    this.#times.set(node, times)
    times.set(name, Math.min(times.get(name) ?? Infinity, seen_at_s))
    if (times.size > NAMES_MAX) times.delete(times.keys().next().value!)
  }

  /** Returns the times at which both peers received an item; null if one of them has not sent it. */
  byBoth(item: Item): [number, number] | null {
    const name = this.#nameOf(item)
    const [one, two] = name === null ? [] : this.#ofName(name)
    return one === undefined || two === undefined ? null : [one, two]
  }

  /**
   * Returns the times at which peers received a change.
   * @param hash of the document
   */
  ofChange(workspace: string, hash: string): number[] {
    return this.#ofName(changeName(workspace, hash))
  }

  #ofName(name: string): number[] {
    return [...this.#times.values()].flatMap((times) => times.get(name) ?? [])
  }

  #nameOf(item: Item): string | null {
    const { name } = this.#names.get(item) ?? { name: nameOf(item) }
    this.#names.set(item, { name })
    return name
  }
}

const changeName = (workspace: string, hash: string): string =>
  JSON.stringify(['change', workspace, hash])

/** Returns the name under which the sightings of an item are stored; null: they have no effect. */
function nameOf(item: Item): string | null {
  if (item.kind === 'change')
    return changeName(item.workspace, documentHash(readDocument(item.document)))
  if (item.kind === 'resumed')
    return JSON.stringify([
      'resumed',
      item.workspace,
      statementHash(readSigned(item.stop).statement),
    ])
  if (item.kind === 'approved') {
    // An enrolment is approved whichever people approved it.
    const enrolment = enrolmentMeaning(item.approvals)
    const hashes = (): string[] =>
      item.approvals.map((text) => statementHash(readSigned(text).statement)).sort()
    return JSON.stringify(['approved', item.workspace, ...(enrolment ? [enrolment] : hashes())])
  }
  return null
}
