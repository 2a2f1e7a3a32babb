/**
 * A node's signed statement that it will sign no further transaction for a request (`rule` null) or
 * for one forward of a rule.
 */
export interface Void {
  record: {
    node: number
    intent: string
    transaction_id: string
    rule: string | null
    height: number
    voided_at: number
    /** Hashes of the signed transactions that the node knows for it, without fuel and loans. */
    signed: string[]
    /** Number of transactions that entered signing and whose outcome the node does not know. */
    unfinished: number
  }
  /** Ed25519 signature of the node, hex. */
  signature: string
}

/**
 * What the caller knows of a transfer independently: the nonce of their own request, the id that
 * this client computed from it (`onSigned`), or their forward rule that created it.
 */
export type OwnRequest = { apiKey?: string; nonce: string } | { id: string } | { rule: string }

/** Result of checking whether a failed transaction was provably not paid. */
export interface FailureProof {
  /**
   * Two pinned nodes signed that nothing was and nothing will be signed for the transfer, so the
   * amount can be paid another way. If the nodes are three, this holds although one is hostile.
   */
  proven: boolean
  /** Nodes whose statements are valid. */
  nodes: number[]
  /**
   * Hashes of transactions that may have paid, according to the nodes' records. Look them up on the
   * chain.
   */
  signed: string[]
  /** Reason why the failure is not proven; null if it is. */
  reason: string | null
}
