import { PolicyError, readDocument, type Governance } from '@custody/policy'
import type { KeyObject } from 'node:crypto'
import { z } from 'zod'
import { Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import { resetWordSchema } from '../store/entries/governance.ts'
import { count } from '../store/entries/values.ts'
import type { Store } from '../store/index.ts'
import type { Peers } from '../transport/peers.ts'
import type { Held } from './held.ts'
import type { ItemOf } from './items.ts'
import type { Policies } from './policies.ts'
import { hashOfText, isReady, RESET_WAIT_S, type Reset, type ResetBody } from './reset-rules.ts'
import { isResetWord, signReset, type SignedResetWord } from './word.ts'

const RESETS = '/peer/policy/resets'
/** Maximum number of resets that a node sends, and of claims of a peer that are remembered. */
const RESETS_MAX = 1000
/** Time between two log entries about new resets of a peer, in milliseconds. */
const LOG_PERIOD_MS = 60_000

/**
 * A reset at a node. `acts_at`: Unix seconds, null while statements are missing. `is_ready`: its seven
 * days have passed there. `is_in_force`: its document is, or was, in force there.
 */
const stateSchema = z.object({
  word: resetWordSchema,
  acts_at: count.nullable(),
  is_ready: z.boolean(),
  is_in_force: z.boolean(),
})
type State = z.infer<typeof stateSchema>
const answerSchema = z.object({ resets: z.array(stateSchema).max(RESETS_MAX) })

/** A peer's statement that a reset is in force there. */
interface Claim {
  readonly hash: string
  readonly previous: string
  /** It contains a signature of this node, by which the operator of this node has entered it. */
  readonly isSignedHere: boolean
}

interface OfPeer {
  /** What the peer has sent last, with correct signatures. */
  states: readonly State[]
  /** Its resets may have changed since they were read. */
  isStale: boolean
  isWarned: boolean
  loggedAt: number
  readonly claims: Map<string, Claim>
}

/** What a node shows about a reset that waits. Times in Unix seconds. */
export interface ResetView {
  /** The reset as this node's operator has entered it; null if they have not. */
  readonly number: number | null
  readonly hash: string | null
  readonly document: string | null
  readonly given_by: readonly { node: number; hash: string; given_at: number }[]
  /** When it comes into force; null while the operators of all nodes have not entered the same one. */
  readonly acts_at: number | null
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
 * Resets of policies. If too few people are left to change a policy, the operators of all three nodes
 * enter its next document. It comes into force when all three nodes state that seven days have passed
 * since they had the statements of all three. Each node sends its own statement only, so a peer cannot
 * repeat that of another node.
 */
export class Resets {
  readonly #parts: Parts
  readonly #peers = new Map<number, OfPeer>()
  /** Hashes of the resets entered here, by workspace, up to a number of entries of the record. */
  #own = { entries: -1, hashes: new Map<string, string>() }
  #isActing = false
  /** Called after an entry was recorded. */
  onRecorded: () => void = () => undefined

  constructor(parts: Parts) {
    this.#parts = parts
    for (const node of parts.peers.nodes)
      this.#peers.set(node, {
        states: [],
        isStale: true,
        isWarned: false,
        loggedAt: -Infinity,
        claims: new Map(),
      })
    parts.peers.handle(RESETS, async () => ({ resets: this.#states().slice(0, RESETS_MAX) }))
  }

  /**
   * Records a reset as the operator of this node has entered it.
   * @returns whether it was new
   * @throws PolicyError
   */
  enter({ workspace, document, possessions }: ResetBody): boolean {
    const { policies, store, log } = this.#parts
    const body = { workspace, document, possessions: [...possessions], at_s: store.seconds() }
    const isNew = policies.record({ kind: 'policy-reset-typed', body })
    const hash = hashOfText(document)
    if (isNew) log('alert', 'the operator has entered a reset of a policy', { workspace, hash })
    return isNew
  }

  /**
   * Withdraws the reset that the operator of this node has entered.
   * @returns whether there was one
   */
  withdraw(workspace: string): boolean {
    const { policies, store, log } = this.#parts
    const hash = policies.held(workspace).reset?.hash
    if (hash === undefined) return false
    const body = { workspace, hash, at_s: store.seconds() }
    policies.record({ kind: 'policy-reset-withdrawn', body })
    log('warn', 'the operator has withdrawn the reset of a policy', { workspace, hash })
    return true
  }

  /**
   * Reads the resets of a peer if they may have changed, or if one waits here, and continues with
   * those that wait. A failure is logged, and repeated at the next call.
   * @param isNews whether the peer has recorded something about a policy
   */
  async hear(node: number, isNews: boolean): Promise<void> {
    const peer = this.#peers.get(node)!
    if (isNews) peer.isStale = true
    if (!peer.isStale && this.#ownHashes().size === 0) return
    try {
      await this.#read(node)
      this.#complete()
      await this.#act()
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (!peer.isWarned)
        this.#parts.log('warn', 'the resets of policies at a peer could not be read', {
          peer: node,
          reason: reason(error),
        })
      peer.isWarned = true
    }
  }

  /** Notes that a peer's record is read from the beginning. */
  forget(node: number): void {
    const peer = this.#peers.get(node)!
    peer.isStale = true
    peer.claims.clear()
  }

  /**
   * Checks that all three nodes have signed statements about a reset that is in force at a peer, which
   * this node sends to others.
   * @throws PolicyError `SIGNATURE`
   */
  assertWords({ workspace, document, words }: ItemOf<'reset'>): void {
    const hash = hashOfText(document)
    for (const node of this.#parts.identities.keys()) {
      const isSigned = (word: SignedResetWord) =>
        word.workspace === workspace && word.hash === hash && this.#isOf(node, word)
      if (!words.some(isSigned))
        throw new PolicyError('SIGNATURE', 'words', `the statement of node ${node} is missing`)
    }
  }

  /** Notes that a peer has the document of a reset in force, which this node does not accept. */
  noteInForce(node: number, { workspace, document, words }: ItemOf<'reset'>): void {
    const { claims } = this.#peers.get(node)!
    if (!claims.has(workspace) && claims.size >= RESETS_MAX) return
    const { previous } = readDocument(document)
    const hash = hashOfText(document)
    const isSignedHere = words.some(
      (word) =>
        word.hash === hash && word.workspace === workspace && this.#isOf(this.#parts.node, word),
    )
    claims.set(workspace, { hash, previous, isSignedHere })
  }

  /**
   * Returns the node that has a reset in force which this node had to put in force too: its seven days
   * have passed here, or this node has signed it before it was restored. Null if there is none.
   */
  missedAt({ policy: { document, hash } }: Governance): number | null {
    const { policies, store } = this.#parts
    for (const [node, { claims }] of this.#peers) {
      const claim = claims.get(document.workspace)
      if (claim?.previous !== hash) continue
      const { reset, enteredResets } = policies.held(document.workspace)
      const isOpen = reset?.hash === claim.hash && isReady(reset, store.seconds())
      const isForgotten = claim.isSignedHere && !enteredResets.includes(claim.hash)
      if (isOpen || isForgotten) return node
    }
    return null
  }

  /** @throws Refusal `POLICY_BEHIND` as {@link missedAt} */
  assertNotMissed(governance: Governance): void {
    const node = this.missedAt(governance)
    if (node === null) return
    throw new Refusal(
      'POLICY_BEHIND',
      `Node ${node} has the policy ${governance.policy.document.number + 1} of a reset in force, which this node does not have: compare "signer policy show", and use "signer policy follow"`,
      { node },
    )
  }

  /** Returns the reset of a workspace that waits here or at a peer; null if there is none. */
  of(workspace: string): ResetView | null {
    const { policies, node } = this.#parts
    const { reset, chain } = policies.held(workspace)
    const others = this.#statesOfPeers(workspace).filter(
      ({ word }) => !chain.some(({ hash }) => hash === word.hash),
    )
    if (reset === null && others.length === 0) return null
    const given = others.map(({ word: { node: by, hash, given_at } }) => ({
      node: by,
      hash,
      given_at,
    }))
    if (reset) given.push({ node, hash: reset.hash, given_at: reset.given_at_s })
    return {
      number: reset?.number ?? null,
      hash: reset?.hash ?? null,
      document: reset?.document ?? null,
      given_by: given.sort((a, b) => a.node - b.node),
      acts_at: reset === null ? null : actsAtOf(reset, this.#statesOf(workspace, reset)),
    }
  }

  /** Number of workspaces of which a reset waits here or at a peer. */
  count(): number {
    const workspaces = new Set(this.#ownHashes().keys())
    for (const { states } of this.#peers.values())
      for (const { word } of states) workspaces.add(word.workspace)
    return [...workspaces].filter((workspace) => this.#isWaiting(workspace)).length
  }

  #isWaiting(workspace: string): boolean {
    try {
      return this.of(workspace) !== null
    } catch (error) {
      if (error instanceof Refusal) return false
      throw error
    }
  }

  #statesOfPeers(workspace: string): State[] {
    return [...this.#peers.values()].flatMap(({ states }) =>
      states.filter(({ word }) => word.workspace === workspace),
    )
  }

  /** Returns what each peer has sent about a reset; undefined if it has sent nothing. */
  #statesOf(workspace: string, { hash, number }: Reset): (State | undefined)[] {
    return [...this.#peers.values()].map(({ states }) =>
      states.find(
        ({ word }) => word.workspace === workspace && word.hash === hash && word.number === number,
      ),
    )
  }

  #isOf(node: number, word: SignedResetWord): boolean {
    const identity = this.#parts.identities.get(node)
    return word.node === node && identity !== undefined && isResetWord(identity, word)
  }

  /** Returns what this node states to its peers. */
  #states(): State[] {
    const { policies } = this.#parts
    return policies.workspaces.flatMap((workspace) => {
      try {
        return this.#ownStates(workspace, policies.held(workspace))
      } catch (error) {
        if (error instanceof Refusal) return []
        throw error
      }
    })
  }

  #ownStates(workspace: string, { reset, chain }: Held): State[] {
    const { node, store } = this.#parts
    const latest = chain.findLast(({ resetBy }) => resetBy !== undefined)
    const word = latest?.resetBy?.find((each) => each.node === node)
    const inForce = word
      ? [{ word, acts_at: latest!.acts_at_s, is_ready: true, is_in_force: true }]
      : []
    if (reset === null) return inForce
    const waiting = {
      word: this.#wordOf(workspace, reset),
      acts_at: reset.complete && reset.complete.at_s + RESET_WAIT_S,
      is_ready: isReady(reset, store.seconds()),
      is_in_force: false,
    }
    return [...inForce, waiting]
  }

  #wordOf(workspace: string, { number, hash, given_at_s: given_at }: Reset): SignedResetWord {
    const { node, identity } = this.#parts
    return signReset(identity, { node, workspace, number, hash, given_at })
  }

  /** Returns the hashes of the resets that wait here, and logs those that have ended. */
  #ownHashes(): ReadonlyMap<string, string> {
    const { policies, store, log } = this.#parts
    const entries = store.state.policyHeights.length
    if (entries === this.#own.entries) return this.#own.hashes
    const before = this.#own.hashes
    const hashes = new Map<string, string>()
    for (const workspace of policies.workspaces) {
      const hash = this.#hashOf(workspace)
      if (hash !== null) hashes.set(workspace, hash)
    }
    this.#own = { entries, hashes }
    for (const [workspace, hash] of before)
      if (hashes.get(workspace) !== hash)
        log('warn', 'a reset of a policy does not wait any more', { workspace, hash })
    return hashes
  }

  #hashOf(workspace: string): string | null {
    try {
      return this.#parts.policies.held(workspace).reset?.hash ?? null
    } catch (error) {
      if (error instanceof Refusal) return null
      throw error
    }
  }

  /** @throws Refusal `PEER_UNAVAILABLE` */
  async #read(node: number): Promise<void> {
    const { peers, timeoutMs } = this.#parts
    const peer = this.#peers.get(node)!
    let answer: unknown
    try {
      answer = await peers.call(node, RESETS, {}, { timeout: timeoutMs })
    } catch (error) {
      // A peer of an earlier version has no resets.
      if (!(error instanceof Refusal) || error.code !== 'NOT_FOUND') throw error
      answer = { resets: [] }
    }
    const parsed = answerSchema.safeParse(answer)
    if (!parsed.success)
      throw new Refusal(
        'PEER_UNAVAILABLE',
        `The resets of policies that peer node ${node} has sent have an unknown format`,
        { node },
      )
    this.#logNew(node, parsed.data.resets, peer)
    const valid = parsed.data.resets.filter(({ word }) => this.#isOf(node, word))
    // A node states at most one reset that waits, and one that is in force, of each workspace.
    const states = new Map(
      valid.map((each) => [JSON.stringify([each.word.workspace, each.is_in_force]), each]),
    )
    peer.states = [...states.values()]
    peer.isStale = false
    peer.isWarned = false
  }

  /** Logs the first reset of a peer that is new, at most once in a minute. */
  #logNew(node: number, states: readonly State[], peer: OfPeer): void {
    const known = new Set(peer.states.map(({ word }) => `${word.workspace} ${word.hash}`))
    const isNew = ({ word, is_in_force }: State) =>
      !is_in_force && !known.has(`${word.workspace} ${word.hash}`)
    const first = states.find(isNew)
    const now = this.#parts.monotonic()
    if (first === undefined || now - peer.loggedAt < LOG_PERIOD_MS) return
    peer.loggedAt = now
    const { workspace, hash } = first.word
    const fields = { peer: node, workspace, hash }
    this.#parts.log('alert', 'the operator of a peer has entered a reset of a policy', fields)
  }

  /** Returns the statements of all nodes for a reset; null if one is missing. */
  #wordsFor(workspace: string, reset: Reset): SignedResetWord[] | null {
    const words = [this.#wordOf(workspace, reset)]
    for (const state of this.#statesOf(workspace, reset)) {
      if (state === undefined) return null
      words.push(state.word)
    }
    return words.sort((a, b) => a.node - b.node)
  }

  /** Records which resets have the statements of all nodes. Their seven days begin. */
  #complete(): void {
    const { policies, store, log } = this.#parts
    for (const workspace of this.#ownHashes().keys()) {
      const { reset } = policies.held(workspace)
      if (reset === null || reset.complete !== null) continue
      const words = this.#wordsFor(workspace, reset)
      if (words === null) continue
      const { hash } = reset
      const body = { workspace, hash, at_s: store.seconds(), words }
      policies.record({ kind: 'policy-reset-complete', body })
      log('alert', 'all operators have entered a reset of a policy', { workspace, hash })
      this.onRecorded()
    }
  }

  /** Puts resets in force for which all nodes state that seven days have passed. @throws Refusal */
  async #act(): Promise<void> {
    if (this.#isActing || !this.#readyWorkspaces().length) return
    this.#isActing = true
    try {
      await Promise.all(this.#parts.peers.nodes.map((node) => this.#read(node)))
      for (const workspace of this.#readyWorkspaces()) this.#begin(workspace)
    } finally {
      this.#isActing = false
    }
  }

  #readyWorkspaces(): string[] {
    const { policies, store } = this.#parts
    return [...this.#ownHashes().keys()].filter((workspace) => {
      const { reset } = policies.held(workspace)
      return reset !== null && isReady(reset, store.seconds())
    })
  }

  #begin(workspace: string): void {
    const { policies, store, log } = this.#parts
    const { reset } = policies.held(workspace)
    if (!reset?.complete) return
    const isAt = (state: State | undefined) =>
      state?.is_ready === true || state?.is_in_force === true
    if (!this.#statesOf(workspace, reset).every(isAt)) return
    const { document, possessions, hash } = reset
    const common = { workspace, document, possessions: [...possessions] }
    const body = { ...common, words: [...reset.complete.words], at_s: store.seconds() }
    try {
      if (!policies.record({ kind: 'policy-reset-begun', body: { ...body, is_known: false } }))
        return
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      const fields = { workspace, hash, reason: error.message }
      log('alert', 'a reset of a policy cannot come into force', fields)
      return
    }
    log('alert', 'a reset of a policy came into force', { workspace, hash })
    this.onRecorded()
  }
}

/** Returns when a reset comes into force at the last node; null while statements are missing. */
function actsAtOf({ complete }: Reset, others: readonly (State | undefined)[]): number | null {
  const times = others.map((state) => state?.acts_at ?? null)
  if (complete === null || times.some((time) => time === null)) return null
  return Math.max(complete.at_s + RESET_WAIT_S, ...times.map(Number))
}
