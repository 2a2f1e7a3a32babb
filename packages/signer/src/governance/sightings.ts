import { documentHash, readDocument, readSigned, statementHash } from '@custody/policy'
import type { Item } from './items.ts'

/** Maximum number of changes and ends of stops whose sightings are stored in memory. */
const NAMES_MAX = 10_000

/**
 * Times at which peers first received changes and ends of stops, in Unix seconds. The effect of such
 * an item depends on both peers.
 */
export class Sightings {
  /** Times by the name of the item and by node. */
  readonly #times = new Map<string, Map<number, number>>()

  /** Stores when a peer received an item; the earliest time counts. */
  add(node: number, item: Item, seen_at_s: number): void {
    const name = nameOf(item)
    if (name === null) return
    const times = this.#times.get(name) ?? new Map<number, number>()
    if (this.#times.size < NAMES_MAX) this.#times.set(name, times)
    times.set(node, Math.min(times.get(node) ?? Infinity, seen_at_s))
  }

  /** Returns the times at which both peers received an item; null if one of them has not sent it. */
  byBoth(item: Item): [number, number] | null {
    const [one, two] = [...(this.#times.get(nameOf(item) ?? '')?.values() ?? [])]
    return one === undefined || two === undefined ? null : [one, two]
  }

  /**
   * Returns the times at which peers received a change.
   * @param hash of the document
   */
  ofChange(workspace: string, hash: string): number[] {
    return [...(this.#times.get(changeName(workspace, hash))?.values() ?? [])]
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
  return null
}
