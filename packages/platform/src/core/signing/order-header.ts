import { createPrivateKey, randomBytes, type KeyObject } from 'node:crypto'
import { nodesHash } from '@custody/policy'
import {
  authorise,
  ORDER_HEADER,
  ORDER_LIFETIME_MS,
  orderOfCall,
  toHeader,
} from '@custody/request-auth/orders'

/** Authorises the platform's orders to the signer nodes. */
export class OrderHeaders {
  readonly #key: KeyObject
  /** Hash of the identities of the nodes. */
  readonly #nodes: string
  readonly #clock: () => number

  /**
   * @param key the platform's private TLS key in PEM
   * @param identities public identity key of each node
   * @param clock returns the current time in milliseconds since the Unix epoch
   */
  constructor(key: Buffer, identities: ReadonlyMap<number, KeyObject>, clock: () => number) {
    this.#key = createPrivateKey(key)
    this.#clock = clock
    this.#nodes = nodesHash(
      [...identities]
        .sort(([a], [b]) => a - b)
        .map(([, identity]) => identity.export({ type: 'spki', format: 'der' })),
    )
  }

  /**
   * Returns the headers of a call to a node; empty if it orders nothing.
   * @param timeoutMs of the call; the order is valid for as long, and for 60 s at most
   */
  of(node: number, path: string, body: unknown, timeoutMs: number): Record<string, string> {
    const order = orderOfCall({ nodes: this.#nodes, leader: node, path, body })
    if (order === null) return {}
    const issuedAt = this.#clock()
    const authorisation = authorise(this.#key, order, {
      id: randomBytes(16).toString('hex'),
      issued_at: issuedAt,
      expires_at: issuedAt + Math.min(timeoutMs, ORDER_LIFETIME_MS),
    })
    return { [ORDER_HEADER]: toHeader(authorisation) }
  }
}
