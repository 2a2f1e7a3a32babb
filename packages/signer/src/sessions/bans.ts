import { ThresholdError } from '@custody/threshold'
import type { KeyObject } from 'node:crypto'
import { sha256hex } from '../canonical.ts'
import type { Config } from '../config.ts'
import { Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import type { Store } from '../store/index.ts'
import type { Ban } from '../store/state.ts'

/**
 * Returns the fingerprint of an identity key, in lower-case hex. A ban applies to a key: the node
 * that replaces a banned one has another key.
 */
export const fingerprintOf = (identity: KeyObject): string =>
  sha256hex(identity.export({ type: 'spki', format: 'der' }))

/**
 * Threshold rule 7: a node that was proven to cheat is banned permanently. No other error leads to
 * a ban. Apart from that, only this node's own operator can order a ban, which has the same
 * effects.
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
  /** Bans that are in force, but not on disk yet. */
  readonly #unwritten = new Map<number, Pick<Ban, 'reason' | 'cause'>>()
  readonly #ends = new Map<number, Set<() => void>>()
  /** End of the last queued check of each node. */
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
    // A ban from an earlier version names only the node's number; it applies to the current key of
    // that number.
    for (const { node, reason: why, identity: existing } of store.state.bans) {
      const identity = this.#peers.get(node)
      if (existing === null && identity !== undefined)
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

  /** The bans on record of the peers' current keys. */
  get recorded(): Ban[] {
    return [...this.#peers.keys()].flatMap((node) => this.#recorded(node) ?? [])
  }

  /** Returns the fingerprint of a peer's identity key. */
  identityOf(node: number): string | undefined {
    return this.#peers.get(node)
  }

  /** The peers that are currently banned. */
  get nodes(): number[] {
    return [...this.#peers.keys()].filter((node) => this.isBanned(node))
  }

  /**
   * Checks that a peer is not banned.
   * @throws Refusal BANNED
   */
  assertNot(node: number): void {
    if (!this.isBanned(node)) return
    const { cause } = this.#unwritten.get(node) ?? this.#recorded(node)!
    const why = cause === 'operator' ? "was banned by this node's operator" : 'was proven to cheat'
    throw new Refusal('BANNED', `Node ${node} ${why}; it is banned permanently`, { node })
  }

  /**
   * Checks that no peer is banned.
   * @throws Refusal BANNED
   */
  assertNone(): void {
    for (const node of this.#peers.keys()) this.assertNot(node)
  }

  /**
   * Bans the node that an error of the engine proves to have cheated; other errors have no effect.
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
   * Bans a peer by the order of this node's operator. An existing ban stays unchanged.
   * @throws Refusal BAD_ORDER if the node is not a peer; INTERNAL if the ban is in force but not on
   *   disk
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

  /**
   * Puts a ban in force.
   * @returns the number of sessions that it ended
   */
  #ban(node: number, ban: Pick<Ban, 'reason' | 'cause'>): number {
    this.#unwritten.set(node, ban)
    const ends = [...(this.#ends.get(node) ?? [])]
    this.#ends.delete(node)
    for (const end of ends) end()
    return ends.length
  }

  /**
   * Writes bans that are not on disk yet. Housekeeping calls it again, because a full disk must not
   * lift a ban.
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
   * Registers a function that a ban of a node calls in the tick of its detection. `end` must
   * neither wait nor throw.
   * @returns a function that removes the registration, for a session that has ended by itself
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
   * Runs a step of the engine on a node's message, after the steps on its earlier messages have
   * ended. At most one check of a node is in progress, so no check starts after one that proved a
   * cheat. A node that cheats in many concurrent sessions learns no more than it would in
   * sequential ones.
   * @throws Refusal BANNED; and the errors of `step`
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
