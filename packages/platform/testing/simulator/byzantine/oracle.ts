import type { Chain } from './chain.ts'
import type { HonestNode } from './honest-node.ts'
import type { Platform } from './platform.ts'
import type { Known, Signatures } from './signatures.ts'

/** What went wrong, by the guarantee that it breaks. */
export type Guarantee = 'safety' | 'liveness' | 'growth' | 'error'
export interface Problem {
  guarantee: Guarantee
  text: string
  /** Events until it was found. */
  events: number
}

/** Entries of an honest node's record that an order of the platform may cause. */
const ENTRIES_PER_ORDER = 8
/** Further entries of the record, at the start and per minute: heads, nonces, what a peer may cause. */
const ENTRIES_FREE = 40
const ENTRIES_PER_MINUTE = 2
/** Bytes of an entry, on average. */
const BYTES_PER_ENTRY = 4000

interface Parts {
  signatures: Signatures
  chain: Chain
  platform: Platform
  honest: readonly HonestNode[]
  /** With a hostile platform, each honest node may sign one transaction of a payment. */
  isPlatformHostile: boolean
}

/**
 * Checks what anybody could observe: which transactions are signed or can be finished, the states of
 * transfers, and the size of the honest nodes' records. It knows nothing of the nodes' rules.
 */
export class Oracle {
  readonly problems: Problem[] = []
  readonly #parts: Parts
  readonly #found = new Set<string>()
  readonly #events: () => number

  constructor(parts: Parts, events: () => number) {
    this.#parts = parts
    this.#events = events
  }

  find(guarantee: Guarantee, text: string): void {
    if (this.#found.has(text)) return
    this.#found.add(text)
    this.problems.push({ guarantee, text, events: this.#events() })
  }

  /** Checks that no two transactions of one payment can both confirm. */
  checkSafety(): void {
    const { signatures, platform } = this.#parts
    const byStep = Map.groupBy(signatures.signed, ({ step }) => step)
    for (const [step, list] of byStep)
      for (const [at, one] of list.entries())
        for (const two of list.slice(at + 1)) this.#checkPair(step, one, two)
    if (this.#parts.isPlatformHostile) return
    for (const transfer of platform.transfers) {
      if (transfer.state !== 'FAILED' && transfer.state !== 'CANCELLED') continue
      const isCancellation = (known: Known): boolean =>
        transfer.attempts.some((each) => each.isCancellation && each.unsigned === known.unsigned)
      const live = (byStep.get(transfer.name) ?? []).filter(
        (known) => this.#parts.chain.mayConfirm(known) && !isCancellation(known),
      )
      if (live.length > 0)
        this.find('safety', `${transfer.name} is ${transfer.state}, and can still confirm`)
    }
  }

  #checkPair(step: string, one: Known, two: Known): void {
    const { chain, honest, isPlatformHostile } = this.#parts
    if (!chain.canBothConfirm(one, two)) return
    if (isPlatformHostile) {
      const both = honest.filter(({ node }) => one.signers.has(node) && two.signers.has(node))
      for (const { name } of both)
        this.find('safety', `${name} signed two transactions of ${step} that can both confirm`)
      return
    }
    this.find('safety', `two transactions of ${step} can both confirm`)
  }

  /** Checks at the end that everything that was ordered has ended. */
  checkLiveness(): void {
    const { platform } = this.#parts
    for (const { name, state, reason, lastError } of platform.transfers) {
      if (state === 'FAILED') this.find('liveness', `${name} failed without a cause: ${reason}`)
      else if (state !== 'CONFIRMED' && state !== 'CANCELLED')
        this.find('liveness', `${name} does not end: ${state}, ${lastError}`)
    }
    for (const { name, isSigned, lastError } of platform.sweeps)
      if (!isSigned) this.find('liveness', `${name} is not signed: ${lastError}`)
  }

  /** Checks the records of the honest nodes. @param minutes of simulated time */
  checkGrowth(minutes: number): void {
    const { honest, platform } = this.#parts
    const most = ENTRIES_FREE + ENTRIES_PER_ORDER * platform.orders + ENTRIES_PER_MINUTE * minutes
    for (const node of honest) {
      if (!node.process) continue
      const { store } = node
      const { height } = store.record
      if (height > most)
        this.find(
          'growth',
          `the record of ${node.name} has ${height} entries, and ${platform.orders} orders explain ${Math.ceil(most)}`,
        )
      const { bytes } = store.record.database
        .prepare('SELECT coalesce(sum(length(body)), 0) bytes FROM record')
        .get() as { bytes: number }
      if (bytes > most * BYTES_PER_ENTRY)
        this.find('growth', `the record of ${node.name} has ${bytes} bytes`)
      const remembered = sizeOf(store.state)
      if (remembered > most * 4)
        this.find('growth', `${node.name} keeps ${remembered} elements in memory`)
    }
  }
}

/** Returns the number of elements of all maps, sets and arrays of an object. */
function sizeOf(object: object): number {
  return Object.values(object).reduce((sum: number, value: unknown) => {
    if (value instanceof Map || value instanceof Set) return sum + value.size
    return Array.isArray(value) ? sum + value.length : sum
  }, 0)
}
