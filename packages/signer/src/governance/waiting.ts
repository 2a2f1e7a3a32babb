import { createHash } from 'node:crypto'
import { PolicyError, readDocument, readSigned, type PolicyErrorCode } from '@custody/policy'
import { Refusal } from '../errors.ts'
import type { Sent } from './item-pages.ts'
import { sizeOfItem, type Item, type ItemOf } from './items.ts'

/** Maximum number of a peer's items that depend on others, and their size in characters. */
const WAITING_MAX = 10_000
const WAITING_CHARACTERS = 64 * 1024 * 1024
/** Maximum number of changes with the same number of a document. An honest peer sends a few. */
const CHANGES_MAX = 4
/** Maximum number of items that were judged and do not wait, and that are recognized. */
const JUDGED_MAX = 10_000
/** Reasons for which an item can never be accepted. The document in force was checked before. */
const FINAL: ReadonlySet<PolicyErrorCode> = new Set<PolicyErrorCode>([
  'FORMAT',
  'LINT',
  'OTHER_STATEMENT',
  'OTHER_WORKSPACE',
  'POSSESSION',
  'SIGNATURE',
  'UNKNOWN_KEY',
  'UNKNOWN_PERSON',
])
/**
 * Those of them that can end with the next document, for a statement that names no document: the
 * person, or the key, is new in the next one.
 */
const UNKNOWN: ReadonlySet<PolicyErrorCode> = new Set<PolicyErrorCode>([
  'UNKNOWN_KEY',
  'UNKNOWN_PERSON',
])
/** Reasons that end by time alone: a time in the statement is too far in the future. */
const TIMED: ReadonlySet<PolicyErrorCode> = new Set<PolicyErrorCode>(['NOT_YET', 'SHAPE'])

/** What the judgement of an item depends on. */
export interface Facts {
  /** Changes whenever the judgement can be another one. */
  readonly state: string
  /** Changes as time passes, a few times in an hour. */
  readonly period: number
  /** Number of the document in force in the item's workspace; 0 if there is none. */
  readonly number: number
}

/** `recorded`: the item changed something. `known`: it changes nothing. */
export type Judgement = 'recorded' | 'known' | PolicyError | Refusal

interface Waiting {
  readonly sent: Sent
  readonly size: number
  /** Workspace and number of the document of a change that the peer holds; null: another item. */
  readonly name: string | null
  /** Facts for which the item was judged; null: it was not judged yet. */
  judgedFor: string | null
}

/**
 * Items of a peer that were refused, and that may be accepted after others. Each item is stored once,
 * and judged again only if the judgement can be another one, because a hostile peer could otherwise
 * occupy the node with many items, or with one that it sends repeatedly.
 */
export class WaitingItems {
  readonly #items = new Map<string, Waiting>()
  #size = 0
  /** Facts for which items were judged that do not wait; null: the refusal is final. */
  readonly #judged = new Map<string, string | null>()
  /** Keys of the changes, by workspace and number of the document. */
  readonly #changes = new Map<string, string[]>()

  /**
   * Adds an item, unless it is known.
   * @returns false if there is no room for it
   */
  add(sent: Sent): boolean {
    const { item, is_held } = sent
    const key = createHash('sha256')
      .update(JSON.stringify([item, is_held]))
      .digest('base64')
    if (this.#items.has(key) || this.#judged.get(key) === null) return true
    const size = sizeOfItem(item)
    if (this.#items.size >= WAITING_MAX || this.#size + size > WAITING_CHARACTERS) return false
    const name = item.kind === 'change' && is_held ? changeName(item) : null
    if (name !== null) this.#limitChanges(name, key)
    this.#items.set(key, { sent, size, name, judgedFor: this.#judged.get(key) ?? null })
    this.#size += size
    return true
  }

  /**
   * Judges the items whose judgement can be another one than before.
   * @returns whether one was recorded
   */
  judge(factsOf: (item: Item) => Facts, judge: (sent: Sent) => Judgement): boolean {
    let isProgress = false
    for (const [key, waiting] of this.#items) {
      const { item } = waiting.sent
      const facts = factsOf(item)
      if (waiting.judgedFor === facts.state || waiting.judgedFor === timed(facts)) {
        if (this.#judged.has(key)) this.#delete(key, waiting)
        continue
      }
      const result = judge(waiting.sent)
      if (result === 'recorded') isProgress = true
      if (result === 'recorded' || result === 'known') this.#end(key, waiting, factsOf(item).state)
      else if (isFinal(item, result, facts)) this.#end(key, waiting, null)
      else
        waiting.judgedFor =
          result instanceof PolicyError && TIMED.has(result.code) ? timed(facts) : facts.state
    }
    return isProgress
  }

  /** Removes an item and remembers that it was judged. */
  #end(key: string, waiting: Waiting, judgedFor: string | null): void {
    this.#delete(key, waiting)
    this.#judged.delete(key)
    this.#judged.set(key, judgedFor)
    if (this.#judged.size > JUDGED_MAX) this.#judged.delete(this.#judged.keys().next().value!)
  }

  #delete(key: string, { size, name }: Waiting): void {
    if (!this.#items.delete(key)) return
    this.#size -= size
    if (name === null) return
    const others = (this.#changes.get(name) ?? []).filter((each) => each !== key)
    if (others.length > 0) this.#changes.set(name, others)
    else this.#changes.delete(name)
  }

  /** Notes a change, and refuses the oldest one with the same number if there are too many. */
  #limitChanges(name: string, key: string): void {
    const keys = [...(this.#changes.get(name) ?? []), key]
    this.#changes.set(name, keys)
    const [oldest] = keys
    if (keys.length > CHANGES_MAX) this.#end(oldest!, this.#items.get(oldest!)!, null)
  }
}

const timed = ({ state, period }: Facts): string => `${state} ${period}`

/** Returns workspace and number of a change's document, which is judged later. */
const changeName = ({ workspace, document }: ItemOf<'change'>): string =>
  JSON.stringify([workspace, numberOf(() => readDocument(document).number)])

/** Returns whether an item can never be accepted by this node. */
function isFinal(item: Item, refusal: PolicyError | Refusal, { number }: Facts): boolean {
  if (!(refusal instanceof PolicyError) || item.kind === 'first') return false
  // An item of an earlier document is final. The number of the document in force only increases.
  const of = precedingNumber(item)
  const isOfNoDocument = item.kind === 'statement' && of === null
  if (FINAL.has(refusal.code)) return !(isOfNoDocument && UNKNOWN.has(refusal.code))
  return of !== null && of < number
}

/** Returns the number of the document under which an item was signed; null if it has none. */
function precedingNumber(item: Item): number | null {
  const signed = (text: string): number | null =>
    numberOf(() => {
      const { statement } = readSigned(text)
      return 'policy' in statement ? statement.policy.number : null
    })
  switch (item.kind) {
    case 'change':
    case 'reset':
      return numberOf(() => readDocument(item.document).number - 1)
    case 'statement':
      return signed(item.signed)
    case 'resumed':
      return item.approvals[0] === undefined ? null : signed(item.approvals[0])
    default:
      return null
  }
}

function numberOf(read: () => number | null): number | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof PolicyError) return null
    throw error
  }
}
