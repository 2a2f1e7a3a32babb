import { loadRegistry, signing, type SigningItem, type UnsignedTransaction } from '@custody/chains'
import { openKeys, readKeyFile } from '@custody/key-encryption'
import type { KeyMaterial, Vault } from '@custody/threshold'
import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:https'
import { join } from 'node:path'
import { openShare, shiftedShare, type Signing } from '../../threshold/testing/opened-share.ts'
import { hex, sha256, sha256hex } from '../src/canonical.ts'
import { loadConfig, type Config } from '../src/config.ts'
import { NO_BINDING, seal, type Binding, type Header } from '../src/envelope.ts'
import { bindingOf, keyFileOf, openDataDir, kekContextOf } from '../src/kek/data-dir.ts'
import { hashOfUnsigned } from '@custody/request-auth/orders'
import type { Bans } from '../src/sessions/bans.ts'
import { Batch, type RoundMessages } from '../src/sessions/batch.ts'
import { nativeEngine } from '../src/sessions/engine.ts'
import { sessionIds } from '../src/signing/items.ts'
import { roundsOf, withRounds } from '../src/signing/rounds.ts'
import { Store } from '../src/store/index.ts'
import { writeFrame } from '../src/transport/channel.ts'
import { Link } from '../src/transport/client.ts'
import { takesCalls } from './channels.ts'
import type { SignerCluster, Json, Workspace } from './signer-cluster.ts'

/**
 * Node 1 is compromised: the test has its home, keys, port and opened share. It calls the honest
 * nodes as node 1 and answers their calls. The messages are those of the real engine, modified by
 * `change`.
 */
export interface Order {
  workspace: string
  purpose: unknown
  unsigned: UnsignedTransaction
}

/**
 * Returns the bytes to send in place of this party's message of a round. `heard`: the messages that
 * the honest party has sent so far, by round.
 */
export type Change = (said: {
  round: number
  payload: Uint8Array
  received: readonly Uint8Array[]
  signing: Signing
}) => Uint8Array
const unchanged: Change = ({ payload }) => payload

/** `height`: height of the answering node's record when it sent this answer. */
export interface Answer {
  status: number
  body: Json
  bytes: Buffer
  height: number
}

/** A session that is open at an honest node, and the local engine for it. */
export interface Session {
  to: number
  id: string
  binding: Binding
  run: Batch
  signing: Signing
  /** Unchanged messages of the local engine, by round from 1 on; and those of the other party. */
  mine: Uint8Array[]
  received: Uint8Array[]
  change: Change
  rounds: number
}

const LINKS = 2
const TIMEOUT_MS = 180_000

/** A registry of bans that allows every session and never bans a node. */
const NO_BANS = {
  assertNot: () => {},
  consider: () => {},
  endsWith: () => () => {},
  check: (_node: number, step: () => Promise<unknown>) => step(),
} as unknown as Bans

export class CheatingNode {
  readonly #cluster: SignerCluster
  readonly #workspace: Workspace
  readonly #config: Config
  readonly #vault: Vault
  readonly #sealing: { name: string; key: Uint8Array }
  readonly #material: KeyMaterial
  readonly #store: Store
  readonly #boot = randomUUID()
  readonly #links = new Map<number, Link[]>()
  readonly #answering = new Map<string, Session>()
  readonly #server: Server
  #calls = 0
  /** How node 1 answers in a session that another node leads. */
  answers: Change = unchanged
  /** Whether the local engine uses a share that is one more than the real one. */
  hasOtherShare = false
  /**
   * Each call of an honest node that continues a session: the number of rounds it contains, and the
   * height of the node's record at that time.
   */
  readonly rounds: { height: number; rounds: number }[] = []

  private constructor(o: {
    cluster: SignerCluster
    workspace: Workspace
    config: Config
    vault: Vault
    sealing: { name: string; key: Uint8Array }
    store: Store
  }) {
    this.#cluster = o.cluster
    this.#workspace = o.workspace
    this.#config = o.config
    this.#vault = o.vault
    this.#sealing = o.sealing
    this.#store = o.store
    this.#material = o.store.shareOf(
      o.workspace.set.key_id,
      o.store.state.keys.get(o.workspace.set.key_id)!.epoch,
    )!
    const { tlsKey: key, tlsCertificate: cert, peerList } = o.config
    this.#server = createServer({
      key,
      cert,
      ca: peerList.map(({ certificate }) => certificate),
      requestCert: true,
    })
    takesCalls(this.#server, ({ path, sealed }, stream) => {
      const end = sealed.indexOf(0x0a)
      const received = JSON.parse(
        sealed.toString('utf8', 0, end === -1 ? sealed.length : end),
      ) as Json
      const bytes = end === -1 ? Buffer.alloc(0) : sealed.subarray(end + 1)
      this.#answer(path, received.header, JSON.parse(received.payload), bytes)
        .then(
          (said) => ({ said, status: 200 }),
          (error: Error) => ({
            said: { error: 'SESSION_ABORTED', message: error.message },
            status: 503,
          }),
        )
        .then(
          ({ said, status }) => {
            const { from, request } = received.header
            writeFrame(
              stream,
              seal(
                this.#config.identity,
                this.#header(from, path, { request, response: true, status }),
                said,
              ),
            )
          },
          () => {
            stream.destroy()
          },
        )
    })
  }

  /** @param stop stops node 1, which is running */
  static async takeOver(
    cluster: SignerCluster,
    workspace: Workspace,
    stop: (node: number) => Promise<unknown>,
  ): Promise<CheatingNode> {
    await stop(1)
    const { home, port } = cluster.peers.nodes[0]!
    const config = loadConfig(home)
    const [sealing] = await openKeys(
      readKeyFile(keyFileOf(home)),
      kekContextOf(home, process.env),
      bindingOf(config),
    )
    const store = new Store(join(home, 'record.sqlite'), () => Date.now())
    const node = new CheatingNode({
      cluster: cluster,
      workspace,
      config,
      store,
      vault: await openDataDir(home, config, process.env),
      sealing: sealing!,
    })
    await new Promise<void>((resolve) => {
      node.#server.listen(port, '127.0.0.1', resolve)
    })
    return node
  }

  close(): void {
    for (const link of [...this.#links.values()].flat()) link.close()
    this.#server.closeAllConnections()
    this.#server.close()
    this.#store.close()
  }

  #header(to: number, call: string, more: Partial<Header>): Header {
    const { height, head } = this.#store.record
    return {
      protocol: 'custody/peer',
      version: 1,
      call,
      request: randomBytes(16).toString('hex'),
      response: false,
      status: 0,
      ...NO_BINDING,
      from: 1,
      to,
      height,
      head,
      generation: 0,
      boot: this.#boot,
      ...more,
    }
  }

  /** Calls an honest node as node 1. Any number of calls can run concurrently. */
  async say(
    to: number,
    call: string,
    said: unknown,
    binding: Binding = NO_BINDING,
  ): Promise<Answer> {
    let links = this.#links.get(to)
    if (!links) {
      const peer = this.#config.peerList.find(({ node }) => node === to)!
      links = Array.from({ length: LINKS }, () => new Link(this.#config, peer, Date.now))
      this.#links.set(to, links)
    }
    const link = links[this.#calls++ % LINKS]!
    const answer = await link.post(
      call,
      seal(this.#config.identity, this.#header(to, call, binding), said),
      TIMEOUT_MS,
      64 * 2 ** 20,
    )
    const end = answer.indexOf(0x0a)
    const text = JSON.parse(answer.toString('utf8', 0, end === -1 ? answer.length : end)) as Json
    const bytes = end === -1 ? Buffer.alloc(0) : answer.subarray(end + 1)
    if (!text.payload) return { status: 500, body: text, bytes, height: 0 }
    return {
      status: text.header.status,
      body: JSON.parse(text.payload),
      bytes,
      height: text.header.height,
    }
  }

  #items(unsigned: UnsignedTransaction): SigningItem[] {
    return signing(loadRegistry('local'), unsigned, this.#workspace.publicKeyAt)
  }

  #session(o: {
    to: number
    unsigned: UnsignedTransaction
    leads: boolean
    theirs: string
    mine: string
    epoch: number
    change: Change
  }): Session {
    const items = this.#items(o.unsigned)
    const participants: [number, number] = [1, o.to]
    const ids = sessionIds(
      {
        key: this.#workspace.set.key_id,
        epoch: o.epoch,
        participants,
        fresh: o.leads ? [o.mine, o.theirs] : [o.theirs, o.mine],
        unsigned: hashOfUnsigned(o.unsigned),
      },
      items.length,
    )
    const own = this.#store.shareOf(this.#workspace.set.key_id, o.epoch) ?? this.#material
    const key = this.hasOtherShare ? shiftedShare(this.#sealing, own) : own
    const run = new Batch({
      engine: nativeEngine,
      vault: this.#vault,
      bans: NO_BANS,
      key,
      items,
      sessionIds: ids,
      participants,
      partner: o.to,
    })
    const [item] = items as [SigningItem]
    return {
      to: o.to,
      id: hex(ids[0]!),
      binding: { ...this.#bindingOf(o.unsigned, o.to), session: hex(ids[0]!) },
      run,
      signing: { share: openShare(this.#sealing, key), path: item.path, digest: item.message },
      mine: [],
      received: [],
      change: o.change,
      rounds: 0,
    }
  }

  /**
   * Opens the test signature of the key's last refresh at an honest node. Its rounds overlap: the
   * answer to the first call is the honest node's first round, and the honest node checks the
   * received message afterwards.
   */
  async openTest(change: Change, to = 2): Promise<{ answer: Answer; say: () => Promise<Answer> }> {
    const keyId = this.#workspace.set.key_id
    const { epoch, session } = this.#store.state.prepared.get(keyId)!
    const name = { key_id: keyId, epoch, session }
    const mine = randomBytes(32).toString('hex')
    const answer = await this.say(to, '/peer/test/open', { ...name, fresh: mine })
    if (answer.status !== 200) return { answer, say: async () => answer }
    const participants: [number, number] = [1, to]
    const digest = new Uint8Array(
      sha256('custody/refresh-test/v1\n', JSON.stringify([keyId, epoch])),
    )
    const id = sha256(
      'custody/pair-test-session/v1\n',
      JSON.stringify(['refresh', keyId, epoch, session, participants, [mine, answer.body.fresh]]),
    )
    const key = this.#store.shares.read(keyId, epoch, session)!
    const item = { path: [], publicKey: this.#workspace.key.publicKey, message: digest }
    const run = new Batch({
      engine: nativeEngine,
      vault: this.#vault,
      bans: NO_BANS,
      key,
      items: [item],
      sessionIds: [id],
      participants,
      partner: to,
    })
    const signing = { share: openShare(this.#sealing, key), path: [], digest }
    let inbox: RoundMessages | null = null
    let round = 0
    return {
      answer,
      say: async () => {
        // The local engine does not know which messages were sent as node 1: after the first round
        // it may have no message.
        const own = await run.step(inbox).catch(() => null)
        const payload = own
          ? change({ round: round + 1, payload: firstOf(own), received: [], signing })
          : randomBytes(10)
        const binding = {
          ...NO_BINDING,
          session: hex(id),
          round: ++round,
          key: keyId,
          digest: hex(digest),
          participants,
        }
        const said = await this.say(
          to,
          '/peer/test/round',
          { messages: [[Buffer.from(payload).toString('base64')]] },
          binding,
        )
        if (said.status === 200)
          inbox = [[Buffer.from(said.body.messages[0][0] as string, 'base64')]]
        return said
      },
    }
  }

  #bindingOf(unsigned: UnsignedTransaction, to: number): Binding {
    const items = this.#items(unsigned)
    return {
      session: '',
      round: 0,
      key: this.#workspace.set.key_id,
      path: sha256hex(JSON.stringify(items.map((item) => item.path))),
      digest: sha256hex(JSON.stringify(items.map((item) => hex(item.message)))),
      participants: [1, to],
    }
  }

  /**
   * Opens a session at an honest node, or is refused. The engine's first message is created
   * immediately, but not sent.
   */
  async open(
    order: Order,
    {
      to = 2,
      epoch = 0,
      change = unchanged,
    }: { to?: number; epoch?: number; change?: Change } = {},
  ): Promise<{ answer: Answer; session: Session | null }> {
    const mine = randomBytes(32).toString('hex')
    const answer = await this.say(
      to,
      '/peer/sign/open',
      {
        order,
        fresh: mine,
        epoch,
        authorisation: this.#cluster.authorise(1, '/sign', { ...order, partner: to }),
      },
      this.#bindingOf(order.unsigned, to),
    )
    if (answer.status !== 200 || answer.body.fresh === undefined) return { answer, session: null }
    const { fresh: theirs, epoch: agreed, messages } = answer.body
    const session = this.#session({
      to,
      unsigned: order.unsigned,
      leads: true,
      theirs,
      mine,
      epoch: agreed,
      change,
    })
    await this.#next(session, null)
    session.received.push(...roundsOf(messages, answer.bytes).map(firstOf))
    return { answer, session }
  }

  /** Passes a round to the engine and stores this side's next message. */
  async #next(session: Session, received: RoundMessages | null): Promise<void> {
    session.mine.push(firstOf(await session.run.step(received)))
  }

  /** Returns the message of a round as this side sends it. */
  said(session: Session, round: number): Uint8Array {
    return session.change({
      round,
      payload: session.mine[round - 1]!,
      received: session.received,
      signing: session.signing,
    })
  }

  /** Sends one round, with the given messages, in a session that this side opened. */
  async round(session: Session, messages: readonly Uint8Array[]): Promise<Answer> {
    const binding = { ...session.binding, round: ++session.rounds }
    return this.say(session.to, '/peer/sign/round', withRounds({ batch: 0 }, [[messages]]), binding)
  }

  /** Sends this side's messages of a round, and processes the answer for the next one. */
  async next(session: Session, round: number): Promise<Answer> {
    const answer = await this.round(session, [session.mine[round - 1]!])
    if (answer.status !== 200) return answer
    await this.#next(session, [[session.received.at(-1)!]])
    session.received.push(...roundsOf(answer.body.messages, answer.bytes).map(firstOf))
    return answer
  }

  /**
   * Runs the leading side to the end, with each message modified by `change`. @returns the answer
   * that ended the session
   */
  async converse(session: Session): Promise<Answer> {
    for (let round = 1; ; round++) {
      const answer = await this.round(session, [this.said(session, round)])
      if (answer.status !== 200 || round === 3) return answer
      const received = roundsOf(answer.body.messages, answer.bytes)
      if (received.length === 0) return answer
      // The other party's messages of the previous round are processed only now, because its next
      // message depends on them.
      await this.#next(session, [[session.received.at(-1)!]])
      session.received.push(...received.map(firstOf))
    }
  }

  /**
   * Returns this side's messages of a session in which both parties were honest, up to the third
   * message, which is not sent.
   */
  async archive(order: Order, to = 2): Promise<readonly Uint8Array[]> {
    const { session } = await this.open(order, { to })
    for (const round of [1, 2]) {
      await this.next(session!, round)
    }
    session!.run.abort()
    return session!.mine
  }

  async #answer(call: string, header: Header, body: Json, bytes: Buffer): Promise<unknown> {
    if (call === '/peer/hash') return { hash: this.#store.record.hashAt(body.height) }
    if (call === '/peer/nonce') return { nonce: null }
    if (call === '/peer/fuelled') return { fuel: [], fees: [] }
    if (call === '/peer/sign/open') {
      const mine = randomBytes(32).toString('hex')
      const session = this.#session({
        to: header.from,
        unsigned: body.order.unsigned,
        leads: false,
        theirs: body.fresh,
        mine,
        epoch: body.epoch,
        change: this.answers,
      })
      await this.#next(session, null)
      this.#answering.set(session.id, session)
      return withRounds({ fresh: mine, epoch: body.epoch }, [[[this.said(session, 1)]]])
    }
    if (call !== '/peer/sign/round') return {}
    const session = this.#answering.get(header.session)!
    const received = roundsOf(body.messages, bytes)
    this.rounds.push({ height: header.height, rounds: received.length })
    session.received.push(...received.map(firstOf))
    // Sends one round at a time, although two would be possible, so that this side has received the
    // other party's message of the round in which it cheats.
    const round = session.mine.length + 1
    if (round > 3) return withRounds({ batch: 0 }, [])
    await this.#next(session, [[session.received[round - 2]!]])
    return withRounds({ batch: 0 }, [[[this.said(session, round)]]])
  }

  /** An honest node leads a session in which this node is the partner. */
  lead(order: Order, by = 2): Promise<{ status: number; body: Json }> {
    return this.#cluster.post(by, '/sign', { ...order, partner: 1 })
  }
}

const firstOf = (round: RoundMessages): Uint8Array => round[0]![0]!
