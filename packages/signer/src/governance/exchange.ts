import {
  LIMITS,
  PolicyError,
  readDocument,
  type Governance,
  type PolicyErrorCode,
} from '@custody/policy'
import type { KeyObject } from 'node:crypto'
import { z } from 'zod'
import { Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import { count } from '../store/entries/values.ts'
import type { Store } from '../store/index.ts'
import type { Peers } from '../transport/peers.ts'
import { Attempts } from './attempts.ts'
import { entryOf } from './entries.ts'
import { isEnded, LATE } from './expired-items.ts'
import { FirstDocuments } from './firsts.ts'
import type { Held } from './held.ts'
import { chainsOfPeers, onChains } from './follow.ts'
import { Forgeries, Freshness } from './freshness.ts'
import { itemGeneration, ItemPages, readPage, Unproven, type Sent } from './item-pages.ts'
import type { Item, ItemOf, Judged } from './items.ts'
import type { Policies } from './policies.ts'
import { pingSchema, positionSchema, type Position, type PolicyTold } from './positions.ts'
import { Resets } from './resets.ts'
import { Sightings } from './sightings.ts'
import { WaitingItems, type Facts, type Judgement } from './waiting.ts'

const ITEMS = '/peer/policy/items'
const NEWS = '/peer/policy/news'
/** Maximum number of workspaces of each peer that are counted as having another policy there. */
const APART_MAX = 10_000
/** Maximum number of pages that are read in a row from a peer. */
const PAGES_MAX = 10_000
const FORGED: ReadonlySet<PolicyErrorCode> = new Set<PolicyErrorCode>(['PASSKEY', 'SIGNATURE'])
/** Seconds after which an item is judged again whose time was in the future. */
const PERIOD_S = 60
/**
 * Time after which the policies of a peer are read again before an order is judged, in milliseconds,
 * if the peer has not been read since.
 */
const SILENCE_MAX_MS = 24 * 60 * 60 * 1000

interface Peer {
  known: Position
  /** Elapsed milliseconds when this node had last read all of the peer's items; null: not yet. */
  heardAt: number | null
  /** A failure was logged, and this node has not read all of the peer's items since. */
  isWarned: boolean
  reading: Promise<void> | null
  /** Items that were refused, and that may be accepted after others. */
  waiting: WaitingItems
  /** Numbers of documents that it has in force and that were seen too late here, by workspace. */
  readonly late: Map<string, number>
  readonly forgeries: Forgeries
  /** Workspaces whose policies differed when the two nodes last compared them. */
  readonly apart: Set<string>
}

interface Parts {
  node: number
  /** Private identity key of this node, and the public ones of all nodes. */
  identity: KeyObject
  identities: ReadonlyMap<number, KeyObject>
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
  readonly #firsts: FirstDocuments
  readonly resets: Resets
  readonly #sightings = new Sightings()
  /** Numbers of the values that this node has held, to recognize a value. */
  readonly #heldNumbers = new WeakMap<Held, number>()
  #heldCount = 0
  readonly #freshness: Freshness
  readonly #attempts: Attempts

  constructor(parts: Parts) {
    this.#parts = parts
    this.#freshness = new Freshness(parts)
    this.#attempts = new Attempts(parts.monotonic)
    this.#firsts = new FirstDocuments(parts)
    this.resets = new Resets(parts)
    this.resets.onRecorded = () => {
      this.#retry()
      void this.announce()
    }
    const pages = new ItemPages(parts)
    for (const node of parts.peers.nodes)
      this.#peers.set(node, {
        known: { generation: 0, height: 0 },
        heardAt: null,
        isWarned: false,
        reading: null,
        waiting: new WaitingItems(),
        late: new Map(),
        forgeries: new Forgeries(node, parts.monotonic),
        apart: new Set(),
      })
    parts.peers.handle(ITEMS, async (_node, body) =>
      pages.page(z.strictObject({ after: count }).parse(body).after),
    )
    onChains(parts)
    parts.peers.handle(NEWS, async (node, body) => {
      await this.hear(node, positionSchema.parse(body))
      return {}
    })
  }

  /** Position of this node's newest entry about a policy; undefined if there is none. */
  position(): Position | undefined {
    const { store } = this.#parts
    const height = store.state.policyHeights.at(-1)
    return height === undefined ? undefined : { generation: itemGeneration(store), height }
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
    const { policy } = parsed.data
    if (policy && this.#freshness.isIgnored(node, policy)) return
    this.hear(node, policy).catch((error: unknown) => {
      this.#warn(node, error)
    })
  }

  /** Returns what this node sends its partner; empty if this node has no policy on record. */
  tell(hash: string | null): { policy?: PolicyTold } {
    const position = this.position()
    return position === undefined ? {} : { policy: { position, hash } }
  }

  /**
   * Checks that both nodes of a pair judge by the same document.
   * @param theirs hash of the partner's; null: none
   * @throws Refusal `POLICY_BEHIND`
   */
  assertSame(workspace: string, partner: number, theirs: string | null, own: string | null): void {
    const { apart } = this.#peers.get(partner)!
    if (theirs === own) {
      apart.delete(workspace)
      return
    }
    if (apart.size < APART_MAX) apart.add(workspace)
    throw new Refusal(
      'POLICY_BEHIND',
      `Node ${this.#parts.node} and node ${partner} have different policies in force for the workspace`,
      { node: this.#parts.node },
    )
  }

  /**
   * Returns the number of workspaces for which this node signs nothing because its policy is late, or
   * signs nothing with a peer because their policies differed the last time that they compared them.
   */
  countApart(): number {
    const { policies } = this.#parts
    const apart = new Set([...this.#peers.values()].flatMap((peer) => [...peer.apart]))
    for (const workspace of policies.workspaces)
      if (!policies.isCurrent(workspace, (governance) => this.#lateNumber(governance) === 0))
        apart.add(workspace)
    return apart.size
  }

  /** Peers that claim policies which they do not send, so that their claims are ignored. */
  unproven(): number[] {
    return this.#freshness.unproven()
  }

  /**
   * Reads what a peer has recorded, if this node has not read it yet.
   * @param position position of the peer's newest entry; undefined: it has none
   * @throws Refusal
   */
  async hear(node: number, position: Position | undefined): Promise<void> {
    const peer = this.#peers.get(node)!
    const isKnown = (): boolean =>
      position === undefined ||
      (peer.known.generation === position.generation && peer.known.height >= position.height)
    const isNews = !isKnown()
    try {
      // A read that had begun before may have ended below that position.
      for (let times = 0; times < 2 && !isKnown(); times++) await this.#read(node)
      if (!isKnown()) throw new Unproven(node)
    } catch (error) {
      if (position && error instanceof Unproven) this.#freshness.noteUnproven(node, position)
      throw error
    }
    // Time alone can have made an item acceptable.
    this.#retryAndAnnounce()
    this.#noteRead(node, peer)
    await this.resets.hear(node, isNews)
  }

  /**
   * Checks that this node knows of no later document, and that a restored node has read the policies
   * of both peers or has its operator's decision. A silent peer stops no other node, because this
   * node's own record is sufficient.
   * @throws Refusal `POLICY_BEHIND`
   */
  assertCurrent(governance: Governance): void {
    const { document, hash } = governance.policy
    const accepted = this.#parts.store.state.policyReading.acceptedOf(document.workspace)
    const late = this.#lateNumber(governance)
    if (late > 0 && !(accepted?.hash === hash && accepted.late >= late)) {
      this.resets.assertNotMissed(governance)
      throw new Refusal(
        'POLICY_BEHIND',
        `This node has seen the policy ${document.number + 1} too late, and waits until both other nodes have confirmed it or its delay has passed`,
      )
    }
    const [node] = this.#freshness.awaited()
    if (node === undefined || this.#isOnChain(document.workspace, accepted?.hash)) return
    throw new Refusal(
      'POLICY_BEHIND',
      `This node has not read the policies of node ${node} since it was restored: start node ${node}, or accept the policy in force here by the command "signer policy accept"`,
      { node },
    )
  }

  #isOnChain(workspace: string, hash: string | undefined): boolean {
    const { chain } = this.#parts.policies.held(workspace)
    return chain.some((each) => each.hash === hash)
  }

  /**
   * Reads the policies of peers that this node has not read for long, as after a start. A peer that
   * cannot be reached is left out.
   */
  async prepare(): Promise<void> {
    const unheard = [...this.#peers].filter(([node]) => !this.#isHeard(node))
    await Promise.all(
      unheard.map(([node, peer]) =>
        this.#attempts.make(node, async () => {
          try {
            await this.#read(node)
            this.#noteRead(node, peer)
          } catch (error) {
            this.#warn(node, error)
          }
        }),
      ),
    )
  }

  #noteRead(node: number, peer: Peer): void {
    peer.heardAt = this.#parts.monotonic()
    peer.isWarned = false
    this.#freshness.noteRead(node)
  }

  /**
   * Logs that a peer's policies could not be read, once until they have been read again. A hostile
   * peer could otherwise cause a line with each of its pings.
   */
  #warn(node: number, error: unknown): void {
    const peer = this.#peers.get(node)!
    if (peer.isWarned) return
    peer.isWarned = true
    this.#parts.log('warn', 'the policies of a peer could not be read', {
      peer: node,
      reason: reason(error),
    })
  }

  #isHeard(node: number): boolean {
    const { heardAt } = this.#peers.get(node)!
    return heardAt !== null && this.#parts.monotonic() - heardAt <= SILENCE_MAX_MS
  }

  /**
   * Returns the number of a later document that is in force at a peer and that this node has seen too
   * late or does not have; 0 if it knows of none.
   */
  #lateNumber(governance: Governance): number {
    const { policy, next } = governance
    const { workspace, number, change } = policy.document
    const late = [...this.#peers.values()].map((peer) => peer.late.get(workspace) ?? 0)
    const latest = Math.max(...late)
    if (latest > number) return latest
    if (this.resets.missedAt(governance) !== null) return number + 1
    if (next === null || next.vetoedBy !== null) return 0
    if (next.approved_for_s > this.#parts.store.seconds()) return 0
    const isSeen = this.#sightings
      .ofChange(workspace, next.policy.hash)
      .some((at) => at + change.delay_s <= next.approved_for_s + LIMITS.sightSlackS)
    return isSeen ? number + 1 : 0
  }

  /**
   * Replaces what differs here from the policy that both peers have in force, after a change reached
   * only a part of the nodes. Reads from the peers what they recorded instead.
   * @param hash of the document that the peers have in force, as the operator entered it
   * @returns whether that changed something
   * @throws PolicyError `OTHER_POLICY` if a peer has another document in force
   * @throws Refusal `PEER_UNAVAILABLE`
   */
  async follow(workspace: string, hash: string): Promise<boolean> {
    const { policies, store } = this.#parts
    const chain = await chainsOfPeers(this.#parts, workspace, hash)
    const body = { workspace, at_s: store.seconds(), chain }
    const isNew = policies.record({ kind: 'policy-followed', body })
    for (const [node, { known }] of this.#peers) this.#forget(node, known.generation)
    await Promise.all(
      [...this.#peers].map(async ([node, peer]) => {
        await this.#read(node)
        this.#noteRead(node, peer)
      }),
    )
    return isNew
  }

  /**
   * Records the operator's decision that this node signs by the policy in force here, although it has
   * not read the policies of a peer or knows of a later document. It also holds after a restart and
   * for documents that come into force after it here, until this node is restored again.
   */
  accept(workspace: string, hash: string): void {
    const { policies, store } = this.#parts
    const { governance } = policies.held(workspace)
    const late = governance === null ? 0 : this.#lateNumber(governance)
    const accepted = store.state.policyReading.acceptedOf(workspace)
    if (accepted?.hash === hash && accepted.late >= late) return
    store.append('policy-accepted', { workspace, hash, late })
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
    this.#firsts.enter(item)
  }

  /** Removes the policy of a workspace at this node. @returns whether there was one */
  remove(workspace: string): boolean {
    return this.#firsts.remove(workspace)
  }

  /**
   * Informs both peers of this node's newest entry.
   * @returns the peers that have read it
   */
  async announce(): Promise<number[]> {
    const { peers, timeoutMs, log } = this.#parts
    const position = this.position()
    if (position === undefined) return []
    const informed = await Promise.all(
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
    return informed.flat()
  }

  /** First documents of this node and its peers, by node; for the operator. */
  firstsOf(workspace: string): { node: number; hash: string }[] {
    return this.#firsts.of(workspace)
  }

  /** Lets a peer's items be read again from the beginning. */
  #forget(node: number, generation: number): void {
    const peer = this.#peers.get(node)!
    peer.known = { generation, height: 0 }
    peer.waiting = new WaitingItems()
    peer.late.clear()
    this.resets.forget(node)
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
      peer.forgeries.assertFew()
      const after = peer.known.height
      const answer = await peers.call(node, ITEMS, { after }, { timeout: timeoutMs })
      const { generation, to, is_last, items } = readPage(node, answer)
      // Meanwhile this node began to read the peer from the beginning.
      if (peer.known.height !== after) continue
      if (generation !== peer.known.generation) {
        // The peer was restored, or follows its peers now: it is read from the beginning.
        this.#forget(node, generation)
        if (after > 0) continue
      }
      if (!is_last && to <= after) throw new Unproven(node)
      const isAll = items.every((sent) => peer.waiting.add(sent))
      if (isAll) peer.known = { generation, height: Math.max(after, to) }
      this.#retryAndAnnounce()
      if (!isAll)
        throw new Refusal(
          'TOO_BUSY',
          `Node ${node} has sent more about policies than this node can keep`,
        )
      if (is_last) return
    }
    throw new Unproven(node)
  }

  #retryAndAnnounce(): void {
    const before = this.position()?.height
    this.#retry()
    if (this.position()?.height !== before) void this.announce()
  }

  /** Judges the waiting items of all peers until none of them is accepted any more. */
  #retry(): void {
    for (let isProgress = true; isProgress;) {
      isProgress = false
      for (const [node, { waiting }] of this.#peers)
        if (
          waiting.judge(
            (item) => this.#factsOf(item),
            (sent) => this.#take(node, sent),
          )
        )
          isProgress = true
    }
  }

  /** Returns what the judgement of an item depends on. */
  #factsOf(item: Item): Facts {
    const period = Math.floor(this.#parts.store.seconds() / PERIOD_S)
    try {
      const held = this.#parts.policies.held(item.workspace)
      const known = this.#heldNumbers.get(held) ?? ++this.#heldCount
      this.#heldNumbers.set(held, known)
      const state = `${known} ${this.#sightings.byBoth(item)?.join() ?? ''}`
      return { state, period, number: held.governance?.policy.document.number ?? 0 }
    } catch (error) {
      if (error instanceof PolicyError || error instanceof Refusal)
        return { state: error.code, period, number: 0 }
      throw error
    }
  }

  #take(node: number, { item, seen_at_s, is_held }: Sent): Judgement {
    try {
      if (item.kind === 'first') return this.#firsts.add(node, item) ? 'recorded' : 'known'
      // The change is not in force at the peer; what ended it follows in the peer's record.
      if ((item.kind === 'change' || item.kind === 'reset') && !is_held) return 'known'
      this.#sightings.add(node, item, seen_at_s)
      return this.#recordOf(node, item, seen_at_s) ? 'recorded' : 'known'
    } catch (error) {
      if (error instanceof PolicyError && FORGED.has(error.code))
        this.#peers.get(node)!.forgeries.note()
      // A refusal: the policy of this workspace cannot be read; those of others can.
      if (error instanceof PolicyError || error instanceof Refusal) return error
      throw error
    }
  }

  /** Judges a peer's item now, or at the time at which it was seen if it has expired since. */
  #recordOf(node: number, item: Exclude<Item, { kind: 'first' }>, seen_at_s: number): boolean {
    const now = this.#parts.store.seconds()
    try {
      return this.#record(item, now, node)
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      if (item.kind === 'approved') return this.#recordMissed(node, item, error)
      if (item.kind === 'reset') this.resets.noteInForce(node, item)
      if (item.kind === 'change' && LATE.has(error.code)) this.#noteLate(node, item, seen_at_s)
      if (error.code !== 'EXPIRED') throw error
      // What only prevents something is accepted from one peer; the end of a stop from both.
      const both = this.#sightings.byBoth(item)
      const seen =
        item.kind === 'statement'
          ? seen_at_s
          : item.kind === 'resumed' && both
            ? Math.max(...both)
            : now
      if (seen >= now || isEnded(item, now)) throw error
      return this.#record(item, seen, node)
    }
  }

  /**
   * Records approvals that both peers recorded while this node was away. One of the peers is honest,
   * so the approvals were valid by the later of both times.
   * @param error why they are refused now
   * @throws PolicyError `error` if a peer does not have them
   */
  #recordMissed(node: number, item: ItemOf<'approved'>, error: PolicyError): boolean {
    const both = this.#sightings.byBoth(item)
    if (both === null || !MISSED.has(error.code)) throw error
    const at_s = Math.min(this.#parts.store.seconds(), Math.max(...both))
    const receipt = { at_s, node, witnesses: null, byBoth: true }
    return this.#parts.policies.record(entryOf(item, receipt))
  }

  /**
   * Notes a change which a peer has seen in time, and whose approvals have expired or whose keys are
   * revoked or suspended since then. This node cannot accept it on the statement of one peer, and must
   * not sign under the document that it replaces.
   */
  #noteLate(node: number, item: ItemOf<'change'>, seen_at_s: number): void {
    const { late } = this.#peers.get(node) ?? {}
    const { number } = readDocument(item.document)
    if (late === undefined || late.get(item.workspace) === number) return
    // As both peers would have to state it: without what has happened since then.
    const witnesses: [number, number] = [seen_at_s, seen_at_s]
    const entry = entryOf(item, { at_s: seen_at_s, node, witnesses, byBoth: false })
    if (this.#parts.policies.isAcceptable(entry)) late.set(item.workspace, number)
  }

  #record(item: Item, at_s: number, node = this.#parts.node): boolean {
    if (item.kind === 'reset') this.resets.assertWords(item)
    return this.#parts.policies.record(this.#entryOf(item, at_s, node))
  }

  #entryOf(item: Item, at_s: number, node: number): Judged {
    const witnesses = item.kind === 'change' ? this.#sightings.byBoth(item) : null
    return entryOf(item, { at_s, node, witnesses, byBoth: false })
  }
}

/** Reasons for which approvals of a standing rule are refused that were valid at an earlier time. */
const MISSED: ReadonlySet<PolicyErrorCode> = new Set<PolicyErrorCode>([
  'EXPIRED',
  'KEY_SUSPENDED',
  'OTHER_POLICY',
])
