import {
  documentHash,
  LIMITS,
  PolicyError,
  readDocument,
  readSigned,
  statementHash,
  type Governance,
} from '@custody/policy'
import { z } from 'zod'
import { Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import { count } from '../store/entries/values.ts'
import type { Store } from '../store/index.ts'
import type { Peers } from '../transport/peers.ts'
import type { First, Judged } from './held.ts'
import { itemOf, itemSchema, sizeOfItem, type Item, type ItemOf } from './items.ts'
import type { Policies } from './policies.ts'

const ITEMS = '/peer/policy/items'
const NEWS = '/peer/policy/news'
/** Maximum number of items in one page. */
const PAGE_MAX = 200
/** Size of the items after which a page ends, in characters. */
const PAGE_CHARACTERS = 4 * 1024 * 1024
/** Maximum number of pages that are read in a row from a peer. */
const PAGES_MAX = 10_000
/** Maximum number of a peer's items that wait for others, and their size in characters. */
const WAITING_MAX = 10_000
const WAITING_CHARACTERS = 64 * 1024 * 1024
/** Maximum number of workspaces, changes and ends of stops about which peers are remembered. */
const NAMES_MAX = 10_000
/**
 * Time for which a node signs under a policy without having heard from a peer, in milliseconds. It
 * limits how long two nodes without contact can have different documents.
 */
const SILENCE_MAX_MS = 24 * 60 * 60 * 1000

/** Position in a node's record up to which another node knows the items. */
const positionSchema = z.strictObject({ generation: count, height: count })
export type Position = z.infer<typeof positionSchema>
const pingSchema = z.object({ policy: positionSchema.optional() })
/**
 * What a node tells its partner with an order and with its answer: its position, and the hash of the
 * policy in force for the order's workspace, or null if there is none.
 */
export const policyToldSchema = z.strictObject({
  position: positionSchema,
  hash: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable(),
})
export type PolicyTold = z.infer<typeof policyToldSchema>
/** `seen_at_s`: Unix seconds. `is_held`: the document is pending, in force, or was in force. */
const sentSchema = z.strictObject({
  height: count,
  seen_at_s: count,
  is_held: z.boolean(),
  item: itemSchema,
})
const pageSchema = z.strictObject({
  generation: count,
  to: count,
  is_last: z.boolean(),
  items: z.array(sentSchema).max(PAGE_MAX),
})
type Sent = z.infer<typeof sentSchema>

interface Peer {
  known: Position
  /** Elapsed milliseconds when this node last knew all of the peer's items; null since the start. */
  heardAt: number | null
  reading: Promise<void> | null
  /** Items that were refused, and that may be accepted after others. */
  waiting: Sent[]
}

interface Parts {
  node: number
  policies: Policies
  store: Store
  peers: Pick<Peers, 'call' | 'handle' | 'nodes'>
  monotonic: () => number
  timeoutMs: number
  log: Log
}

/**
 * Exchange of documents and statements between nodes. Each node reads from each peer what the peer
 * has recorded, in the order of the peer's record, judges it by its own policy, and records it. So
 * a statement that one node has seen reaches all of them, whatever the platform withholds.
 */
export class PolicyExchange {
  readonly #parts: Parts
  readonly #peers = new Map<number, Peer>()
  /** First documents that peers hold, by workspace and node. */
  readonly #firsts = new Map<string, Map<number, First>>()
  /** Times at which peers saw changes and ends of stops, in Unix seconds, by their name. */
  readonly #sightings = new Map<string, Map<number, number>>()
  /** Number of a document that a peer has in force and that was seen too late here, by workspace. */
  readonly #late = new Map<string, number>()
  /** Hashes of policies with which the operator lets this node sign without a peer. */
  readonly #accepted = new Set<string>()

  constructor(parts: Parts) {
    this.#parts = parts
    for (const node of parts.peers.nodes)
      this.#peers.set(node, {
        known: { generation: 0, height: 0 },
        heardAt: null,
        reading: null,
        waiting: [],
      })
    parts.peers.handle(ITEMS, async (_node, body) =>
      this.#page(z.strictObject({ after: count }).parse(body).after),
    )
    parts.peers.handle(NEWS, async (node, body) => {
      await this.hear(node, positionSchema.parse(body))
      return {}
    })
  }

  /** Position of this node's newest entry about a policy; undefined if there is none. */
  position(): Position | undefined {
    const { state } = this.#parts.store
    const height = state.policyHeights.at(-1)
    return height === undefined ? undefined : { generation: state.generation, height }
  }

  /** Fields of this node's pings; empty if it has no policy on record. */
  pingFields(): { policy?: Position } {
    const position = this.position()
    return position === undefined ? {} : { policy: position }
  }

  /** Reads what a peer has recorded, by its ping or its answer to one. */
  onPing(node: number, body: unknown): void {
    const parsed = pingSchema.safeParse(body)
    if (!parsed.success) return
    this.hear(node, parsed.data.policy).catch((error: unknown) => {
      this.#parts.log('warn', 'the policies of a peer could not be read', {
        peer: node,
        reason: reason(error),
      })
    })
  }

  /** Returns what the partner must know; empty if this node has no policy on record. */
  tell(hash: string | null): { policy?: PolicyTold } {
    const position = this.position()
    return position === undefined ? {} : { policy: { position, hash } }
  }

  /**
   * Checks that both nodes of a pair judge by the same document.
   * @param theirs hash of the partner's; null: none
   * @throws Refusal `POLICY_BEHIND`
   */
  assertSame(partner: number, theirs: string | null, own: string | null): void {
    if (theirs === own) return
    throw new Refusal(
      'POLICY_BEHIND',
      `Node ${this.#parts.node} and node ${partner} have different policies in force for the workspace`,
      { node: this.#parts.node },
    )
  }

  /**
   * Reads what a peer has recorded, if this node does not know it yet.
   * @param position position of the peer's newest entry; undefined: it has none
   * @throws Refusal
   */
  async hear(node: number, position: Position | undefined): Promise<void> {
    const peer = this.#peers.get(node)!
    const isKnown = (): boolean =>
      position === undefined ||
      (peer.known.generation === position.generation && peer.known.height >= position.height)
    // A read that had begun before may have ended below that position.
    for (let times = 0; times < 2 && !isKnown(); times++) await this.#read(node)
    if (!isKnown()) throw unknownFormat(node)
    peer.heardAt = this.#parts.monotonic()
  }

  /**
   * Checks that this node knows what its peers know, so that a single hostile peer cannot keep it at
   * an earlier document.
   * @throws Refusal `POLICY_BEHIND`
   */
  assertCurrent(governance: Governance): void {
    const { document, hash } = governance.policy
    if (this.#accepted.has(hash)) return
    if (this.#isLate(governance))
      throw new Refusal(
        'POLICY_BEHIND',
        `This node has seen the policy ${document.number + 1} too late, and waits until both other nodes have confirmed it or its delay has passed`,
      )
    for (const [node, { heardAt }] of this.#peers) {
      if (this.#isHeard(node)) continue
      const since = heardAt === null ? 'since its start' : 'for 24 hours'
      throw new Refusal(
        'POLICY_BEHIND',
        `This node has not heard the policies of node ${node} ${since}: start node ${node}, or accept the policy in force here by the command "signer policy accept"`,
        { node },
      )
    }
  }

  /**
   * Reads the policies of peers that this node has not heard, as after a start. A peer that cannot be
   * reached is left out.
   */
  async prepare(): Promise<void> {
    const { log } = this.#parts
    const unheard = [...this.#peers].filter(([node]) => !this.#isHeard(node))
    await Promise.all(
      unheard.map(async ([node, peer]) => {
        try {
          await this.#read(node)
          peer.heardAt = this.#parts.monotonic()
        } catch (error) {
          log('warn', 'the policies of a peer could not be read', {
            peer: node,
            reason: reason(error),
          })
        }
      }),
    )
  }

  #isHeard(node: number): boolean {
    const { heardAt } = this.#peers.get(node)!
    return heardAt !== null && this.#parts.monotonic() - heardAt <= SILENCE_MAX_MS
  }

  /** Returns whether a peer has the next document in force, which this node has seen too late. */
  #isLate({ policy: { document }, next }: Governance): boolean {
    const { workspace, number, change } = document
    if ((this.#late.get(workspace) ?? 0) > number) return true
    if (next === null || next.vetoedBy !== null) return false
    if (next.approved_for_s > this.#parts.store.seconds()) return false
    const seen = this.#sightings.get(changeName(workspace, next.policy.hash))?.values() ?? []
    return [...seen].some((at) => at + change.delay_s <= next.approved_for_s + LIMITS.sightSlackS)
  }

  /** Lets this node sign under a policy without having heard its peers, until the next start. */
  accept(hash: string): void {
    this.#accepted.add(hash)
  }

  /**
   * Judges what the platform or the operator presents, records it, and informs both peers.
   * @returns whether it was new to this node
   * @throws PolicyError if it is refused
   */
  present(item: Item): boolean {
    const isNew = this.#record(item, this.#parts.store.seconds())
    if (isNew) {
      this.#retry()
      void this.announce()
    }
    return isNew
  }

  /**
   * Checks that no peer runs an earlier version, which does not have policies.
   * @throws Refusal `PEER_UNAVAILABLE`
   */
  async assertPeersAble(): Promise<void> {
    const { peers, timeoutMs } = this.#parts
    for (const node of peers.nodes) {
      try {
        await peers.call(node, ITEMS, { after: 0 }, { timeout: timeoutMs })
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        if (error.code !== 'NOT_FOUND') continue
        throw new Refusal(
          'PEER_UNAVAILABLE',
          `Node ${node} runs an earlier version, which does not have policies: upgrade it first`,
          { node },
        )
      }
    }
  }

  /** Records the first document as the operator has entered it. @throws PolicyError */
  type(item: ItemOf<'first'>): void {
    const { kind: _kind, ...body } = item
    const at_s = this.#parts.store.seconds()
    this.#parts.policies.record({ kind: 'policy-typed', body: { ...body, at_s } })
    this.#begin(item.workspace)
  }

  /**
   * Informs both peers of this node's newest entry.
   * @returns the peers that have read it
   */
  async announce(): Promise<number[]> {
    const { peers, timeoutMs, log } = this.#parts
    const position = this.position()
    if (position === undefined) return []
    const told = await Promise.all(
      peers.nodes.map(async (node) => {
        try {
          await peers.call(node, NEWS, position, { timeout: timeoutMs })
          return [node]
        } catch (error) {
          // The peer reads it after the next ping.
          log('warn', 'a peer did not read the news about a policy', {
            peer: node,
            reason: reason(error),
          })
          return []
        }
      }),
    )
    return told.flat()
  }

  /** First documents that this node and its peers hold, by node; for the operator. */
  firstsOf(workspace: string): { node: number; hash: string }[] {
    const { policies, node } = this.#parts
    const { typed, chain } = policies.held(workspace)
    const own = chain[0]?.hash ?? typed?.hash
    const others = [...(this.#firsts.get(workspace) ?? [])].map(([peer, { hash }]) => ({
      node: peer,
      hash,
    }))
    return [...(own === undefined ? [] : [{ node, hash: own }]), ...others].sort(
      (a, b) => a.node - b.node,
    )
  }

  #page(after: number): z.infer<typeof pageSchema> {
    const { store, policies, node } = this.#parts
    const heights = store.state.policyHeights
    const items: Sent[] = []
    let size = 0
    let at = firstAbove(heights, after)
    for (; at < heights.length && items.length < PAGE_MAX && size < PAGE_CHARACTERS; at++) {
      const entry = policies.entryAt(heights[at]!)
      const item = itemOf(entry, node)
      if (item === null || entry.kind === 'policy-known') continue
      size += sizeOfItem(item)
      const { height, body } = entry
      items.push({ height, seen_at_s: body.at_s, is_held: this.#isHeld(item), item })
    }
    const isLast = at >= heights.length
    return {
      generation: store.state.generation,
      to: isLast ? Math.max(heights.at(-1) ?? 0, after) : heights[at - 1]!,
      is_last: isLast,
      items,
    }
  }

  #isHeld(item: Item): boolean {
    if (item.kind !== 'change') return true
    const { chain, governance } = this.#parts.policies.held(item.workspace)
    const hash = documentHash(readDocument(item.document))
    return chain.some((each) => each.hash === hash) || governance?.next?.policy.hash === hash
  }

  /** Reads a peer's items to the end of its record. Concurrent calls share one read. */
  #read(node: number): Promise<void> {
    const peer = this.#peers.get(node)!
    peer.reading ??= this.#readPages(node, peer).finally(() => {
      peer.reading = null
    })
    return peer.reading
  }

  async #readPages(node: number, peer: Peer): Promise<void> {
    const { peers, timeoutMs } = this.#parts
    for (let page = 0; page < PAGES_MAX; page++) {
      const after = peer.known.height
      const answer = await peers.call(node, ITEMS, { after }, { timeout: timeoutMs })
      const parsed = pageSchema.safeParse(answer)
      if (!parsed.success) throw unknownFormat(node)
      const { generation, to, is_last, items } = parsed.data
      if (generation !== peer.known.generation && after > 0) {
        // The peer was restored; its new record is read from the beginning.
        peer.known = { generation, height: 0 }
        continue
      }
      if (!is_last && to <= after) throw unknownFormat(node)
      peer.waiting.push(...items)
      assertFew(node, peer.waiting)
      const before = this.position()?.height
      this.#retry()
      peer.known = { generation, height: Math.max(after, to) }
      if (this.position()?.height !== before) void this.announce()
      if (is_last) return
    }
    throw unknownFormat(node)
  }

  /** Judges the waiting items of all peers until none of them is accepted any more. */
  #retry(): void {
    for (let isProgress = true; isProgress;) {
      isProgress = false
      for (const [node, peer] of this.#peers) {
        const results = peer.waiting.map((sent) => this.#take(node, sent))
        peer.waiting = peer.waiting.filter((_, at) => results[at] === 'waits')
        isProgress ||= results.includes('recorded')
      }
    }
  }

  #take(node: number, sent: Sent): 'recorded' | 'known' | 'waits' {
    const { item, seen_at_s, is_held } = sent
    try {
      if (item.kind === 'first') {
        this.#noteFirst(node, item)
        return this.#begin(item.workspace) ? 'recorded' : 'known'
      }
      // Its end follows in the peer's record.
      if (item.kind === 'change' && !is_held) return 'known'
      this.#sight(node, item, seen_at_s)
      return this.#recordOf(node, item, seen_at_s) ? 'recorded' : 'known'
    } catch (error) {
      if (error instanceof PolicyError) return 'waits'
      // The policy of this workspace cannot be read; those of others can.
      if (error instanceof Refusal) return 'waits'
      throw error
    }
  }

  #noteFirst(node: number, { workspace, document, possessions }: ItemOf<'first'>): void {
    const firsts = this.#firsts.get(workspace) ?? new Map<number, First>()
    if (this.#firsts.size < NAMES_MAX) this.#firsts.set(workspace, firsts)
    firsts.set(node, { hash: documentHash(readDocument(document)), document, possessions })
  }

  /**
   * Puts the first document in force if two nodes hold the same one, or if a peer holds the one that
   * this node had before its restoration.
   * @returns whether it came into force now
   */
  #begin(workspace: string): boolean {
    const { policies, store } = this.#parts
    const { governance, typed, known } = policies.held(workspace)
    if (governance !== null) return false
    const said = [...(this.#firsts.get(workspace)?.values() ?? [])]
    const holders = [...(typed ? [typed] : []), ...said]
    const first = holders.find(
      ({ hash }) =>
        (known === null || known.first === hash) &&
        (known?.first === hash || holders.filter((each) => each.hash === hash).length >= 2),
    )
    if (first === undefined) return false
    const { document, possessions } = first
    const at_s = store.seconds()
    const body = { workspace, document, possessions: [...possessions], at_s }
    return policies.record({ kind: 'policy-begun', body })
  }

  /** Notes when a peer saw an item whose effect depends on both peers. */
  #sight(node: number, item: Item, seen_at_s: number): void {
    const name = nameOf(item)
    if (name === null) return
    const seen = this.#sightings.get(name) ?? new Map<number, number>()
    if (this.#sightings.size < NAMES_MAX) this.#sightings.set(name, seen)
    seen.set(node, Math.min(seen.get(node) ?? Infinity, seen_at_s))
  }

  /** Times at which both peers saw an item; null if one of them has not sent it. */
  #witnesses(item: Item): [number, number] | null {
    const [one, two] = [...(this.#sightings.get(nameOf(item) ?? '')?.values() ?? [])]
    return one === undefined || two === undefined ? null : [one, two]
  }

  /** Judges a peer's item now, or at the time at which it was seen if it has expired since. */
  #recordOf(node: number, item: Exclude<Item, { kind: 'first' }>, seen_at_s: number): boolean {
    const now = this.#parts.store.seconds()
    try {
      return this.#record(item, now, node)
    } catch (error) {
      if (!(error instanceof PolicyError) || error.code !== 'EXPIRED') throw error
      // What only prevents something is accepted from one peer; the end of a stop from both.
      const both = this.#witnesses(item)
      const seen =
        item.kind === 'statement'
          ? seen_at_s
          : item.kind === 'resumed' && both
            ? Math.max(...both)
            : now
      if (item.kind === 'change') this.#noteLate(item, seen_at_s)
      if (seen >= now) throw error
      return this.#record(item, seen, node)
    }
  }

  /**
   * Notes a change whose approvals have expired, and which a peer has seen in time. This node cannot
   * accept it by the word of one peer, and must not sign under the document that it replaces.
   */
  #noteLate(item: ItemOf<'change'>, seen_at_s: number): void {
    const { policies } = this.#parts
    if (!policies.isAcceptable(this.#entryOf(item, seen_at_s, this.#parts.node))) return
    this.#late.set(item.workspace, readDocument(item.document).number)
  }

  #record(item: Item, at_s: number, node = this.#parts.node): boolean {
    return this.#parts.policies.record(this.#entryOf(item, at_s, node))
  }

  #entryOf(item: Item, at_s: number, node: number): Judged {
    switch (item.kind) {
      case 'first':
        throw new PolicyError('NOT_ALLOWED', 'kind', 'Only operators enter a first document')
      case 'change': {
        const { kind: _kind, ...body } = item
        return { kind: 'policy-change', body: { ...body, at_s, witnesses: this.#witnesses(item) } }
      }
      case 'statement': {
        const { kind: _kind, ...body } = item
        return { kind: 'policy-statement', body: { ...body, at_s } }
      }
      case 'resumed': {
        const { kind: _kind, ...body } = item
        return { kind: 'policy-resumed', body: { ...body, at_s } }
      }
      case 'confirmed': {
        const { kind: _kind, ...body } = item
        return { kind: 'policy-confirmed', body: { ...body, at_s, node } }
      }
    }
  }
}

const changeName = (workspace: string, hash: string): string =>
  JSON.stringify(['change', workspace, hash])

/** Returns the name by which sightings of both peers belong together; null: they have no effect. */
function nameOf(item: Item): string | null {
  if (item.kind === 'change')
    return changeName(item.workspace, documentHash(readDocument(item.document)))
  if (item.kind === 'resumed')
    return JSON.stringify([
      'resumed',
      item.workspace,
      statementHash(readSigned(item.stop).statement),
    ])
  return null
}

function firstAbove(heights: readonly number[], after: number): number {
  let [low, high] = [0, heights.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (heights[middle]! <= after) low = middle + 1
    else high = middle
  }
  return low
}

function assertFew(node: number, waiting: readonly Sent[]): void {
  const size = waiting.reduce((sum, { item }) => sum + sizeOfItem(item), 0)
  if (waiting.length <= WAITING_MAX && size <= WAITING_CHARACTERS) return
  throw new Refusal('TOO_BUSY', `Node ${node} has sent more about policies than this node can keep`)
}

const unknownFormat = (node: number): Refusal =>
  new Refusal(
    'PEER_UNAVAILABLE',
    `The policies that peer node ${node} has sent have an unknown format`,
    { node },
  )
