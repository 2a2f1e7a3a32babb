/**
 * A node's signed statement that it will sign nothing more for a request (`rule` null) or for one
 * forward of a rule.
 */
export interface Void {
  record: {
    node: number
    intent: string
    transaction_id: string
    rule: string | null
    height: number
    voided_at: number
    /** Hashes of what the node knows to be signed for it, without fuel and loans. */
    signed: string[]
    /** Transactions that entered signing, outcome unknown to the node. */
    unfinished: number
  }
  signature: string
}

/**
 * What the caller knows of a transfer by himself: the nonce of his own request, the id that this
 * client computed from it (`onSigned`), or the rule of his that made it.
 */
export type OwnRequest = { apiKey?: string; nonce: string } | { id: string } | { rule: string }

export interface FailureProof {
  /**
   * Two pinned nodes signed that nothing was signed for it and nothing will be: the amount may be
   * paid another way.
   */
  proven: boolean
  /** Nodes whose voids hold. */
  nodes: number[]
  /**
   * What may have paid all the same, by the nodes' own records: look these hashes up on the chain.
   */
  signed: string[]
  /** Why it is not proven. */
  reason: string | null
}
