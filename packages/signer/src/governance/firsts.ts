import { documentHash, readDocument } from '@custody/policy'
import type { Store } from '../store/index.ts'
import type { First } from './held.ts'
import type { ItemOf } from './items.ts'
import type { Policies } from './policies.ts'

/** Maximum number of workspaces of which the first documents of peers are stored in memory. */
const WORKSPACES_MAX = 10_000

interface Parts {
  node: number
  policies: Policies
  store: Store
}

/**
 * First documents of workspaces. An operator enters the first document at each node, and it comes
 * into force when two nodes have the same one.
 */
export class FirstDocuments {
  readonly #parts: Parts
  /** First documents of peers, by workspace and node. */
  readonly #ofPeers = new Map<string, Map<number, First>>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * Records the first document as the operator of this node has entered it.
   * @throws PolicyError
   */
  enter({ workspace, document, possessions }: ItemOf<'first'>): void {
    const at_s = this.#parts.store.seconds()
    const body = { workspace, document, possessions, at_s }
    this.#parts.policies.record({ kind: 'policy-typed', body })
    this.#begin(workspace)
  }

  /**
   * Stores the first document that a peer has sent.
   * @returns whether a first document came into force
   * @throws PolicyError
   */
  add(node: number, { workspace, document, possessions }: ItemOf<'first'>): boolean {
    const firsts = this.#ofPeers.get(workspace) ?? new Map<number, First>()
    if (this.#ofPeers.size < WORKSPACES_MAX) this.#ofPeers.set(workspace, firsts)
    firsts.set(node, { hash: documentHash(readDocument(document)), document, possessions })
    return this.#begin(workspace)
  }

  /** Returns the hashes of the first documents of this node and its peers, in the order of nodes. */
  of(workspace: string): { node: number; hash: string }[] {
    const { policies, node } = this.#parts
    const { typed, chain } = policies.held(workspace)
    const own = chain[0]?.hash ?? typed?.hash
    const others = [...(this.#ofPeers.get(workspace) ?? [])].map(([peer, { hash }]) => ({
      node: peer,
      hash,
    }))
    return [...(own === undefined ? [] : [{ node, hash: own }]), ...others].sort(
      (a, b) => a.node - b.node,
    )
  }

  /**
   * Puts the first document in force if two nodes have the same one, or if a peer has the one that
   * this node had before its restoration.
   * @returns whether it came into force now
   */
  #begin(workspace: string): boolean {
    const { policies, store } = this.#parts
    const { governance, typed, known } = policies.held(workspace)
    if (governance !== null) return false
    const ofPeers = [...(this.#ofPeers.get(workspace)?.values() ?? [])]
    const all = [...(typed ? [typed] : []), ...ofPeers]
    const first = all.find(
      ({ hash }) =>
        (known === null || known.first === hash) &&
        (known?.first === hash || all.filter((each) => each.hash === hash).length >= 2),
    )
    if (first === undefined) return false
    const { document, possessions } = first
    const at_s = store.seconds()
    const body = { workspace, document, possessions: [...possessions], at_s }
    return policies.record({ kind: 'policy-begun', body })
  }
}
