import { fromHeader, ORDER_HEADER } from '@custody/request-auth/orders'
import { OrderHeaders } from '../../../src/core/signing/order-header.ts'
import { orderSchema, type Order } from '../../../../signer/src/policy/order.ts'
import { canonicalBytes, hex, signBytes } from '../../../../signer/src/canonical.ts'
import { Attached, type Header } from '../../../../signer/src/envelope.ts'
import { roundsOf, withRounds } from '../../../../signer/src/signing/rounds.ts'
import { bytesOf, type SeededRandom } from '../seeded-random.ts'
import type { Attack } from './attacks.ts'
import type { Chain } from './chain.ts'
import { NODES, PLATFORM_PEM, WORKSPACE } from './cluster-keys.ts'
import type { SignResult } from './engine-types.ts'
import { HostileProtocol, HostileSession, type PeerAnswer } from './hostile-sessions.ts'
import type { SimulatedNode, Surroundings } from './honest-node.ts'
import type { Known } from './signatures.ts'
import { Process } from './virtual-clock.ts'
import { SUB_ACCOUNT, type Code, type Place, type Wallets } from './wallets.ts'

/** Refusals that are final for a pair, and those that are temporary. */
const FINAL = ['SHAPE', 'AMOUNT_MISMATCH', 'NOT_EXCLUSIVE', 'POLICY_DENIED'] as const
const TEMPORARY = ['TOO_BUSY', 'BUDGET', 'POLICY_STOPPED', 'RESTORING'] as const
/** Refusals after which the platform builds the transaction again. */
const REBUILDING = ['POLICY_WINDOW', 'POLICY_APPROVAL', 'NONCE_GAP', 'TOO_BUSY'] as const
/** Sweeps that it opens at most at each node. */
const SWEEPS = 60
/** Sessions that a flood opens and ends. */
const FLOOD = 150
/** Interval of the hostile node's own actions. */
const ACTION_MS = 30_000
/** Number of its own actions after which they become rare, which keeps a run short. */
const ACTIONS = 40
const RARE_ACTION_MS = 600_000
const NEVER_MS = 10_000_000
const CALL_MS = 10_000

/** An order that the hostile node has seen, with further fields of the message that contained it. */
interface SeenOrder {
  order: Order
  extras: object
}

/** A payment that a hostile platform orders as it likes. */
export interface OfferedPayment {
  code: Code
  amount: bigint
  purpose: object
  step: string
}

interface Answer {
  status: number
  body: unknown
}

/**
 * A hostile node with the real identity and share of its number. It speaks the peer protocol and
 * answers the platform, and draws from the seed what it does at each occasion.
 */
export class HostileNode implements SimulatedNode {
  readonly node: number
  readonly name: string
  readonly process = new Process('hostile node')
  readonly #around: Surroundings
  readonly #random: SeededRandom
  readonly #attacks: ReadonlySet<Attack>
  readonly #protocol: HostileProtocol
  readonly #chain: Chain
  readonly #wallets: Wallets
  readonly #seen: SeenOrder[] = []
  readonly #sessions = new Map<string, HostileSession>()
  /** Sessions that it led or joined, which it may have finished. */
  readonly #all: HostileSession[] = []
  #sweeps = 0
  #hasFlooded = false
  /** Whether it never follows the protocol where an attack fits. */
  readonly #isStubborn: boolean
  readonly counts = new Map<string, number>()
  /** Payments that callers requested, and that only a hostile platform orders. */
  readonly offered: readonly OfferedPayment[]

  constructor(
    node: number,
    around: Surroundings,
    o: {
      random: SeededRandom
      attacks: readonly Attack[]
      chain: Chain
      wallets: Wallets
      offered: readonly OfferedPayment[]
    },
  ) {
    this.offered = o.offered

    this.node = node
    this.name = `node ${node} (hostile)`
    this.#around = around
    this.#random = o.random
    this.#attacks = new Set(o.attacks)
    this.#isStubborn = o.random.below(3) === 0
    this.#chain = o.chain
    this.#wallets = o.wallets
    this.#protocol = new HostileProtocol(node, around, bytesOf('hostile node'))
    if (this.#attacks.has('policy-position')) this.#protocol.policyPosition.height = 1_000_000
  }

  /** Lets it state the policy that is in force. */
  set policyHash(hash: string) {
    this.#protocol.policyHash = hash
  }

  get #others(): number[] {
    return NODES.filter((node) => node !== this.node)
  }

  start(): void {
    this.#around.clock.as(this.process, () => void this.#act())
  }

  #note(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1)
    this.#around.log(`hostile: ${what}`)
  }

  /** Draws one of the attacks that are switched on and fit the occasion; null: none. */
  #draw(attacks: readonly Attack[]): Attack | null {
    const fitting = attacks.filter((attack) => this.#attacks.has(attack))
    if (fitting.length === 0) return null
    const drawn = this.#random.below(fitting.length + (this.#isStubborn ? 0 : 1))
    return fitting[drawn] ?? null
  }

  // The platform's calls.

  async platform(path: string, text: string, order: string | undefined): Promise<Answer> {
    if (path === '/status') return { status: 200, body: {} }
    const body = JSON.parse(text) as Record<string, unknown>
    if (path === '/void') return this.#void(body)
    if (path === '/withdraw') return this.#withdraw(body)
    const { orders, partner, ...rest } = ordersOf(body)
    const authorisation = fromHeader(order)
    const extras = { ...rest.extras, ...(authorisation ? { authorisation } : {}) }
    for (const order of orders) this.#seen.push({ order, extras })
    const attack = this.#draw([
      'silence',
      'garbage',
      'refuse',
      'withhold',
      'split',
      'replay',
      'attribution',
      'variants',
      'false-voids',
    ])
    if (attack) this.#note(`${attack} as leader`)
    switch (attack) {
      case 'silence':
        await this.#around.clock.sleep(NEVER_MS)
        break
      case 'garbage':
        return { status: 200, body: this.#random.below(2) === 0 ? {} : wrongSignatures(orders) }
      case 'refuse':
        return refusal(this.#random.of(this.#random.below(2) === 0 ? FINAL : TEMPORARY))
      case 'attribution':
        return refusal(this.#random.of(FINAL), { node: partner })
      case 'replay':
        return this.#refuseUntouched(partner)
      case 'variants':
        await this.#openVariant()
        return refusal('TOO_BUSY')
      case 'false-voids':
        // The first message suffices to finish; the platform is to give the payment up.
        await this.#sign(orders, partner, { extras, stopAfter: 1 })
        return refusal(this.#random.of(FINAL), { node: partner })
      default:
    }
    return this.#lead(orders, partner, extras, attack)
  }

  /** Refuses as if nothing had begun, in its own name or in that of its partner. */
  #refuseUntouched(partner: number): Answer {
    const code = this.#random.of(REBUILDING)
    const node = this.#attacks.has('attribution') ? partner : this.node
    return refusal(code, code === 'NONCE_GAP' ? { unrecorded: this.node } : { node })
  }

  async #lead(
    orders: readonly Order[],
    partner: number,
    extras: object,
    attack: Attack | null,
  ): Promise<Answer> {
    const isSplit = attack === 'split'
    const stopAfter = attack === null ? Infinity : this.#random.below(3)
    const outcome = await this.#sign(orders, partner, { extras, isSplit, stopAfter })
    if (attack !== null) {
      if (this.#random.below(2) === 0) await this.#around.clock.sleep(NEVER_MS)
      return refusal('SESSION_ABORTED', {}, 503)
    }
    if (outcome === 'finished') return { status: 200, body: this.#signaturesOf(orders) }
    if (outcome === null) return refusal('PEER_UNAVAILABLE', { node: partner }, 503)
    // A refusal of the partner, as an honest leader passes it on.
    const { status, body } = outcome
    return { status, body: { ...body, node: partner } }
  }

  #signaturesOf(orders: readonly Order[]): unknown {
    const wire = orders.map((order) => {
      const { results } = this.#known(order)
      return { signatures: results.map((each) => wireOf(each!)), signed: {} }
    })
    return wire.length === 1 ? wire[0] : { run: wire }
  }

  #known({ unsigned, purpose }: Order): Known {
    const existing = this.#around.signatures.note(unsigned, JSON.stringify(purpose))
    return existing
  }

  /**
   * Leads a session.
   * @param o.stopAfter number of messages after which it stops
   * @returns the peer's refusal; null: the peer did not answer, or the session stopped
   */
  async #sign(
    orders: readonly Order[],
    to: number,
    o: { extras?: object; isSplit?: boolean; stopAfter?: number },
  ): Promise<'finished' | PeerAnswer | null> {
    const { extras = {}, isSplit = false, stopAfter = Infinity } = o
    try {
      const session = await this.#protocol.open(to, orders, extras)
      if (!(session instanceof HostileSession))
        return session.status === 200 ? this.#recorded(orders, session) : session
      this.#all.push(session)
      for (let sent = 0; sent < stopAfter && session.unsent.length > 0; sent++) {
        const answer = await this.#protocol.say(session, to, isSplit ? 1 : session.unsent.length)
        if (answer.status !== 200) return answer
      }
      return session.isFinished ? 'finished' : null
    } catch (error) {
      this.#around.log(`hostile: no answer: ${(error as Error).message}`)
      return null
    }
  }

  /** Keeps signatures that a peer has on record. */
  #recorded(orders: readonly Order[], { body }: PeerAnswer): 'finished' | null {
    if (!Array.isArray(body['recorded'])) return null
    return orders.every((order) => !this.#known(order).results.includes(null)) ? 'finished' : null
  }

  // Voids.

  /** States that it has signed nothing, whatever it can finish. */
  #withdraw({ hashes, until }: Record<string, unknown>): Answer {
    const statement = { node: this.node, hashes, until, signed: [], complete_since: 0 }
    const bytes = Buffer.from(`custody/order-withdrawn/v1\n${JSON.stringify(statement)}`)
    const signature = signBytes(this.#around.keys.identityOf(this.node), bytes)
    return { status: 200, body: { statement, signature } }
  }

  #void(body: Record<string, unknown>): Answer {
    const request = body['request'] as { token: string } | undefined
    const about = this.#all.filter(({ orders }) =>
      orders.some(({ purpose }) => JSON.stringify(purpose).includes(request?.token ?? '?')),
    )
    const isLying = this.#attacks.has('false-voids')
    if (isLying) this.#note('false void')
    const signed = about.filter(({ isFinished }) => isFinished && !isLying)
    const record = {
      node: this.node,
      intent: 'intent',
      transaction_id: 'transaction',
      rule: null,
      height: 1,
      voided_at: Math.floor(this.#around.clock.nowMs / 1000),
      signed: [
        ...new Set(signed.flatMap(({ orders }) => orders.map((each) => this.#known(each).hash))),
      ],
      unfinished: isLying ? 0 : about.length - signed.length,
    }
    const keys = Object.keys(record) as (keyof typeof record)[]
    const bytes = canonicalBytes('void', keys, record)
    const signature = signBytes(this.#around.keys.identityOf(this.node), bytes)
    return {
      status: 200,
      body: { voided: true, record, signature, signed_hashes: [], unfinished: 0 },
    }
  }

  // The peers' calls.

  async peer(from: number, call: string, sealed: Buffer): Promise<Buffer> {
    const { header, body, bytes } = this.#protocol.read(from, call, sealed)
    switch (call) {
      case '/peer/sign/open':
        return this.#opened(header, body as Opening)
      case '/peer/sign/round':
        return this.#round(header, body as { messages: number[][][] }, bytes)
      default:
        return this.#protocol.answer(header, 200, this.#plainAnswer(call, body))
    }
  }

  #plainAnswer(call: string, body: unknown): unknown {
    const isLying = this.#attacks.has('policy-position')
    const policy = this.#protocol.policyPosition
    switch (call) {
      case '/peer/ping':
        return { clock: this.#around.clock.nowMs, ...(isLying ? { policy } : {}) }
      case '/peer/hash':
        return { hash: (body as { height: number }).height === 0 ? '0'.repeat(64) : null }
      case '/peer/head-of':
        return { proof: null }
      case '/peer/generation':
        return { generation: 0 }
      case '/peer/nonce':
        return { nonce: null }
      case '/peer/fuelled':
        return { fuel: [], fees: [] }
      case '/peer/spending': {
        const { after } = body as { after: number }
        return { generation: 0, to: after, is_last: true, steps: [] }
      }
      case '/peer/policy/items': {
        const { after } = body as { after: number }
        return isLying ? {} : { generation: 0, to: after, is_last: true, items: [] }
      }
      default:
        return {}
    }
  }

  async #opened(header: Header, body: Opening): Promise<Buffer> {
    const {
      order,
      orders,
      fresh: _fresh,
      epoch: _epoch,
      spending: _s,
      policy: _p,
      ...extras
    } = body
    for (const each of orders ?? [order!]) this.#seen.push({ order: each, extras })
    const attack = this.#draw([
      'silence',
      'garbage',
      'refuse',
      'withhold',
      'split',
      'attribution',
      'variants',
      'false-voids',
    ])
    if (attack) this.#note(`${attack} as partner`)
    if (attack === 'variants') await this.#openVariant()
    switch (attack) {
      case 'silence':
        await this.#around.clock.sleep(NEVER_MS)
        break
      case 'garbage':
        return this.#protocol.answer(header, 200, { fresh: 'none' })
      case 'variants':
      case 'false-voids':
      case 'refuse':
      case 'attribution': {
        const code = this.#random.of(FINAL)
        const node = attack === 'attribution' ? header.from : this.node
        return this.#protocol.answer(header, 409, { error: code, rule: 0, message: code, node })
      }
      default:
    }
    const isSplit = attack === 'split'
    const { session, answer } = await this.#protocol.join(
      header,
      body,
      isSplit && this.#random.below(2) === 0,
    )
    this.#all.push(session)
    this.#sessions.set(session.id, session)
    session.manner = {
      isSplit,
      stopAfter: attack === 'withhold' ? this.#random.below(2) : Infinity,
    }
    return answer
  }

  async #round(
    header: Header,
    { messages }: { messages: number[][][] },
    bytes: Buffer,
  ): Promise<Buffer> {
    const session = this.#sessions.get(header.session)
    if (!session) return this.#protocol.answer(header, 503, { error: 'SESSION_ABORTED' })
    await session.receive(roundsOf(messages, bytes), header.from)
    if (session.isFinished && session.unsent.length > 0)
      this.#note('finishes before the leader can')
    const { isSplit, stopAfter } = session.manner
    if (session.round++ >= stopAfter) await this.#around.clock.sleep(NEVER_MS)
    const rounds = session.unsent.splice(0, isSplit ? 1 : session.unsent.length)
    return this.#protocol.answer(header, 200, withRounds({ batch: 0 }, rounds) as Attached)
  }

  // Its own actions.

  get #actionMs(): number {
    return this.#attacks.has('platform') ? ACTION_MS / 10 : ACTION_MS
  }

  async #act(): Promise<void> {
    for (let count = 0; ; count++) {
      const pauseMs = count > ACTIONS ? RARE_ACTION_MS : this.#actionMs
      await this.#around.clock.sleep(1 + this.#random.below(pauseMs))
      this.#publish()
      const attack = this.#draw(['variants', 'sweeps', 'flood', 'replay', 'platform'])
      if (attack === 'variants') await this.#openVariant()
      if (attack === 'sweeps') await this.#openSweep()
      if (attack === 'flood') await this.#flood()
      if (attack === 'replay') await this.#replay()
      if (attack === 'platform' && this.offered.length > 0) await this.#orderAsPlatform()
    }
  }

  /** Publishes some of what it alone has. */
  #publish(): void {
    const finished = this.#all.filter(({ isFinished }) => isFinished)
    if (finished.length === 0 || this.#random.below(4) > 0) return
    for (const order of this.#random.of(finished).orders) {
      const known = this.#known(order)
      if (known.signedAtMs !== null) this.#chain.publish(known)
    }
  }

  /** Orders an old order again at any node, and mostly completes it. */
  async #replay(): Promise<void> {
    if (this.#seen.length === 0) return
    const stopAfter = this.#random.below(4) === 0 ? this.#random.below(3) : Infinity
    const unsigned = this.#seen.filter(({ order }) => this.#known(order).signedAtMs === null)
    const { order, extras } = this.#random.of(unsigned.length > 0 ? unsigned : this.#seen)
    for (const to of this.#others) {
      this.#note(`orders ${this.#known(order).hash.slice(0, 6)} again at node ${to}`)
      const outcome = await this.#sign([order], to, { extras, stopAfter })
      const answer =
        outcome !== null && typeof outcome === 'object' ? outcome.body['error'] : outcome
      this.#around.log(`hostile: ${String(answer)}`)
    }
  }

  /** Opens another transaction of an order that it has seen, which cannot confirm. */
  async #openVariant(): Promise<void> {
    const payments = this.#seen.filter(({ order }) => order.purpose.kind === 'pay')
    const [newest] = payments.slice(-1)
    if (!newest) return
    const { order, extras } = this.#random.below(2) === 0 ? newest : this.#random.of(payments)
    const known = this.#known(order)
    const code = order.unsigned.network as Code
    const unsigned = this.#variantOf(code, known)
    if (!unsigned) return
    this.#around.signatures.note(unsigned, known.step)
    for (const to of this.#others) {
      this.#note(`opens another transaction of ${known.step} at node ${to}`)
      const outcome = await this.#sign([{ ...order, unsigned }], to, { extras, stopAfter: 0 })
      this.#around.log(
        `hostile: ${String(outcome?.constructor === Object ? (outcome as PeerAnswer).body['error'] : 'opened')}`,
      )
    }
  }

  /** Orders a transaction that could confirm beside an earlier one, in the platform's name. */
  async #orderAsPlatform(): Promise<void> {
    const { code, amount, purpose, step } = this.#random.of(this.offered)
    const place = this.#placeOf(code)
    const unsigned = orderSchema.shape.unsigned.parse(this.#wallets.pay(code, amount, place))
    this.#around.signatures.note(unsigned, step)
    // The more interesting pairs are those of which the hostile node is one.
    const nodes =
      this.#random.below(4) === 0 ? this.#others : [this.node, this.#random.of(this.#others)]
    const [leader, partner] = (this.#random.below(3) === 0 ? nodes : nodes.reverse()) as [
      number,
      number,
    ]
    this.#note(`orders a transaction of ${step} at ${leader} and ${partner}`)
    const order = { workspace: WORKSPACE, purpose, unsigned } as Order
    const { network, keys, clock } = this.#around
    const headers = new OrderHeaders(PLATFORM_PEM, keys.identities, () => clock.nowMs)
    const call = { ...order, partner }
    const header = headers.of(leader, '/sign', call, CALL_MS)[ORDER_HEADER]
    if (leader === this.node) {
      await this.#sign([order], partner, { extras: { authorisation: fromHeader(header) } })
      return
    }
    const target = () => this.#around.nodes.get(leader)!
    const text = JSON.stringify(call)
    await network
      .call(target, () => target().platform('/sign', text, header), CALL_MS)
      .catch(() => {})
  }

  /** Returns another input that exists, or a nonce from the next one on. */
  #placeOf(code: Code): Place {
    const { nowMs } = this.#around.clock
    const validUntil = this.#wallets.validUntil(code, nowMs)
    if (this.#wallets.hasNonces(code)) {
      const next = this.#chain.nextNonce(code, this.#wallets.address(code))
      return { nonce: next + BigInt(this.#random.below(2)), coins: [], validUntil }
    }
    const coin = this.#wallets.coin()
    this.#chain.addCoin(coin.outpoint)
    return { nonce: null, coins: [coin], validUntil }
  }

  #variantOf(code: Code, { decoded, unsigned }: Known): Order['unsigned'] | null {
    if (decoded.nonce === null) {
      const amount = decoded.payments[0]!.amount
      const place = { nonce: null, coins: [this.#wallets.coin()], validUntil: null }
      return orderSchema.shape.unsigned.parse(this.#wallets.pay(code, amount, place))
    }
    const first = this.#wallets.firstNonce(code)
    const next = this.#chain.nextNonce(code, this.#wallets.address(code))
    if (next <= first) return null
    const nonce = first + BigInt(this.#random.below(Number(next - first)))
    if (nonce === decoded.nonce) return null
    return orderSchema.shape.unsigned.parse(this.#wallets.renumbered(unsigned, nonce))
  }

  /** Uses up the budget of the sub-account for sweeps, by sweeps of empty addresses. */
  async #openSweep(): Promise<void> {
    let fee = BigInt(this.#wallets.network('ETH').fee_cap)
    while (this.#sweeps < SWEEPS && fee > 1_000_000_000n) {
      const index = 1000 + this.#sweeps++
      const unsigned = this.#wallets.sweep(index, fee, fee)
      this.#around.signatures.note(unsigned, `hostile sweep ${index}`)
      const order = {
        workspace: WORKSPACE,
        purpose: { kind: 'sweep', sub_account: SUB_ACCOUNT, asset: 'ETH', address_index: index },
        unsigned,
      } as unknown as Order
      const results = []
      for (const to of this.#others) {
        this.#note(`opens a sweep at node ${to}`)
        results.push(await this.#sign([order], to, { stopAfter: 0 }))
      }
      if (results.every((each) => each !== null)) fee /= 2n
    }
  }

  /** Opens sessions about one order, and ends them. */
  async #flood(): Promise<void> {
    if (this.#hasFlooded || this.#seen.length === 0) return
    this.#hasFlooded = true
    const to = this.#random.of(this.#others)
    const { order, extras } = this.#random.of(this.#seen)
    for (let count = 0; count < FLOOD; count++) {
      const session = await this.#protocol.open(to, [order], extras).catch(() => null)
      if (!(session instanceof HostileSession)) {
        this.#hasFlooded = count > 20
        if (session?.status === 200) return
        continue
      }
      this.#note('opens and ends a session')
      await this.#protocol.end(session, to).catch(() => {})
    }
  }
}

interface Opening {
  order?: Order
  orders?: Order[]
  fresh: string
  epoch: number
  spending?: unknown
  policy?: unknown
}

const refusal = (code: string, detail: object = {}, status = 409): Answer => ({
  status,
  body: { error: code, rule: 0, message: code, ...detail },
})

const wireOf = ({ signature, recoveryId }: SignResult): object => ({
  signature: hex(signature),
  recovery_id: recoveryId,
})

function wrongSignatures(orders: readonly Order[]): unknown {
  const wrong = orders.map(({ unsigned }) => ({
    signatures: unsigned.inputs.map(() => ({ signature: '11'.repeat(64), recovery_id: 0 })),
    signed: {},
  }))
  return wrong.length === 1 ? wrong[0] : { run: wrong }
}

/** Splits a call of the platform; fields that are not known here are passed on to the partner. */
function ordersOf(body: Record<string, unknown>): {
  orders: Order[]
  partner: number
  extras: object
} {
  const { workspace, partner, run, purpose, unsigned, policy, ...extras } = body
  const list = (run ?? [{ purpose, unsigned, ...(policy ? { policy } : {}) }]) as object[]
  const orders = list.map((each) => orderSchema.parse({ workspace, ...each }))
  return { orders, partner: partner as number, extras }
}
