import type { Body } from './entries/index.ts'

/**
 * Maximum number of generations of a peer whose false positions are recorded until this node is
 * restored again. Then no generation of that peer counts, so that it cannot fill the record.
 */
export const CLAIMS_MAX = 8

/**
 * What this node's record states about reading the policies of its peers. A restored node may have
 * an older document than before. So it signs by a policy only after it has read those of both peers,
 * or after its operator has accepted the document.
 */
export class PolicyReading {
  /** Peers whose policies this node must still read since it was restored. */
  readonly #awaited = new Set<number>()
  /** Generations of a peer in which it has claimed a position without proof, by peer. */
  readonly #unproven = new Map<number, Set<number>>()
  readonly #accepted = new Map<string, Body<'policy-accepted'>>()

  /** Every peer must be read again, and what was accepted or ignored before does not count. */
  restart(): void {
    for (const node of [1, 2, 3]) this.#awaited.add(node)
    this.#unproven.clear()
    this.#accepted.clear()
  }

  heard({ node }: Body<'policy-heard'>): void {
    this.#awaited.delete(node)
  }

  ignore({ node, generation }: Body<'policy-unproven'>): void {
    const generations = this.#unproven.get(node) ?? new Set()
    this.#unproven.set(node, generations.add(generation))
  }

  accept(accepted: Body<'policy-accepted'>): void {
    this.#accepted.set(accepted.workspace, accepted)
  }

  /** Returns whether this node must still read the policies of a peer since it was restored. */
  isAwaited(node: number): boolean {
    return this.#awaited.has(node)
  }

  /** Returns whether a peer has claimed a position without proof. */
  hasUnproven(node: number): boolean {
    return this.#unproven.has(node)
  }

  /** Returns whether no further false position of a peer is recorded. */
  isFull(node: number): boolean {
    return (this.#unproven.get(node)?.size ?? 0) >= CLAIMS_MAX
  }

  /** Returns whether the positions of a peer in a generation of its record are ignored. */
  isIgnored(node: number, generation: number): boolean {
    return this.isFull(node) || (this.#unproven.get(node)?.has(generation) ?? false)
  }

  /** Returns what the operator has accepted last for a workspace. */
  acceptedOf(workspace: string): Body<'policy-accepted'> | undefined {
    return this.#accepted.get(workspace)
  }
}
