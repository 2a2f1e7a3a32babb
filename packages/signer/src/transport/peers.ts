import { inSpan } from '@custody/tracing'
import { hex } from '../canonical.ts'
import type { Config, Peer } from '../config.ts'
import type { Environment } from '../environment.ts'
import { errorAnswer, isCode, Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import type { SeenHead } from '../store/heads.ts'
import type { Store } from '../store/index.ts'
import { BEFORE_HEADS, bytesMaxOf, PING, RECORD, SESSIONS, WHILE_RECOVERING } from './calls.ts'
import { Link, Unreachable } from './client.ts'
import {
  EnvelopeError,
  isProof,
  NO_BINDING,
  open,
  PROTOCOL,
  proofSchema,
  seal,
  VERSION,
  type Binding,
  type Header,
  type Opened,
  type Proof,
} from '../envelope.ts'

export const PAGE_ROWS = 200
/**
 * Maximum time of a ping, and of a question to the third node while a partner waits, in milliseconds.
 * A third node that never answers can delay a signature by no more.
 */
export const THIRD_NODE_MS = 1500

/** Handles a call; returns a body, or one with bytes (`Attached`). */
export type PeerHandler = (
  node: number,
  body: unknown,
  header: Header,
  bytes: Buffer,
) => Promise<unknown>
/** Transports an encrypted message to a peer, and returns its response. */
export type PeerLink = Pick<Link, 'peer' | 'post' | 'close'>

interface Parts {
  config: Config
  store: Store
  environment: Environment
  log: Log
  /**
   * Called before a session's message is processed or answered, and before one is sent.
   * @throws Refusal BANNED
   */
  assertNotBanned: (node: number) => void
  /** Connects to a peer; default: over TLS. */
  link?: (peer: Peer) => PeerLink
}

/**
 * Calls between nodes. Each message is signed and contains the sender's head. A peer whose head
 * goes back, or whose record differs from an earlier one, is rejected until its operator has
 * restored it.
 */
export class Peers {
  readonly #config: Config
  readonly #store: Store
  readonly #environment: Environment
  readonly #log: Log
  readonly #links = new Map<number, PeerLink>()
  readonly #handlers = new Map<string, PeerHandler>()
  /** Start of each peer whose record was compared with the heads that this node has received. */
  readonly #compared = new Map<number, string>()
  /**
   * Start of each peer that was also compared with the heads that the third node has received, or
   * for which the third node was unavailable when this was first needed; its calls are answered.
   */
  readonly #checked = new Map<number, string>()
  readonly #checking = new Map<number, { boot: string; done: Promise<void> }>()
  /**
   * Peers that were compared while the third node was unavailable, with their heads at that time;
   * the third node is queried when it is available again.
   */
  readonly #alone = new Map<number, { header: Header; proof: Proof }>()
  /** Peer processes, by start time, whose record went back; each is logged once. */
  readonly #alerted = new Set<string>()
  /** The highest head of each peer, also across restarts of this node. */
  readonly #latest = new Map<number, SeenHead>()
  readonly #reachable = new Map<number, boolean>()
  /** Head in the last ping that each peer has answered, and the peer's start at that time. */
  readonly #shown = new Map<number, { boot: string; height: number; generation: number }>()
  readonly #assertNotBanned: (node: number) => void
  /**
   * Called before a call is served that may depend on the clock.
   * @throws Refusal
   */
  beforeServing: () => Promise<void> = async () => {}
  /** Returns further fields of this node's pings, and of its answers to pings. */
  pingFields: () => Record<string, unknown> = () => ({})
  /** Called with the body of each ping of a peer, and of each answer to a ping. */
  onPing: (node: number, body: unknown) => void = () => {}
  readonly boot: string

  constructor({
    config,
    store,
    environment,
    log,
    assertNotBanned,
    link = (peer): PeerLink => new Link(config, peer, () => environment.now()),
  }: Parts) {
    this.#config = config
    this.#store = store
    this.#environment = environment
    this.#log = log
    this.#assertNotBanned = assertNotBanned
    this.boot = hex(environment.random(16))
    for (const peer of config.peerList) this.#links.set(peer.node, link(peer))
    for (const { node, proof } of store.heads.read()) this.#remember(node, proof)
    store.heads.source = () => [...this.#latest.values()]
    this.handle(PING, async (node, body) => {
      this.onPing(node, body)
      return { clock: this.#environment.now(), ...this.pingFields() }
    })
    this.handle('/peer/head-of', async (_node, body) => ({
      proof: this.#highest(Number((body as { node: number }).node))?.proof ?? null,
    }))
    this.handle('/peer/generation', async (node) => ({
      generation: this.#highest(node)?.generation ?? 0,
    }))
    this.handle(RECORD, async (_node, body) => ({
      rows: this.#store.record.page(Number((body as { from: number }).from), PAGE_ROWS),
    }))
    this.handle('/peer/hash', async (_node, body) => ({
      hash: this.#store.record.hashAt(Number((body as { height: number }).height)),
    }))
  }

  handle(call: string, handler: PeerHandler): void {
    this.#handlers.set(call, handler)
  }
  get nodes(): number[] {
    return [...this.#links.keys()].sort()
  }
  reachable(node: number): boolean {
    return this.#reachable.get(node) ?? false
  }

  /** Returns the start of a peer that was last compared; null before the first call. */
  bootOf(node: number): string | null {
    return this.#checked.get(node) ?? null
  }

  /** Returns the highest head of this peer, to be recorded with the next step. */
  headOf(node: number): SeenHead | null {
    return this.#latest.get(node) ?? null
  }

  #header(
    {
      to,
      call,
      request,
      response,
      status,
    }: Pick<Header, 'to' | 'call' | 'request' | 'response' | 'status'>,
    binding: Binding,
  ): Header {
    const { record, state } = this.#store
    return {
      protocol: PROTOCOL,
      version: VERSION,
      call,
      request,
      response,
      status,
      ...binding,
      from: this.#config.node,
      to,
      height: record.height,
      head: record.head,
      generation: state.generation,
      boot: this.boot,
    }
  }

  async call<T>(
    node: number,
    call: string,
    body: unknown,
    options: { timeout: number; binding?: Binding },
  ): Promise<T> {
    const { body: answered } = await this.#send(node, call, body, options)
    return answered as T
  }

  /** Sends a call whose response may have attached bytes. */
  exchange(
    node: number,
    call: string,
    said: unknown,
    options: { timeout: number; binding?: Binding },
  ): Promise<{ body: unknown; bytes: Buffer }> {
    return this.#send(node, call, said, options)
  }

  async #send(
    node: number,
    call: string,
    said: unknown,
    { timeout, binding = NO_BINDING }: { timeout: number; binding?: Binding },
  ): Promise<Opened> {
    const link = this.#links.get(node)
    if (!link) throw new Refusal('BAD_ORDER', `Peer ${node} does not exist`)
    this.#assertServed(node, call)
    const request = hex(this.#environment.random(16))
    let answer: Buffer
    try {
      const sealed = seal(
        this.#config.identity,
        this.#header({ to: node, call, request, response: false, status: 0 }, binding),
        said,
      )
      answer = await inSpan(`peer ${call}`, { node: link.peer.node }, () =>
        link.post(call, sealed, timeout, bytesMaxOf(call)),
      )
    } catch (error) {
      if (error instanceof Unreachable) {
        this.#reachable.set(node, false)
        throw new Refusal('PEER_UNAVAILABLE', error.message, { node })
      }
      throw error
    }
    let opened: Opened
    try {
      opened = open(answer, {
        from: node,
        to: this.#config.node,
        call,
        response: true,
        request,
        identity: link.peer.identity,
      })
    } catch (error) {
      if (!(error instanceof EnvelopeError)) throw error
      this.#log('warn', 'a response was not authentic', { peer: node, call, reason: reason(error) })
      throw new Refusal('PEER_UNAVAILABLE', `The response of peer node ${node} ${error.message}`, {
        node,
      })
    }
    this.#reachable.set(node, true)
    await this.#checkHead(node, opened.header, opened.proof, call)
    this.#assertServed(node, call)
    if (opened.header.status !== 200) {
      const {
        error,
        message,
        rule: _rule,
        ...detail
      } = opened.body as { error: unknown; message: unknown; rule: unknown }
      throw new Refusal(
        isCode(error) ? error : 'PEER_UNAVAILABLE',
        typeof message === 'string' ? message.slice(0, 500) : 'The peer rejected the call',
        { ...detail, node: (detail as { node?: number }).node ?? node },
      )
    }
    return opened
  }

  #assertServed(node: number, call: string): void {
    if (SESSIONS.some((prefix) => call.startsWith(prefix))) this.#assertNotBanned(node)
  }

  /** Handles a peer's call for the server. */
  async receive(node: number, path: string, sealed: Buffer): Promise<Buffer> {
    const link = this.#links.get(node)
    if (!link) throw new Refusal('NOT_ALLOWED', 'The peer is unknown')
    let opened: Opened
    try {
      opened = open(sealed, {
        from: node,
        to: this.#config.node,
        call: path,
        response: false,
        identity: link.peer.identity,
      })
    } catch (error) {
      if (error instanceof EnvelopeError)
        throw new Refusal('NOT_ALLOWED', `The envelope ${error.message}`)
      throw error
    }
    const { header } = opened
    const binding: Binding = {
      session: header.session,
      round: header.round,
      key: header.key,
      path: header.path,
      digest: header.digest,
      participants: header.participants,
    }
    let status = 200
    let body: unknown
    try {
      const handler = this.#handlers.get(path)
      if (!handler) throw new Refusal('NOT_FOUND', 'This call does not exist')
      // A comparison of records calls the peer, and must not trigger another comparison.
      if (!BEFORE_HEADS.has(path) && this.#store.state.restoring) {
        throw new Refusal('RESTORING', `Node ${this.#config.node} is being restored`, {
          node: this.#config.node,
        })
      }
      if (this.#store.state.recovering && !WHILE_RECOVERING.has(path)) {
        throw new Refusal('RESTORING', `Node ${this.#config.node} was opened for a recovery`, {
          node: this.#config.node,
        })
      }
      if (!BEFORE_HEADS.has(path)) await this.beforeServing()
      await this.#checkHead(node, header, opened.proof, path)
      this.#assertServed(node, path)
      body = await handler(node, opened.body, header, opened.bytes)
      // Checked again, because the peer may have been proven to cheat in another session since the
      // response was computed.
      this.#assertServed(node, path)
    } catch (error) {
      const answered = errorAnswer(error)
      if (answered.status === 500)
        this.#log('error', 'unexpected error', { call: path, peer: node, reason: reason(error) })
      status = answered.status
      body = answered.body
    }
    return seal(
      this.#config.identity,
      this.#header(
        { to: node, call: path, request: header.request, response: true, status },
        binding,
      ),
      body,
    )
  }

  /** Returns the highest head of a node that this node has ever received. */
  #highest(
    node: number,
  ): { height: number; hash: string; generation: number; proof: Proof | null } | null {
    const recorded = this.#store.state.heads.get(node) ?? null
    const latest = this.#latest.get(node) ?? null
    if (!recorded || !latest) return latest ?? recorded
    const isSame = latest.generation === recorded.generation
    return latest.generation > recorded.generation || (isSame && latest.height >= recorded.height)
      ? latest
      : recorded
  }

  /**
   * Loads a head from this node's own disk. Only the peer's signature makes it valid, whatever the
   * file contains.
   */
  #remember(node: number, stored: unknown): void {
    const link = this.#links.get(node)
    const proof = proofSchema.safeParse(stored)
    if (!link || !proof.success || !isProof(proof.data, node, link.peer.identity)) {
      this.#log('alert', 'the stored head of the record of a peer is not signed by that peer', {
        peer: node,
      })
      return
    }
    this.#raise(node, proof.data.header, proof.data)
  }

  #raise(node: number, header: Header, proof: Proof): void {
    const latest = this.#latest.get(node)
    if (
      !latest ||
      header.generation > latest.generation ||
      (header.generation === latest.generation && header.height > latest.height)
    ) {
      this.#latest.set(node, {
        node,
        height: header.height,
        hash: header.head,
        generation: header.generation,
        proof,
      })
    }
  }

  async #checkHead(node: number, header: Header, proof: Proof, call: string): Promise<void> {
    if (BEFORE_HEADS.has(call) && call !== PING) return
    // Messages may overtake each other within one start of the peer, whose record cannot go back
    // without a restart.
    if (call === PING) {
      // A comparison calls the peer and takes longer than a ping may, so the head counts only after
      // it.
      if (this.#compared.get(node) === header.boot) this.#raise(node, header, proof)
      else
        void this.#met(node, header, proof).then(
          () => {
            this.#raise(node, header, proof)
          },
          () => {},
        )
      this.#askAgain(this.#third(node))
      return
    }
    if (this.#checked.get(node) !== header.boot) {
      const joined = this.#checking.get(node)?.boot === header.boot
      await this.#met(node, header, proof)
      // A comparison that a ping started may have queried the third node before that node was
      // available.
      if (joined && this.#checked.get(node) !== header.boot) await this.#met(node, header, proof)
      // If the third node is unavailable, nothing more can be done: the two nodes continue, and the
      // third is queried when it is available again.
      this.#checked.set(node, header.boot)
    }
    this.#raise(node, header, proof)
  }

  /**
   * Queries the third node, which is available again, for its heads of a node that was compared
   * without it.
   */
  #askAgain(node: number): void {
    const alone = this.#alone.get(node)
    if (alone === undefined || alone.header.boot !== this.#compared.get(node)) return
    this.#met(node, alone.header, alone.proof).catch(() => {})
  }

  #third(node: number): number {
    return this.nodes.find((other) => other !== node)!
  }

  /** Runs one comparison at a time for each start of a peer. */
  #met(node: number, header: Header, proof: Proof): Promise<void> {
    const running = this.#checking.get(node)
    if (running?.boot === header.boot) return running.done
    const done = this.#compare(node, header, proof).finally(() => {
      this.#checking.delete(node)
    })
    this.#checking.set(node, { boot: header.boot, done })
    return done
  }

  #wentBack(node: number, boot: string): Refusal {
    this.#checked.delete(node)
    this.#compared.delete(node)
    if (!this.#alerted.has(`${node} ${boot}`))
      this.#log('alert', "a peer's record was rolled back", { peer: node })
    this.#alerted.add(`${node} ${boot}`)
    return new Refusal(
      'HEAD_WENT_BACK',
      `The record of node ${node} was rolled back: its operator must restore it`,
      { node },
    )
  }

  /**
   * Compares a peer once per start: its record must contain every head that it has shown to this
   * node or, proven by its signature, to the third node. Only a restoration by its operator, which
   * increases the generation, starts a new record.
   */
  async #compare(node: number, header: Header, proof: Proof): Promise<void> {
    const own = this.#highest(node)
    const reported = await this.#askThird(node)
    const existing = [...(own ? [own] : []), ...(reported ?? [])]
    for (const each of existing) {
      // The peer's message to the third node within the same start may have overtaken this one;
      // then only the hash below is compared.
      const overtook = each.proof?.header.boot === header.boot
      const isBehind =
        header.generation === each.generation && header.height < each.height && !overtook
      if (header.generation < each.generation || isBehind) throw this.#wentBack(node, header.boot)
    }
    for (const each of existing.filter((head) => head.generation === header.generation)) {
      const { body, header: answered } = await this.#send(
        node,
        '/peer/hash',
        { height: each.height },
        { timeout: this.#config.timeouts_ms.round },
      )
      if (answered.boot !== header.boot)
        throw new Refusal('PEER_UNAVAILABLE', `Node ${node} was restarted`, { node })
      if ((body as { hash: unknown }).hash !== each.hash) throw this.#wentBack(node, header.boot)
    }
    if (own && header.generation > own.generation) {
      this.#log('alert', 'a peer was restored by its operator', {
        peer: node,
        generation: header.generation,
      })
      this.#store.append('head', {
        node,
        height: header.height,
        hash: header.head,
        generation: header.generation,
        proof,
      })
    }
    this.#compared.set(node, header.boot)
    if (reported === null) this.#alone.set(node, { header, proof })
    else {
      this.#alone.delete(node)
      this.#checked.set(node, header.boot)
    }
  }

  /** Returns the heads that the third node has received; null if it is unavailable. */
  async #askThird(
    node: number,
  ): Promise<{ height: number; hash: string; generation: number; proof: Proof }[] | null> {
    const third = this.#third(node)
    const identity = this.#links.get(node)!.peer.identity
    try {
      const { body } = await this.#send(
        third,
        '/peer/head-of',
        { node },
        { timeout: Math.min(THIRD_NODE_MS, this.#config.timeouts_ms.round) },
      )
      const proof = proofSchema.nullable().parse((body as { proof: unknown }).proof)
      if (!proof || !isProof(proof, node, identity)) return []
      return [
        {
          height: proof.header.height,
          hash: proof.header.head,
          generation: proof.header.generation,
          proof,
        },
      ]
    } catch {
      // The two nodes continue without the third one. A peer that was rolled back is detected by
      // the heads that this node has received, and by those of the third node when it is available
      // again.
      return null
    }
  }

  /**
   * Returns whether a ping would only show that the peer is available: the peer has received this
   * node's head, was compared in its present start, and answered the last ping. The peer sends news
   * by its own pings.
   */
  isQuiet(node: number): boolean {
    const { record, state } = this.#store
    const shown = this.#shown.get(node)
    return (
      this.reachable(node) &&
      this.#alone.size === 0 &&
      shown !== undefined &&
      shown.boot === this.#compared.get(node) &&
      shown.height === record.height &&
      shown.generation === state.generation
    )
  }

  /**
   * Pings peers for the status, and so that each node soon receives the others' heads.
   * @param nodes nodes to ping
   */
  async ping(nodes: readonly number[] = this.nodes): Promise<void> {
    await Promise.all(
      nodes.map(async (node) => {
        const {
          record: { height },
          state: { generation },
        } = this.#store
        try {
          const { header, body } = await this.#send(node, PING, this.pingFields(), {
            timeout: THIRD_NODE_MS,
          })
          this.onPing(node, body)
          this.#shown.set(node, { boot: header.boot, height, generation })
        } catch {
          this.#reachable.set(node, false)
        }
      }),
    )
  }

  close(): void {
    for (const link of this.#links.values()) link.close()
  }
}
