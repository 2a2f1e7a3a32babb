import { NodeUnavailable } from '../../src/core/signing/nodes.ts'
import type { InProcessNodes } from '../in-process-nodes.ts'
import type { FaultContext } from './fault-context.ts'

/** Maximum downtime of a node, in seconds. */
const DOWN_S_MAX = 150
/**
 * Maximum offset of a node's clock, in seconds; nodes accept requests that are some minutes old.
 */
const OFF_S_MAX = 240

/** Faults between the platform and its signer nodes, and faults of the nodes themselves. */
export class NodeFaults {
  readonly #context: FaultContext
  readonly #nodes: InProcessNodes
  /** End of each node's downtime, in simulated milliseconds. */
  readonly #downUntilMs = new Map<number, number>()
  /** Whether a node has lost its record, and was not restored yet. */
  isLost: (node: number) => boolean = () => false

  constructor(context: FaultContext, nodes: InProcessNodes) {
    this.#context = context
    this.#nodes = nodes
    nodes.fault = () => {
      const { random, rates } = context
      if (random.rarely(rates.nodeTorn)) {
        context.noted('a node ended in mid-round')
        return 'torn'
      }
      if (!random.rarely(rates.nodeRefuses)) return undefined
      context.noted('a node refused')
      return 'refuse'
    }
  }

  async ask(node: number, method: string, path: string, body: unknown): Promise<never> {
    const { random, rates } = this.#context
    if (this.isDown(node)) throw new NodeUnavailable(node, 'is down')
    if (random.rarely(rates.nodeAway)) {
      this.#context.noted('a node was not reached')
      throw new NodeUnavailable(node, 'is away')
    }
    const answer = await this.#nodes
      .call(node, method, path, body)
      .finally(() => this.#nodes.flush())
    if (random.rarely(rates.nodeLost)) {
      this.#context.noted('an answer of a node was lost')
      throw new NodeUnavailable(node, 'no answer')
    }
    return answer as never
  }

  /** Stops one of three nodes for a while; it restarts with its stored record. */
  strikeDown(): void {
    const { random, schedule } = this.#context
    const node = 1 + random.below(3)
    this.#context.noted('a node was down for a while')
    this.#downUntilMs.set(node, schedule.nowMs + 1000 * (1 + random.below(DOWN_S_MAX)))
    this.#nodes.restart(node)
  }

  /** Sets one node's clock wrong, until {@link heal} is called. */
  strikeClock(): void {
    const { random } = this.#context
    this.#context.noted('the clock of a node was off')
    this.#nodes.offMs.set(1 + random.below(3), 1000 * (random.below(2 * OFF_S_MAX) - OFF_S_MAX))
  }

  /** Whether a node does not respond now. */
  isDown(node: number): boolean {
    return this.isLost(node) || (this.#downUntilMs.get(node) ?? 0) > this.#context.schedule.nowMs
  }

  heal(): void {
    this.#downUntilMs.clear()
    this.#nodes.offMs.clear()
  }
}
