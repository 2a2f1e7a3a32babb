import { Refusal } from '../errors.ts'
import type { Log } from '../log.ts'
import type { Store } from '../store/index.ts'
import type { Position } from './positions.ts'

/**
 * Time for which a peer may claim a position without the items that prove it, in milliseconds. It is
 * also the time between two reads of a peer whose position is ignored.
 */
const PROOF_MS = 60_000

/**
 * Maximum number of a peer's statements with wrong signatures in a minute; then it is not read until
 * the minute ends. An honest peer sends none, because it has verified each one. A page more can come.
 */
const FORGED_MAX = 50
const FORGED_PERIOD_MS = 60_000

interface Claim {
  readonly position: Position
  /** Elapsed milliseconds at which the peer's own answer first contradicted it. */
  readonly since: number
}

interface Parts {
  store: Store
  peers: { readonly nodes: readonly number[] }
  monotonic: () => number
  log: Log
}

/**
 * Decides whose policies this node must have read before it signs. A peer's position alone proves
 * nothing: if the peer's own answers do not contain what it claims, the claim is ignored after a
 * minute. A peer that does not answer is never ignored, because another than the peer can cause that.
 */
export class Freshness {
  readonly #parts: Parts
  /** Positions that a peer has claimed and not proven, by peer. */
  readonly #claims = new Map<number, Claim>()
  /** Elapsed milliseconds of the last read of a peer whose position is ignored. */
  readonly #triedAt = new Map<number, number>()
  /** Peers that have proven their position since this node was started. */
  readonly #proven = new Set<number>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Notes that this node has read all items of a peer. */
  noteRead(node: number): void {
    const { store } = this.#parts
    this.#claims.delete(node)
    this.#proven.add(node)
    if (store.state.policyReading.isAwaited(node)) store.append('policy-heard', { node })
  }

  /** Notes that the answers of a peer do not contain what it claims. */
  noteUnproven(node: number, position: Position): void {
    const claim = this.#claims.get(node)
    this.#proven.delete(node)
    if (claim?.position.generation !== position.generation)
      this.#claims.set(node, { position, since: this.#parts.monotonic() })
    this.#settle()
  }

  /**
   * Returns whether a peer's position is not worth a read now, because this node ignores it and has
   * tried less than a minute ago.
   */
  isIgnored(node: number, { generation }: Position): boolean {
    const { store, monotonic } = this.#parts
    if (!store.state.policyReading.isIgnored(node, generation)) return false
    const now = monotonic()
    if (now - (this.#triedAt.get(node) ?? -Infinity) < PROOF_MS) return true
    this.#triedAt.set(node, now)
    return false
  }

  /** Peers whose policies a restored node must read before it signs. */
  awaited(): number[] {
    this.#settle()
    const { store, peers } = this.#parts
    const { policyReading: reading } = store.state
    return peers.nodes.filter((node) => reading.isAwaited(node) && !reading.hasUnproven(node))
  }

  /** Peers that have claimed a position without proof, and have not proven one since. */
  unproven(): number[] {
    this.#settle()
    const { store, peers } = this.#parts
    return peers.nodes.filter(
      (node) => store.state.policyReading.hasUnproven(node) && !this.#proven.has(node),
    )
  }

  /** Records the claims that were not proven within a minute. */
  #settle(): void {
    const { store, monotonic, log } = this.#parts
    for (const [node, { position, since }] of this.#claims) {
      if (monotonic() - since < PROOF_MS) continue
      this.#claims.delete(node)
      const { policyReading: reading } = store.state
      if (reading.isIgnored(node, position.generation)) continue
      store.append('policy-unproven', { node, ...position })
      log('alert', 'a peer claims policies that it does not send, and its claim is ignored', {
        peer: node,
        ...position,
      })
    }
  }
}

/** Counts a peer's statements with wrong signatures. */
export class Forgeries {
  readonly #node: number
  readonly #monotonic: () => number
  #count = 0
  /** Elapsed milliseconds from which they count. */
  #since: number

  constructor(node: number, monotonic: () => number) {
    this.#node = node
    this.#monotonic = monotonic
    this.#since = monotonic()
  }

  note(): void {
    this.#count++
  }

  /** @throws Refusal `TOO_BUSY` */
  assertFew(): void {
    const now = this.#monotonic()
    if (now - this.#since >= FORGED_PERIOD_MS) [this.#count, this.#since] = [0, now]
    if (this.#count > FORGED_MAX)
      throw new Refusal(
        'TOO_BUSY',
        `Node ${this.#node} has sent ${this.#count} statements with wrong signatures; it is read again after a minute`,
      )
  }
}
