import { signing, type SigningItem } from '@custody/chains'
import { hex } from '../../../../signer/src/canonical.ts'
import {
  NO_BINDING,
  open,
  seal,
  type Binding,
  type Header,
} from '../../../../signer/src/envelope.ts'
import { hashOfUnsigned } from '@custody/request-auth/orders'
import { type Order, type Verdict } from '../../../../signer/src/policy/order.ts'
import { isSilent, type RoundMessages } from '../../../../signer/src/sessions/batch.ts'
import {
  bindingOf,
  participantsOf,
  sessionIds,
  unsignedOf,
} from '../../../../signer/src/signing/items.ts'
import { roundsOf, withRounds } from '../../../../signer/src/signing/rounds.ts'
import { registry } from '../../../../signer/testing/signer-cluster.ts'
import type { SignSession, Vault } from './engine-types.ts'
import type { Surroundings } from './honest-node.ts'
import { RULE } from './policy-document.ts'

/** An answer of a peer: status 200, or a refusal. */
export interface PeerAnswer {
  status: number
  body: Record<string, unknown>
  bytes: Buffer
}

/** The hostile node has no record; its head is that of an empty one. */
const EMPTY_HEAD = '0'.repeat(64)
/** Timeout of calls to peers; the hostile node has no hurry. */
const CALL_TIMEOUT_MS = 20_000

/** The hostile node's side of a session, for all items of its orders. */
export class HostileSession {
  readonly orders: readonly Order[]
  readonly binding: Binding
  readonly items: readonly SigningItem[]
  readonly #runs: SignSession[]
  /** Rounds that this side has computed and not sent. */
  readonly unsent: RoundMessages[] = []
  readonly id: string
  round = 0
  /** How it behaves as partner: after how many messages it stops, and whether it sends rounds singly. */
  manner = { isSplit: false, stopAfter: Infinity }
  /** Whether the hostile node has the signatures. */
  isFinished = false

  constructor(
    around: Surroundings,
    node: number,
    o: { orders: readonly Order[]; other: number; fresh: readonly [string, string]; epoch: number },
  ) {
    this.orders = o.orders
    const { verdicts, items, binding, participants } = shapeOf(around, o.orders, node, o.other)
    this.items = items
    this.binding = binding
    const keyId = binding.key
    const ids = sessionIds(
      {
        key: keyId,
        epoch: o.epoch,
        participants,
        fresh: o.fresh,
        unsigned: unsignedOf(verdicts),
      },
      items.length,
    )
    this.id = hex(ids[0]!)
    const engine = around.signatures.engineOf(node)
    this.#runs = items.map((item, at) =>
      engine.startSign({
        vault: {} as Vault,
        key: around.keys.shareOf(node, keyId),
        sessionId: new Uint8Array(ids[at]!),
        participants,
        path: [...item.path],
        message: item.message,
        isVerifiedByCaller: true,
      }),
    )
  }

  async start(): Promise<void> {
    await this.#step(() => [])
  }

  /** Processes rounds of the other side, and computes what follows. */
  async receive(rounds: readonly RoundMessages[], from: number): Promise<void> {
    for (const round of rounds)
      await this.#step((at) => (round[at] ?? []).map((payload) => ({ from, payload })))
  }

  async #step(inbox: (item: number) => { from: number; payload: Uint8Array }[]): Promise<void> {
    const steps = await Promise.all(this.#runs.map((run, at) => run.step(inbox(at))))
    this.isFinished = steps.every(({ kind }) => kind === 'done')
    const messages = steps.map((step) => step.messages.map(({ payload }) => payload))
    if (!isSilent(messages)) this.unsent.push(messages)
  }
}

/** Returns what identifies a session about orders; the rules of the orders are not evaluated. */
function shapeOf({ keys }: Surroundings, orders: readonly Order[], node: number, other: number) {
  const { curve } = registry.network(orders[0]!.unsigned.network)!
  const key = keys.certified[curve]
  const items = orders.flatMap(({ unsigned }) => signing(registry, unsigned, key.publicKeyAt))
  const verdicts = orders.map((order) => ({
    order,
    key,
    unsignedHash: hashOfUnsigned(order.unsigned),
  })) as unknown as Verdict[]
  const participants = participantsOf(node, other)
  const binding = bindingOf(verdicts, items, '', 0, participants)
  return { verdicts, items, binding, participants }
}

const withRule = (order: Order): Order =>
  order.purpose.kind === 'pay' ? { ...order, policy: { ...order.policy, via: RULE } } : order

/** The peer protocol as a node speaks it that judges and records nothing. */
export class HostileProtocol {
  readonly node: number
  readonly #around: Surroundings
  readonly #random: (length: number) => Uint8Array
  /** Hash of the policy in force; null: the workspace has none. */
  policyHash: string | null = null
  /** Position up to which it claims to have policies on record. */
  policyPosition = { generation: 0, height: 0 }

  constructor(node: number, around: Surroundings, random: (length: number) => Uint8Array) {
    this.node = node
    this.#around = around
    this.#random = random
  }

  #header(fields: Partial<Header> & Pick<Header, 'to' | 'call' | 'request'>): Header {
    return {
      protocol: 'custody/peer',
      version: 1,
      response: false,
      status: 0,
      ...NO_BINDING,
      from: this.node,
      height: 0,
      head: EMPTY_HEAD,
      generation: 0,
      boot: 'hostile',
      ...fields,
    }
  }

  /** Calls a peer. @throws Unreachable */
  async call(
    to: number,
    call: string,
    body: unknown,
    binding: Binding = NO_BINDING,
  ): Promise<PeerAnswer> {
    const { keys, network, nodes } = this.#around
    const request = hex(this.#random(16))
    const header = this.#header({ to, call, request, ...binding })
    const sealed = seal(keys.identityOf(this.node), header, body)
    const target = () => nodes.get(to)!
    const answer = await network.call(
      target,
      () => target().peer(this.node, call, sealed),
      CALL_TIMEOUT_MS,
    )
    const opened = open(answer, {
      from: to,
      to: this.node,
      call,
      response: true,
      request,
      identity: keys.identities.get(to)!,
    })
    return {
      status: opened.header.status,
      body: opened.body as Record<string, unknown>,
      bytes: opened.bytes,
    }
  }

  /** Opens a call of a peer. */
  read(
    from: number,
    call: string,
    sealed: Buffer,
  ): { header: Header; body: unknown; bytes: Buffer } {
    const identity = this.#around.keys.identities.get(from)!
    return open(sealed, { from, to: this.node, call, response: false, identity })
  }

  answer(header: Header, status: number, body: unknown): Buffer {
    const { session, round, key, path, digest, participants } = header
    return seal(
      this.#around.keys.identityOf(this.node),
      this.#header({
        to: header.from,
        call: header.call,
        request: header.request,
        response: true,
        status,
        session,
        round,
        key,
        path,
        digest,
        participants,
      }),
      body,
    )
  }

  /**
   * Opens a session at a peer.
   * @param extras further fields of the order's message, as they came from the platform
   * @returns the session, or the peer's answer if it opened none
   */
  async open(
    to: number,
    orders: readonly Order[],
    extras: object = {},
  ): Promise<HostileSession | PeerAnswer> {
    const fresh = hex(this.#random(32))
    const { binding } = shapeOf(this.#around, orders, this.node, to)
    const allowed = this.policyHash === null ? orders : orders.map(withRule)
    const subject = allowed.length === 1 ? { order: allowed[0] } : { orders: allowed }
    const answer = await this.call(
      to,
      '/peer/sign/open',
      { ...extras, ...subject, fresh, epoch: 0, ...this.#told() },
      binding,
    )
    const theirs = answer.body['fresh']
    if (answer.status !== 200 || typeof theirs !== 'string') return answer
    const epoch = answer.body['epoch'] as number
    const session = new HostileSession(this.#around, this.node, {
      orders,
      other: to,
      fresh: [fresh, theirs],
      epoch,
    })
    await session.start()
    await session.receive(roundsOf(answer.body['messages'] as number[][][], answer.bytes), to)
    return session
  }

  /** What a leader sends about its record and its policy; this node has recorded nothing. */
  #told(): object {
    if (this.policyHash === null) return {}
    const clock = this.#around.clock.nowMs
    const nothing = { generation: 0, height: 0 }
    const position = this.policyPosition
    return {
      spending: { clock, generation: 0, known: nothing, from: 0, to: 0, steps: [], pending: [] },
      policy: { position, hash: this.policyHash },
    }
  }

  /** Opens the session that a peer leads, and returns the answer to its first message. */
  async join(
    header: Header,
    body: { order?: Order; orders?: Order[]; fresh: string; epoch: number },
    isSilentAtFirst: boolean,
  ): Promise<{ session: HostileSession; answer: Buffer }> {
    const fresh = hex(this.#random(32))
    const session = new HostileSession(this.#around, this.node, {
      orders: body.orders ?? [body.order!],
      other: header.from,
      fresh: [body.fresh, fresh],
      epoch: body.epoch,
    })
    await session.start()
    const rounds = isSilentAtFirst ? [] : session.unsent.splice(0)
    const answer = this.answer(header, 200, withRounds({ fresh, epoch: body.epoch }, rounds))
    return { session, answer }
  }

  /** Sends the next message of a session that this node leads. @param count of rounds in it */
  async say(session: HostileSession, to: number, count: number): Promise<PeerAnswer> {
    const rounds = session.unsent.splice(0, count)
    const answer = await this.call(to, '/peer/sign/round', withRounds({ batch: 0 }, rounds), {
      ...session.binding,
      session: session.id,
      round: ++session.round,
    })
    if (answer.status === 200)
      await session.receive(roundsOf(answer.body['messages'] as number[][][], answer.bytes), to)
    return answer
  }

  /** Ends a session at the peer by a message that does not belong to it. */
  async end(session: HostileSession, to: number): Promise<void> {
    await this.call(to, '/peer/sign/round', withRounds({ batch: 99 }, []), {
      ...session.binding,
      session: session.id,
      round: session.round + 1,
    })
  }
}
