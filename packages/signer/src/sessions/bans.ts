import { ThresholdError } from '@custody/threshold'
import type { KeyObject } from 'node:crypto'
import { sha256hex } from '../canonical.ts'
import type { Config } from '../config.ts'
import { Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import type { Store } from '../store/index.ts'
import type { Ban } from '../store/state.ts'

/**
 * Names an identity key, in lower-case hex. A ban is of a key: the node that replaces a banned one
 * has another.
 */
export const fingerprintOf = (identity: KeyObject): string =>
  sha256hex(identity.export({ type: 'spki', format: 'der' }))

/**
 * Threshold rule 7: a node that was proven to cheat is banned permanently. No other error bans.
 * Apart from that, only this node's own operator can order a ban, which has the same effects.
 *
 * Whether a check of the oblivious transfer passes can depend on one bit of a secret that a pair of
 * nodes uses in every session of an epoch. So the checks of a node are made one after the other; a
 * ban is in force from the moment of its detection, before it is on disk; and in the same tick it
 * ends every session with that node.
 */
export class Bans {
  readonly #store: Store
  readonly #log: Log
  /** Fingerprints of the peers' identity keys. */
  readonly #peers: ReadonlyMap<number, string>
  /** In force, but not yet on disk. */
  readonly #unwritten = new Map<number, Pick<Ban, 'reason' | 'cause'>>()
  readonly #ends = new Map<number, Set<() => void>>()
  /** The end of the last check that waits its turn. */
  readonly #checks = new Map<number, Promise<void>>()

  constructor({
    config,
    store,
    log,
  }: {
    config: Pick<Config, 'peerList'>
    store: Store
    log: Log
  }) {
    this.#store = store
    this.#log = log
    this.#peers = new Map(
      config.peerList.map(({ node, identity }) => [node, fingerprintOf(identity)]),
    )
    // A ban of an earlier version names a number alone: it is of the key that the number has now.
    for (const { node, reason: why, identity: known } of store.state.bans) {
      const identity = this.#peers.get(node)
      if (known === null && identity !== undefined)
        store.append('ban', { node, reason: why, identity })
    }
  }

  isBanned(node: number): boolean {
    return this.#unwritten.has(node) || this.#recorded(node) !== undefined
  }

  #recorded(node: number): Ban | undefined {
    const identity = this.#peers.get(node)
    return identity === undefined
      ? undefined
      : this.#store.state.bans.find((ban) => ban.identity === identity)
  }

  /** The bans on record of the keys that the peers have now. */
  get recorded(): Ban[] {
    return [...this.#peers.keys()].flatMap((node) => this.#recorded(node) ?? [])
  }

  /** Fingerprint of a peer's identity key. */
  identityOf(node: number): string | undefined {
    return this.#peers.get(node)
  }

  /** The peers that are banned now. */
  get nodes(): number[] {
    return [...this.#peers.keys()].filter((node) => this.isBanned(node))
  }

  /** @throws Refusal BANNED */
  assertNot(node: number): void {
    if (!this.isBanned(node)) return
    const { cause } = this.#unwritten.get(node) ?? this.#recorded(node)!
    const why = cause === 'operator' ? "was banned by this node's operator" : 'was proven to cheat'
    throw new Refusal('BANNED', `Node ${node} ${why}; it is banned permanently`, { node })
  }

  /** @throws Refusal BANNED */
  assertNone(): void {
    for (const node of this.#peers.keys()) this.assertNot(node)
  }

  /**
   * Bans the node that an error of the engine proves to have cheated; other errors change nothing.
   */
  consider(error: unknown): void {
    if (!(error instanceof ThresholdError) || error.code !== 'CHEAT' || error.counterparty === null)
      return
    const node = error.counterparty
    if (!this.#peers.has(node) || this.isBanned(node)) return
    const sessions = this.#ban(node, { reason: error.message.slice(0, 200), cause: 'cheat' })
    this.#log(
      'alert',
      'a node was proven to cheat and is banned: generate new keys and move the funds',
      { peer: node, sessions },
    )
    this.write()
  }

  /**
   * Bans a peer by the order of this node's operator. A node that is banned already stays banned as
   * it was.
   * @throws Refusal BAD_ORDER where the node is not a peer; INTERNAL where the ban is in force
   *   but not on disk
   */
  order(node: number, why: string): Ban {
    if (!this.#peers.has(node))
      throw new Refusal(
        'BAD_ORDER',
        `node: must be a peer, ${[...this.#peers.keys()].join(' or ')}`,
      )
    if (!this.isBanned(node)) {
      const sessions = this.#ban(node, { reason: why, cause: 'operator' })
      this.#log(
        'alert',
        'a node is banned by the order of the operator: generate new keys and move the funds',
        { peer: node, sessions },
      )
    }
    this.write()
    const written = this.#recorded(node)
    if (!written)
      throw new Refusal(
        'INTERNAL',
        `Node ${node} is banned, but only until this node stops: the ban could not be stored`,
      )
    return written
  }

  /** @returns how many sessions it ended */
  #ban(node: number, ban: Pick<Ban, 'reason' | 'cause'>): number {
    this.#unwritten.set(node, ban)
    const ends = [...(this.#ends.get(node) ?? [])]
    this.#ends.delete(node)
    for (const end of ends) end()
    return ends.length
  }

  /**
   * Writes down what is not on disk yet. Called again by housekeeping: a full disk does not lift a
   * ban.
   */
  write(): void {
    for (const [node, { reason: why, cause }] of this.#unwritten) {
      try {
        const ordered = cause === 'operator' ? { cause } : {}
        this.#store.append('ban', {
          node,
          reason: why,
          identity: this.#peers.get(node)!,
          ...ordered,
        })
        this.#unwritten.delete(node)
      } catch (error) {
        this.#log('alert', 'a ban could not be stored; it is in force until this node stops', {
          peer: node,
          reason: reason(error),
        })
      }
    }
  }

  /**
   * Has a ban of a node end something, in the tick of its detection. `end` must neither wait nor
   * throw.
   * @returns takes it back, where it has ended by itself
   */
  endsWith(node: number, end: () => void): () => void {
    this.assertNot(node)
    const ends = this.#ends.get(node) ?? new Set()
    this.#ends.set(node, ends.add(end))
    return () => {
      ends.delete(end)
    }
  }

  /**
   * Runs a step of the engine on what a node said, once the steps on what it said before have
   * ended: at most one check of a node is in progress, so that none is begun after the first that
   * proved a cheat. A node that cheats in many sessions at once learns what it would learn in one
   * after the other.
   * @throws Refusal BANNED; what `step` throws
   */
  async check<T>(node: number, step: () => Promise<T>): Promise<T> {
    const before = this.#checks.get(node) ?? Promise.resolve()
    const mine = before.then(() => {
      this.assertNot(node)
      return step()
    })
    this.#checks.set(
      node,
      mine.then(
        () => {},
        (error: unknown) => {
          this.consider(error)
        },
      ),
    )
    const outcome = await mine
    this.assertNot(node)
    return outcome
  }
}
