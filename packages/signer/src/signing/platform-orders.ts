import type { KeyObject } from 'node:crypto'
import {
  isAuthorised,
  ORDER_LIFETIME_MS,
  ORDER_SKEW_MS,
  type OrderAuthorisation,
} from '@custody/request-auth/orders'
import type { Environment } from '../environment.ts'
import { Refusal } from '../errors.ts'
import type { Order, Verdict } from '../policy/order.ts'
import type { Store } from '../store/index.ts'

/** An authorisation with the pair of nodes that it is for. */
interface Issued {
  authorisation: OrderAuthorisation | null
  leader: number
  partner: number
}

/**
 * Checks that the platform has ordered what a peer, or the platform itself, wants to have signed. A peer
 * alone can therefore not occupy this node's record, budgets or windows.
 */
export class PlatformOrders {
  readonly #key: KeyObject
  readonly #nodes: string
  readonly #store: Store
  readonly #environment: Pick<Environment, 'now'>
  /** IDs of authorisations that a leader has used, with the end of their validity in Unix ms. */
  readonly #used = new Map<string, number>()

  /** @param o.platformKey the platform's public key. @param o.nodes hash of the three identities */
  constructor(o: {
    platformKey: KeyObject
    nodes: string
    store: Store
    environment: Pick<Environment, 'now'>
  }) {
    this.#key = o.platformKey
    this.#nodes = o.nodes
    this.#store = o.store
    this.#environment = o.environment
  }

  /**
   * Checks the authorisation of orders that one session is to sign.
   * @throws Refusal `NOT_AUTHORISED`, `ORDER_STALE`
   */
  assertAuthorised(orders: readonly Order[], { authorisation, leader, partner }: Issued): void {
    if (orders.every(({ purpose }) => purpose.kind === 'recover')) return
    const { ordered } = this.#store.state
    if (authorisation === null) {
      if (!ordered.isAuthorisationRequired) return
      throw new Refusal('NOT_AUTHORISED', "The order lacks the platform's authorisation")
    }
    const { workspace } = orders[0]!
    const order = { nodes: this.#nodes, workspace, orders, leader, partner }
    if (!isAuthorised(this.#key, order, authorisation)) {
      throw new Refusal(
        'NOT_AUTHORISED',
        "The platform's authorisation is of another order, or of another pair of nodes",
      )
    }
    this.#assertTimely(authorisation)
    if (!ordered.isAuthorisationRequired) this.#store.append('orders-authorised', {})
  }

  /** Uses an authorisation, which is valid for one session. @throws Refusal `ORDER_STALE` */
  use({ id, expires_at }: OrderAuthorisation): void {
    const now = this.#environment.now()
    for (const [used, endsAt] of this.#used) {
      if (endsAt >= now) break
      this.#used.delete(used)
    }
    if (this.#used.has(id))
      throw new Refusal('ORDER_STALE', "The platform's authorisation was used in another session")
    this.#used.set(id, expires_at + ORDER_SKEW_MS)
  }

  /**
   * Checks again, before anything is recorded, that transactions may be signed by an authorisation.
   * @throws Refusal `ORDER_STALE`, `ORDER_WITHDRAWN`
   */
  assertInForce(
    verdicts: readonly Pick<Verdict, 'unsignedHash'>[],
    authorisation: OrderAuthorisation | null,
  ): void {
    if (authorisation !== null) this.#assertTimely(authorisation)
    // Without an authorisation, a withdrawn order cannot be told from a later one.
    const issuedAt = authorisation?.issued_at ?? 0
    const { ordered } = this.#store.state
    if (verdicts.some(({ unsignedHash }) => ordered.isWithdrawn(unsignedHash, issuedAt)))
      throw new Refusal('ORDER_WITHDRAWN', 'The platform has withdrawn the order')
  }

  /** Compared with the host's clock, because the record's never goes back after a leap. */
  #assertTimely({ issued_at: issuedAt, expires_at: expiresAt }: OrderAuthorisation): void {
    const now = this.#environment.now()
    // A restored node does not know which earlier orders were withdrawn.
    const isTimely =
      issuedAt >= this.#store.state.notBefore &&
      expiresAt - issuedAt <= ORDER_LIFETIME_MS &&
      issuedAt - ORDER_SKEW_MS <= now &&
      now <= expiresAt + ORDER_SKEW_MS
    if (isTimely) return
    throw new Refusal(
      'ORDER_STALE',
      `The platform's authorisation is valid from ${isoOf(issuedAt)} to ${isoOf(expiresAt)}, and this node's clock shows ${isoOf(now)}: correct the clocks by NTP if they differ`,
      { clock: now },
    )
  }
}

const isoOf = (ms: number): string =>
  Number.isFinite(new Date(ms).getTime()) ? new Date(ms).toISOString() : String(ms)
