import { loadRegistry, policyRegistry } from '@custody/chains'
import {
  advance,
  canonicalText,
  compile,
  firstInForce,
  PolicyError,
  readDocument,
  readSigned,
  type Governance,
  type PolicyDocument,
  type Present,
} from '@custody/policy'
import { propose, resume, stop, suspend, veto } from '../../policy/testing/transitions.ts'
import { NodeRefused, NodeUnavailable, type SignerNodes } from '../src/core/signing/nodes.ts'

/** An item as `POST /policy/present` gets it. */
type Item =
  | { kind: 'change'; document: string; possessions: string[]; approvals: string[] }
  | { kind: 'statement'; signed: string }
  | { kind: 'resumed'; stop: string; approvals: string[] }

/** One node: what it holds, whether it responds, and how often it was told something. */
interface GovernedNode {
  governance: Governance
  isAway: boolean
  presented: number
}

const context = { registry: policyRegistry(loadRegistry('local')) }

const newNode = (document: PolicyDocument): GovernedNode => ({
  governance: firstInForce(compile(document, context.registry)),
  isAway: false,
  presented: 0,
})

/** Returns what a node holds after an item, by the rules that real nodes apply. */
function judged(governance: Governance, item: Item, present: Present): Governance {
  if (item.kind === 'change')
    return propose(
      governance,
      {
        document: readDocument(item.document),
        possessions: item.possessions.map(readSigned),
        approvals: item.approvals.map(readSigned),
      },
      context,
      present,
    )
  if (item.kind === 'resumed') {
    const approvals = item.approvals.map(readSigned)
    return resume(governance, readSigned(item.stop), approvals, present)
  }
  const signed = readSigned(item.signed)
  const { kind } = signed.statement
  if (kind === 'veto') return veto(governance, signed, present)
  if (kind === 'stop') return stop(governance, signed, present)
  if (kind === 'suspend') return suspend(governance, signed, present)
  throw new Error(`the fixture does not know statements of the kind ${kind}`)
}

/**
 * Three nodes that apply the real rules of governance to one workspace. They do not inform each
 * other.
 */
export class GovernedNodes {
  nodes: GovernedNode[] = []
  /** The process ends before it calls a node with something to record. */
  isCut = false
  readonly #nowS: () => number

  /** @param nowS Unix seconds */
  constructor(nowS: () => number) {
    this.#nowS = nowS
  }

  /** Begins again, with one document in force. */
  begin(document: PolicyDocument): void {
    this.nodes = [1, 2, 3].map(() => newNode(document))
    this.isCut = false
  }

  /** The nodes, as the platform calls them. */
  readonly signers = {
    peers: [1, 2, 3].map((node) => ({ node })),
    isPenalised: () => false,
    call: async (at: number, _method: string, path: string, body: { item?: Item }) => {
      const node = this.nodes[at - 1] as GovernedNode
      const isLost = this.isCut && path === '/policy/present'
      if (node.isAway || isLost) throw new NodeUnavailable(at, 'no response')
      node.governance = advance(node.governance, this.#nowS())
      if (path === '/policy/present') this.#take(at, node, body.item as Item)
      return viewOf(node)
    },
  } as unknown as SignerNodes

  #take(at: number, node: GovernedNode, item: Item): void {
    node.presented++
    try {
      node.governance = judged(node.governance, item, { now_s: this.#nowS() })
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      const { message, code, path: field } = error
      throw new NodeRefused(at, 403, { error: 'BAD_POLICY', message, code, field })
    }
  }
}

/** Returns what a node answers to `POST /policy`. */
function viewOf({ governance: { policy, next, stops, suspensions } }: GovernedNode): object {
  return {
    number: policy.document.number,
    hash: policy.hash,
    document: canonicalText(policy.document),
    next: next && {
      number: next.policy.document.number,
      hash: next.policy.hash,
      document: canonicalText(next.policy.document),
      acts_at: next.acts_at_s,
      vetoed_by: next.vetoedBy,
    },
    stops,
    suspensions: suspensions.map(({ target }) => ({ target })),
    revoked: [],
  }
}
