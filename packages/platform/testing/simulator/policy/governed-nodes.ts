import { policyRegistry } from '@custody/chains'
import type { Governance } from '@custody/policy'
import type { KeyObject } from 'node:crypto'
import type { Config } from '../../../../signer/src/config.ts'
import { Refusal } from '../../../../signer/src/errors.ts'
import { PolicyExchange } from '../../../../signer/src/governance/exchange.ts'
import { Policies } from '../../../../signer/src/governance/policies.ts'
import type { Position } from '../../../../signer/src/governance/positions.ts'
import { nodesHash } from '../../../../signer/src/governance/word.ts'
import { Confirmation } from '../../../../signer/src/keys/confirmation.ts'
import type { NodeContext } from '../../../../signer/src/node-context.ts'
import { HANG_MS } from '../../../../../testing/wait-for.ts'
import { OwnAddresses } from '../../../../signer/src/policy/governed/own-addresses.ts'
import { PolicyJudge } from '../../../../signer/src/policy/governed/policy-judge.ts'
import type { GovernedVerdict, Order } from '../../../../signer/src/policy/order.ts'
import type { Store } from '../../../../signer/src/store/index.ts'
import { SharedSpending } from '../../../../signer/src/signing/shared-spending.ts'
import { PAGE_ROWS, type PeerHandler, type Peers } from '../../../../signer/src/transport/peers.ts'
import { NodeUnavailable } from '../../../src/core/signing/nodes.ts'
import type { NodePolicies, SignedOrder, SigningRound } from '../../in-process-nodes.ts'

/** A signature under a policy, as the oracle records it. */
export interface GovernedSignature {
  /** Simulated Unix milliseconds. */
  atMs: number
  pair: readonly [number, number]
  order: Order
  /** Hash of the document in force at each node of the pair; null: none. */
  hashes: readonly [string | null, string | null]
}

/** A moment of a signature at which a hostile platform can act. */
export type SigningMoment = 'judged' | 'recorded'

interface GovernedNode {
  node: number
  /** Number of the start, by which peers recognize a restarted node. */
  boot: string
  store: Store
  handlers: Map<string, PeerHandler>
  policies: Policies
  exchange: PolicyExchange
  spending: SharedSpending
  own: OwnAddresses
  peers: Peers
  confirmation: Confirmation
}

const TIMEOUT_MS = 1000
/** Deposit addresses of a sub-account that nodes count as its own. */
const DEPOSITS = 4

/**
 * Real policies, exchange, judgement and shared windows of signer nodes in this process. Calls
 * between the nodes are function calls, which a partition refuses. `sign` exchanges the same data in
 * the same order as `Coordinator` and `Participant`, without the rounds.
 */
export class GovernedNodes implements NodePolicies {
  readonly #now: () => number
  readonly #nodes = new Map<number, GovernedNode>()
  readonly #cut = new Set<string>()
  /** Nodes whose record is lost and that were not restored yet. */
  readonly #lost = new Set<number>()
  /** Generation of the last record that a node lost. */
  readonly #generations = new Map<number, number>()
  /** Simulated time at which a node last read everything of a peer, by both. */
  readonly #readAtMs = new Map<string, number>()
  #boots = 0
  readonly signatures: GovernedSignature[] = []
  /** Called at moments of each signature. */
  at: (moment: SigningMoment) => Promise<void> = async () => undefined
  /** Name of the installation, which documents and statements contain. */
  nodes = ''

  /** @param now simulated Unix milliseconds */
  constructor(now: () => number) {
    this.#now = now
  }

  connect({
    node,
    store,
    registry,
    identities,
    keyOf,
  }: Parameters<NodePolicies['connect']>[0]): ReturnType<NodePolicies['connect']> {
    this.nodes = nodesHash(identities as ReadonlyMap<number, KeyObject>)
    const handlers = new Map<string, PeerHandler>()
    const peers = {
      nodes: [...identities.keys()].filter((each) => each !== node),
      handle: (call: string, handler: PeerHandler) => void handlers.set(call, handler),
      call: async <T>(peer: number, call: string, body: unknown): Promise<T> =>
        (await this.#call([node, peer], call, body)) as T,
      bootOf: (peer: number) => this.#nodes.get(peer)?.boot ?? null,
      headOf: () => null,
    }
    this.#answerRestorations(peers, store)
    const log = () => undefined
    const place = { mode: 'local', nodes: this.nodes } as const
    const policies = new Policies({
      store,
      rules: { registry: policyRegistry(registry), place },
      log,
    })
    const common = { store, peers, timeoutMs: TIMEOUT_MS }
    const exchange = new PolicyExchange({
      ...common,
      node,
      // No reset is entered here, so nothing is signed by it.
      identity: identities.get(node) as KeyObject,
      identities: identities as ReadonlyMap<number, KeyObject>,
      policies,
      monotonic: this.#now,
      log,
    })
    const spending = new SharedSpending(common)
    const own = new OwnAddresses({ registry, store, keyOf, log }, { deposits: DEPOSITS })
    const boot = String(++this.#boots)
    const forRestoring = {
      peers: peers as unknown as Peers,
      confirmation: new Confirmation({
        config: { timeouts_ms: { keygen: TIMEOUT_MS } } as Config,
        store,
        peers: peers as unknown as Peers,
      }),
    }
    this.#nodes.set(node, {
      node,
      boot,
      store,
      handlers,
      policies,
      exchange,
      spending,
      own,
      ...forRestoring,
    })
    const governance = { policies, exchange }
    return {
      governance,
      policyJudge: new PolicyJudge({
        store,
        ...governance,
        known: () => spending.known(),
        own,
      }),
    }
  }

  /** Lets a node send its record to a peer that is restored, as `Peers` does. */
  #answerRestorations({ handle }: { handle: Peers['handle'] }, store: Store): void {
    handle('/peer/record', async (_node, body) => ({
      rows: store.record.page((body as { from: number }).from, PAGE_ROWS),
    }))
    handle('/peer/generation', async (node) => ({ generation: this.#generations.get(node) ?? 0 }))
  }

  async #call([from, to]: [number, number], call: string, body: unknown): Promise<unknown> {
    this.#assertConnected(from, to)
    const handler = this.#of(to).handlers.get(call)
    if (!handler) throw new Refusal('NOT_FOUND', `Node ${to} does not have ${call}`)
    const copy = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
    return copy(await handler(from, copy(body), undefined as never, Buffer.alloc(0)))
  }

  #of(node: number): GovernedNode {
    return this.#nodes.get(node) as GovernedNode
  }

  #assertConnected(one: number, two: number): void {
    if (this.isCut(one, two) || this.#lost.has(two))
      throw new Refusal('PEER_UNAVAILABLE', `Node ${two} cannot be reached`, { node: two })
  }

  isCut(one: number, two: number): boolean {
    return this.#cut.has([one, two].sort().join())
  }

  /** Cuts the connections of a node to both others, or to one of them. */
  cut(node: number, others: readonly number[] = [1, 2, 3]): void {
    for (const other of others) if (other !== node) this.#cut.add([node, other].sort().join())
  }

  /** Restores all connections. */
  heal(): void {
    this.#cut.clear()
  }

  /** Sends each node the positions of those that it can reach, as pings do. */
  async ping(): Promise<void> {
    for (const { node, exchange } of this.#nodes.values())
      for (const peer of this.#nodes.values()) {
        if (peer.node === node || this.isCut(node, peer.node)) continue
        if (this.#lost.has(node) || this.#lost.has(peer.node)) continue
        const position = peer.exchange.position()
        try {
          await exchange.hear(peer.node, position && ({ ...position } as Position))
          this.#readAtMs.set(`${node} of ${peer.node}`, this.#now())
        } catch (error) {
          if (!(error instanceof Refusal)) throw error
        }
      }
  }

  /** Notes that a node is about to lose its record. It takes part in nothing until it is restored. */
  lose(node: number): void {
    this.#lost.add(node)
    this.#generations.set(node, this.#of(node).store.state.generation)
  }

  isLost(node: number): boolean {
    return this.#lost.has(node)
  }

  /** Lets a node that was restored take part again. */
  rejoin(node: number): void {
    this.#lost.delete(node)
  }

  /** Returns what the backup and the restoration of a node use. */
  partsOf(node: number): Pick<GovernedNode, 'store' | 'policies' | 'peers' | 'confirmation'> {
    return this.#of(node)
  }

  /** Whether another node has read everything that a node had recorded until a time. */
  isRead(node: number, untilMs: number): boolean {
    return [...this.#nodes.keys()].some(
      (other) => (this.#readAtMs.get(`${other} of ${node}`) ?? -Infinity) > untilMs,
    )
  }

  /** Returns the first node, from a given one on, at which a policy is in force. */
  holderFrom(node: number, workspace: string): number {
    const order = [node, 1 + (node % 3), 1 + ((node + 1) % 3)]
    return order.find((each) => this.isHolder(each, workspace)) ?? node
  }

  isHolder(node: number, workspace: string): boolean {
    return !this.#lost.has(node) && this.#of(node).policies.held(workspace).governance !== null
  }

  /** Lets all nodes derive the own addresses of a workspace on a network. */
  async deriveOwn(workspace: string, code: string): Promise<void> {
    for (const { own } of this.#nodes.values()) await own.ready(workspace, code, HANG_MS)
  }

  /** Returns what a node holds about a workspace, which has a policy. */
  governanceOf(node: number, workspace: string): Governance {
    return this.#of(node).policies.held(workspace).governance!
  }

  /** Number of the document in force at each node; 0: none. */
  numbersOf(workspace: string): number[] {
    return [...this.#nodes.values()].map(
      ({ policies }) => policies.held(workspace).governance?.policy.document.number ?? 0,
    )
  }

  /** Enters the first document at nodes 1 and 2, as their operators do; node 3 reads it. */
  async install(item: {
    workspace: string
    document: string
    possessions: string[]
  }): Promise<void> {
    // An enrolment by name binds the name to the index of the sub-account first.
    const { workspace } = item
    for (const { store } of this.#nodes.values())
      for (const index of [1, 2])
        store.append('sub-account', { workspace, name: `sub-${index}`, index })
    for (const node of [1, 2]) {
      const { exchange } = this.#of(node)
      await exchange.assertPeersAble()
      exchange.type({ kind: 'first', ...item })
      await exchange.announce()
    }
    await this.ping()
  }

  async sign(
    pair: readonly [NodeContext, NodeContext],
    orders: readonly Order[],
    round: SigningRound,
  ): Promise<SignedOrder[]> {
    const [first] = pair
    const [leader, partner] = pair.map(({ config }) => this.#of(config.node)) as [
      GovernedNode,
      GovernedNode,
    ]
    const judged = await first.judge.judgeAll(orders)
    round.learn(first, judged[0]!)
    const isGoverned = first.judge.isGoverned(judged)
    if (isGoverned) await leader.exchange.prepare()
    const isTold = await leader.spending.prepare(partner.node)
    const beforehand = leader.spending.other(partner.node, judged)
    const verdicts = first.judge.govern(judged, beforehand)
    const existing = first.judge.assertAllAllowed(verdicts, beforehand)
    if (existing.every((step) => step?.signed)) return round.signaturesOf(orders)
    const end = leader.spending.begin(verdicts)
    try {
      return await this.#together(pair, { verdicts, isTold, round })
    } finally {
      end()
    }
  }

  /** Lets the partner judge and record orders that the first node allows, and signs them. */
  async #together(
    [first, second]: readonly [NodeContext, NodeContext],
    {
      verdicts,
      isTold,
      round,
    }: { verdicts: readonly GovernedVerdict[]; isTold: boolean; round: SigningRound },
  ): Promise<SignedOrder[]> {
    const [leader, partner] = [this.#of(first.config.node), this.#of(second.config.node)]
    await this.at('judged')
    this.#assertConnected(leader.node, partner.node)
    const { workspace } = verdicts[0]!.order
    const told = {
      spending: isTold ? leader.spending.tell(partner.node, verdicts) : undefined,
      policy: leader.exchange.tell(first.judge.policyHashOf(workspace)).policy,
    }
    const orders = verdicts.map(({ order }) => order)
    const opened = await refusedAs(partner.node, () =>
      this.#open([leader, partner], second, { orders, told, round }),
    )
    await this.at('recorded')
    if (round.faults.includes('torn')) throw new NodeUnavailable(partner.node, 'ended in mid-round')
    if (opened.policy) await leader.exchange.hear(partner.node, opened.policy.position)
    const other = opened.spending
      ? await leader.spending.hear(partner.node, opened.spending, verdicts)
      : leader.spending.other(partner.node, verdicts)
    const steps = first.judge.admitAll(verdicts, sessionsOf(orders, partner.node), other)
    first.judge.assertNotStopped(verdicts)
    second.judge.assertNotStopped(opened.verdicts)
    const signed = round.signaturesOf(orders)
    for (const [{ store }, mine] of [
      [first, steps],
      [second, opened.steps],
    ] as const)
      for (const [at, step] of mine.entries())
        if (!step.signed) store.append('signed', { step_height: step.height, ...signed[at]! })
    this.#note([first, second], orders)
    if (round.faults.includes('lost')) throw new NodeUnavailable(leader.node, 'no answer')
    return signed
  }

  async signAsHostileLeader(
    [first, second]: readonly [NodeContext, NodeContext],
    orders: readonly Order[],
    round: SigningRound,
  ): Promise<SignedOrder[]> {
    const [leader, partner] = [this.#of(first.config.node), this.#of(second.config.node)]
    const { workspace } = orders[0]!
    const told = {
      spending: leader.spending.tell(partner.node, []),
      policy: leader.exchange.tell(first.judge.policyHashOf(workspace)).policy,
    }
    const { steps } = await this.#open([leader, partner], second, { orders, told, round })
    const signed = round.signaturesOf(orders)
    for (const [at, step] of steps.entries())
      if (!step.signed) second.store.append('signed', { step_height: step.height, ...signed[at]! })
    return signed
  }

  /** What the partner does before the first round. */
  async #open(
    [leader, partner]: readonly [GovernedNode, GovernedNode],
    parts: NodeContext,
    { orders, told, round }: { orders: readonly Order[]; told: Told; round: SigningRound },
  ) {
    const { judge } = parts
    const judged = await judge.judgeAll(orders)
    round.learn(parts, judged[0]!)
    const { workspace } = judged[0]!.order
    if (told.policy) await partner.exchange.hear(leader.node, told.policy.position)
    if (judge.isGoverned(judged)) await partner.exchange.prepare()
    partner.exchange.assertSame(
      workspace,
      leader.node,
      told.policy?.hash ?? null,
      judge.policyHashOf(workspace),
    )
    const verdicts = judge.govern(judged)
    const other = told.spending
      ? await partner.spending.hear(leader.node, told.spending, verdicts)
      : partner.spending.other(leader.node, verdicts)
    judge.assertAllAllowed(verdicts, other)
    const steps = judge.admitAll(verdicts, sessionsOf(orders, leader.node), other)
    const { policy } = partner.exchange.tell(judge.policyHashOf(workspace))
    const spending = told.spending && partner.spending.tell(leader.node, verdicts)
    return { verdicts, steps, spending, policy }
  }

  #note([first, second]: readonly [NodeContext, NodeContext], orders: readonly Order[]): void {
    for (const order of orders) {
      const [one, two] = [first, second].map(({ judge }) => judge.policyHashOf(order.workspace))
      this.signatures.push({
        atMs: this.#now(),
        pair: [first.config.node, second.config.node],
        order,
        hashes: [one ?? null, two ?? null],
      })
    }
  }
}

/** What a node sends its partner with an order. */
interface Told {
  spending: ReturnType<SharedSpending['tell']> | undefined
  policy: ReturnType<PolicyExchange['tell']>['policy']
}

const sessionsOf = (orders: readonly Order[], partner: number) =>
  orders.map(() => ({ sessions: [], partner, peer_head: null }))

/** Names the partner in its refusals, as the coordinator does. */
async function refusedAs<T>(node: number, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    throw new Refusal(error.code, error.message, { ...error.detail, node })
  }
}
