import assert from 'node:assert/strict'
import { canonicalText, PolicyError, type Governance } from '@custody/policy'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Refusal } from '../src/errors.ts'
import { PolicyExchange } from '../src/governance/exchange.ts'
import type { Held } from '../src/governance/held.ts'
import type { Position } from '../src/governance/positions.ts'
import { Policies } from '../src/governance/policies.ts'
import { Store } from '../src/store/index.ts'
import type { PeerHandler } from '../src/transport/peers.ts'
import type { Item } from '../src/governance/items.ts'
import { NOW, policyWith } from '../../policy/testing/documents.ts'
import {
  DAY_S,
  PLACE,
  possessionsOf,
  proposalOf,
  successorOf,
} from '../../policy/testing/governance.ts'
import { registry } from '../../policy/testing/registry.ts'

const { mode, nodes } = PLACE

/** A node with the real record, policies and exchange. Only the transport is replaced. */
export class PolicyNode {
  readonly node: number
  readonly #cluster: PolicyNodes
  #path: string
  #handlers = new Map<string, PeerHandler>()
  store!: Store
  policies!: Policies
  exchange!: PolicyExchange
  /** Answers of this node to its peers, changed by a test. */
  altered: (call: string, answer: unknown) => unknown = (_call, answer) => answer
  /** Seconds by which the node's clock is ahead. */
  ahead = 0
  logged: string[] = []

  constructor(cluster: PolicyNodes, node: number) {
    this.#cluster = cluster
    this.node = node
    this.#path = newPath(node)
    this.start()
  }

  /** Starts the node again with an empty record, as after the loss of its host. */
  lose(): void {
    this.#path = newPath(this.node)
    this.start()
  }

  /** Checks that this node holds what it would hold after a restart, which reads its record again. */
  assertAsRecorded(): void {
    const rules = { registry, place: { mode, nodes } }
    const again = new Policies({ store: this.store, rules, log: () => {} })
    const message = `node ${this.node} holds something else than its record`
    assert.deepEqual(plain(again.held(WORKSPACE)), plain(this.policies.held(WORKSPACE)), message)
  }

  /** Starts the node, or starts it again with what is on its record. */
  start(): void {
    const cluster = this.#cluster
    if (this.store) this.store.close()
    this.#handlers = new Map()
    const now = (): number => (cluster.now + this.ahead) * 1000
    this.store = new Store(this.#path, now)
    const log = (_level: string, message: string): void => {
      this.logged.push(message)
    }
    const rules = { registry, place: { mode, nodes } }
    this.policies = new Policies({ store: this.store, rules, log })
    this.exchange = new PolicyExchange({
      node: this.node,
      identity: IDENTITIES.get(this.node)!.privateKey,
      identities: PUBLIC,
      policies: this.policies,
      store: this.store,
      monotonic: now,
      timeoutMs: 1000,
      log,
      peers: {
        nodes: [1, 2, 3].filter((other) => other !== this.node),
        handle: (call, handler) => {
          this.#handlers.set(call, handler)
        },
        call: async <T>(other: number, call: string, body: unknown): Promise<T> =>
          (await cluster.node(other).answer(this.node, call, body)) as T,
      },
    })
  }

  async answer(from: number, call: string, body: unknown): Promise<unknown> {
    if (this.#cluster.isCut(from, this.node))
      throw new Refusal('PEER_UNAVAILABLE', `Node ${this.node} cannot be reached`)
    const handler = this.#handlers.get(call)!
    const answer = await handler(from, copy(body), undefined as never, Buffer.alloc(0))
    return this.altered(call, copy(answer))
  }

  /** Number of the document in force; 0 if there is none. */
  get number(): number {
    return this.policies.current(WORKSPACE)?.policy.document.number ?? 0
  }
}

const IDENTITIES = new Map([1, 2, 3].map((node) => [node, generateKeyPairSync('ed25519')]))
/** Private identity keys of the nodes, with which a hostile node signs. */
export const identityOf = (node: number): KeyObject => IDENTITIES.get(node)!.privateKey
const PUBLIC = new Map([...IDENTITIES].map(([node, { publicKey }]) => [node, publicKey]))

/** Name of the workspace whose policy the nodes hold. */
const WORKSPACE = 'acme'

const texts = (all: readonly object[]): string[] => all.map((each) => JSON.stringify(each))

/** What a node holds, as JSON. A document is its hash, because compiled documents contain functions. */
const plain = (held: Held): unknown =>
  JSON.parse(
    JSON.stringify(held, (_key, value: unknown) => {
      if (value instanceof Map || value instanceof Set) return [...value]
      const isPolicy = typeof value === 'object' && value !== null && 'registry' in value
      return isPolicy && 'hash' in value ? value.hash : value
    }),
  )

const newPath = (node: number): string =>
  join(mkdtempSync(join(tmpdir(), `policy-node-${node}-`)), 'record.sqlite')

const copy = (value: unknown): unknown => JSON.parse(JSON.stringify(value)) as unknown

/** Three nodes between which single connections can be cut. */
export class PolicyNodes {
  /** Unix seconds. */
  now = NOW
  readonly #cut = new Set<string>()
  readonly #nodes: PolicyNode[]

  constructor() {
    this.#nodes = []
    for (const node of [1, 2, 3]) this.#nodes.push(new PolicyNode(this, node))
  }

  node(node: number): PolicyNode {
    return this.#nodes[node - 1]!
  }
  get all(): readonly PolicyNode[] {
    return this.#nodes
  }
  get numbers(): number[] {
    return this.#nodes.map(({ number }) => number)
  }

  isCut(one: number, two: number): boolean {
    return this.#cut.has([one, two].sort().join())
  }
  /** Cuts the connections of a node to the others, or to one of them. */
  cut(node: number, others: readonly number[] = [1, 2, 3]): void {
    for (const other of others) if (other !== node) this.#cut.add([node, other].sort().join())
  }
  connect(node: number, others: readonly number[] = [1, 2, 3]): void {
    for (const other of others) this.#cut.delete([node, other].sort().join())
  }

  /** Returns the policy in force at a node. */
  inForce(node = 1): Governance {
    return this.node(node).policies.current(WORKSPACE)!
  }

  /** Puts a first document in force at all nodes. @param keys keys that its people prove to hold */
  async install(
    fields: object = {},
    keys?: Parameters<typeof possessionsOf>[1],
  ): Promise<Governance> {
    const { document } = policyWith([], fields)
    const possessions = texts(possessionsOf(document, keys))
    const item = { workspace: WORKSPACE, document: canonicalText(document), possessions }
    for (const node of [1, 2]) this.node(node).exchange.type({ kind: 'first', ...item })
    await this.ping()
    await this.ping()
    assert.deepEqual(this.numbers, [1, 1, 1])
    return this.inForce()
  }

  /** Puts a successor in force at all nodes that are reachable, with its change approved by admins. */
  async change(
    fields: object,
    keys: Parameters<typeof possessionsOf>[1] = () => [],
  ): Promise<void> {
    const governance = this.inForce()
    const document = successorOf(governance, fields)
    const { approvals } = proposalOf(governance, document, ['alice', 'bob'], { at: this.now })
    this.node(1).exchange.present({
      kind: 'change',
      workspace: WORKSPACE,
      document: canonicalText(document),
      possessions: texts(possessionsOf(document, keys)),
      approvals: texts(approvals),
    })
    await this.ping()
    this.now += DAY_S
    await this.ping()
  }

  /** Presents an item to a node. Returns the code and the path of the refusal, or null. */
  refusal(item: Item, node = 1): string | null {
    try {
      this.node(node).exchange.present(item)
      return null
    } catch (error) {
      assert.ok(error instanceof PolicyError)
      return `${error.code} ${error.path}`
    }
  }

  /** Sends each node the positions of those that it can reach, as pings do. */
  async ping(): Promise<void> {
    for (const node of this.#nodes)
      for (const peer of this.#nodes) {
        if (peer === node || this.isCut(node.node, peer.node)) continue
        const position = peer.altered('ping', peer.exchange.position() ?? null)
        await node.exchange.hear(peer.node, (position ?? undefined) as Position | undefined)
      }
  }

  stop(): void {
    for (const { store } of this.#nodes) store.close()
  }
}
