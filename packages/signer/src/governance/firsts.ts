import { documentHash, PolicyError, readDocument } from '@custody/policy'
import type { Store } from '../store/index.ts'
import type { First } from './held.ts'
import { sizeOfItem, type ItemOf } from './items.ts'
import type { Policies } from './policies.ts'

/**
 * Limits of a peer's first documents in memory: number of workspaces, and size of those documents that
 * are not in force here, in characters.
 */
const LIMITS = { workspaces: 10_000, characters: 64 * 1024 * 1024 }

/** Maximum number of removed first documents of a workspace that are remembered. */
const REMOVED_MAX = 1000

/** First documents of one peer by workspace. A peer cannot displace those of the other. */
interface OfPeer {
  readonly firsts: Map<string, { first: First; size: number }>
  size: number
}

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
  readonly #ofPeers = new Map<number, OfPeer>()

  readonly #limits: typeof LIMITS

  constructor(parts: Parts, limits = LIMITS) {
    this.#parts = parts
    this.#limits = limits
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
  add(node: number, item: ItemOf<'first'>): boolean {
    const { workspace, document, possessions } = item
    const hash = documentHash(readDocument(document))
    const isInForce = this.#parts.policies.held(workspace).governance !== null
    // Of a document that is in force only its hash is needed, which the operator sees.
    if (isInForce) this.#store(node, workspace, { hash, document: '', possessions: [] }, 0)
    else this.#store(node, workspace, { hash, document, possessions }, sizeOfItem(item))
    return !isInForce && this.#begin(workspace)
  }

  #store(node: number, workspace: string, first: First, size: number): void {
    const of = this.#ofPeers.get(node) ?? { firsts: new Map(), size: 0 }
    this.#ofPeers.set(node, of)
    const before = of.firsts.get(workspace)
    const total = of.size - (before?.size ?? 0) + size
    const { workspaces, characters } = this.#limits
    if (total > characters || (before === undefined && of.firsts.size >= workspaces)) return
    of.firsts.set(workspace, { first, size })
    of.size = total
  }

  #firstsOfPeers(workspace: string): { node: number; first: First }[] {
    return [...this.#ofPeers].flatMap(([node, { firsts }]) => {
      const found = firsts.get(workspace)
      return found === undefined ? [] : [{ node, first: found.first }]
    })
  }

  /**
   * Removes the policy of a workspace at this node, with everything that was recorded about it.
   * @returns whether there was one
   */
  remove(workspace: string): boolean {
    const { policies, store } = this.#parts
    const { chain, typed, removed: earlier } = policies.held(workspace)
    const firsts = [chain[0]?.hash, typed?.hash].filter((hash) => hash !== undefined)
    if (firsts.length === 0) return false
    const removed = [...new Set([...earlier, ...firsts])].slice(-REMOVED_MAX)
    const body = { workspace, at_s: store.seconds(), removed }
    return policies.record({ kind: 'policy-uninstalled', body })
  }

  /** Returns the hashes of the first documents of this node and its peers, in the order of nodes. */
  of(workspace: string): { node: number; hash: string }[] {
    const { policies, node } = this.#parts
    const { typed, chain } = policies.held(workspace)
    const own = chain[0]?.hash ?? typed?.hash
    const others = this.#firstsOfPeers(workspace).map((each) => ({
      node: each.node,
      hash: each.first.hash,
    }))
    return [...(own === undefined ? [] : [{ node, hash: own }]), ...others].sort(
      (a, b) => a.node - b.node,
    )
  }

  /**
   * Puts the first document in force if two nodes have the same one, or if a peer has the one that
   * this node had before its restoration. A peer's copy may have other proofs of possession, which
   * are not a part of the hash, so each copy is tried.
   * @returns whether it came into force now
   * @throws PolicyError the fault of the last copy, if no copy is accepted
   */
  #begin(workspace: string): boolean {
    const { policies, store } = this.#parts
    const { governance, typed, known, removed } = policies.held(workspace)
    if (governance !== null) return false
    const all = this.#firstsOfPeers(workspace).map(({ first }) => first)
    if (typed) all.unshift(typed)
    let fault: PolicyError | null = null
    for (const { hash, document, possessions } of all) {
      if (removed.includes(hash)) continue
      const isHeldByTwo = all.filter((each) => each.hash === hash).length >= 2
      if (known === null ? !isHeldByTwo : known.first !== hash) continue
      const body = { workspace, document, possessions: [...possessions], at_s: store.seconds() }
      try {
        return policies.record({ kind: 'policy-begun', body })
      } catch (error) {
        if (!(error instanceof PolicyError)) throw error
        fault = error
      }
    }
    if (fault) throw fault
    return false
  }
}
