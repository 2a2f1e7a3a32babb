import { ChainError, NoFeeEstimate, RpcMismatch, RpcUnavailable } from '@custody/chains'
import type {
  BroadcastResult,
  ChainClient,
  Fetch,
  RpcEndpoint,
  Signed,
  TransactionStatus,
} from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Environment } from '../../environment.ts'
import type { Agreement, AskEndpoint, Vote, Voters } from './agreement.ts'
import { NoCurrentEndpoint } from './belief.ts'
import { CurrentEndpoints, ROUNDS, type Belief, type CurrentContext } from './current.ts'
import { call, withMethods, type Method } from './with-methods.ts'

/**
 * One endpoint of a network and how to reach it. `name`: its host, which may be displayed and
 * logged; its URL may contain a key.
 */
export interface NamedEndpoint {
  name: string
  endpoint: RpcEndpoint
  fetch: Fetch
}

/** State of an endpoint, reported whenever it changes. `height`: its head; null: unknown. */
export interface EndpointState {
  isUp: boolean
  isInUse: boolean
  height: number | null
}

/** Receives state changes and warnings about a network's endpoints. */
export interface EndpointWatch {
  changed(name: string, state: EndpointState): void
  warn(details: Record<string, unknown>, message: string): void
}

/** Creates a client for each endpoint, and returns a client that uses whichever is up. */
export interface Endpoints {
  client<Client extends ChainClient>(make: (endpoint: RpcEndpoint, fetch: Fetch) => Client): Client
}

/**
 * Milliseconds until an endpoint that is down is tried again: initial value and maximum. The delay
 * doubles with each failure.
 */
const RETRY_MS = 10_000
const RETRY_MS_MAX = 300_000
/** Interval at which the heads of all endpoints are compared, in milliseconds. */
const LOOK_MS = 60_000
/**
 * An endpoint is out of order if its head has not advanced for this many milliseconds and for the
 * time of this many blocks, while the head of another endpoint has.
 */
const STILL_MS = 120_000
const STILL_BLOCKS = 10
/**
 * Milliseconds until endpoints that did not agree are queried again: initial value and maximum. The
 * delay doubles only for queries that could repeat without end.
 */
const AGAIN_MS = 10_000
const AGAIN_MS_MAX = 300_000
/** Time in milliseconds for which an endpoint is not used after its response differed from others. */
const DISTRUST_MS = 600_000

interface Seat {
  readonly name: string
  readonly client: ChainClient
  probed: Promise<void> | null
  /** Whether the endpoint serves another network; it is then never used. */
  isForeign: boolean
  isUp: boolean
  failures: number
  retryAtMs: number
  head: { height: number; sinceMs: number } | null
  isLookedAt: boolean
  /**
   * Reason why the endpoint counts as down although it responds: `still`: its head does not
   * advance; `behind`: its head is old; `shown`: its response differed from the others.
   */
  doubt: { kind: 'still' | 'behind' } | { kind: 'shown'; untilMs: number } | null
  /** Why its newest block is old; null: it is not. */
  behind: string | null
}

/**
 * Whether an error means that the endpoint is unavailable, as opposed to a response with a refusal.
 */
const isAway = (error: unknown): boolean =>
  error instanceof RpcUnavailable &&
  !(error instanceof RpcMismatch) &&
  !(error instanceof NoCurrentEndpoint) &&
  !(error instanceof NoFeeEstimate)

/**
 * The endpoints of one network, in the operator's order of preference. The first endpoint that is
 * up is used; a request that it does not answer goes to the next one. An endpoint that fails, or
 * whose head does not advance while another's does, is down until it responds again.
 */
export class EndpointGroup implements Endpoints {
  readonly #code: string
  readonly #endpoints: readonly NamedEndpoint[]
  readonly #quorum: number
  readonly #blockMs: number
  readonly #environment: Pick<Environment, 'now'>
  readonly #watch: EndpointWatch
  readonly #current: CurrentEndpoints<Seat>
  #seats: Seat[] = []
  /** The endpoint behind each single-endpoint client; null if it has not sent a request yet. */
  readonly #views = new WeakMap<ChainClient, () => Seat | null>()
  /** When each query to several endpoints may be repeated. */
  readonly #again = new Map<string, { atMs: number; afterMs: number }>()
  #lookedAtMs: number
  /** Time at which outdated entries of `#again` were last removed. */
  #forgotAtMs = 0

  constructor(
    o: CurrentContext & {
      network: { block_ms?: number }
      endpoints: readonly NamedEndpoint[]
      watch: EndpointWatch
    },
  ) {
    this.#current = new CurrentEndpoints<Seat>(
      o,
      () => this.#order,
      (seat, ask) => this.#try(seat, ask),
    )
    this.#code = o.network.code
    this.#blockMs = o.network.block_ms ?? 0
    this.#endpoints = o.endpoints
    this.#quorum = o.quorum
    this.#environment = o.environment
    this.#watch = o.watch
    this.#lookedAtMs = o.environment.now()
  }

  client<Client extends ChainClient>(
    make: (endpoint: RpcEndpoint, fetch: Fetch) => Client,
  ): Client {
    const clients = this.#endpoints.map(({ endpoint, fetch }) => make(endpoint, fetch))
    const [only, ...others] = clients
    if (!only) throw new Error(`${this.#code} has no endpoint`)
    this.#seats = clients.map((client, at) =>
      this.#seatOf((this.#endpoints[at] as NamedEndpoint).name, client),
    )
    const believed: Partial<Record<string, Method>> = {
      isDead: (...args) => this.#isDead(args),
      feeRates: () => this.#current.feeRates((client) => call(client, 'feeRates', [])),
    }
    if (others.length === 0) return withMethods(only, believed)
    for (const seat of this.#seats) this.#reportChange(seat)
    const reached =
      (name: string): Method =>
      (...args) =>
        this.#current.reached((client) => call(client, name, args))
    const own: Partial<Record<string, Method>> = {
      ...believed,
      probe: () => this.#probe(),
      broadcast: (raw) => this.#broadcast(raw as string),
      findSigned: (...args) => this.#findSigned(args),
      oneEndpoint: async () => this.#view(only),
      ...(this.#quorum > 1 && { nonce: reached('nonce'), account: reached('account') }),
    }
    const methods = new Map<string, Method>()
    const methodOf = (name: string): Method => {
      const existing =
        methods.get(name) ??
        own[name] ??
        ((...args: unknown[]) => this.#ask((client) => call(client, name, args)))
      methods.set(name, existing)
      return existing
    }
    return new Proxy(only, {
      get: (_only, name) => {
        const value = Reflect.get(this.#inUse.client, name) as unknown
        if (typeof name !== 'string' || (typeof value !== 'function' && name !== 'oneEndpoint'))
          return value
        return methodOf(name)
      },
    })
  }

  /** Asks only endpoints whose state is current. */
  get belief(): Belief {
    return this.#current
  }

  /** Quorum of endpoints; null if the response of one endpoint is sufficient. */
  get agreement(): Agreement | null {
    const { voters } = this
    if (this.#quorum < 2 || !voters) return null
    const isDue = (name: string, slower = false) => this.#isDue(name, slower)
    return { ...voters, quorum: this.#quorum, isDue }
  }

  /** The endpoints; null if there is only one. */
  get voters(): Voters | null {
    if (this.#endpoints.length < 2) return null
    return {
      votes: (ask) => this.#votes(ask),
      distrust: (client, reason) => {
        const seat = this.#views.get(client)?.()
        if (!seat) return
        seat.doubt = { kind: 'shown', untilMs: this.#environment.now() + DISTRUST_MS }
        this.#down(seat, reason)
      },
      nameOf: (client) => this.#views.get(client)?.()?.name ?? null,
    }
  }

  /** Index of the endpoint in use, in the configured order. */
  get inUse(): number {
    return Math.max(
      0,
      this.#seats.findIndex((seat) => seat === this.#inUse),
    )
  }

  #isDue(name: string, slower: boolean): boolean {
    const now = this.#environment.now()
    // Entries that are no longer queried expire. An entry far in the future is ignored, so that a
    // clock that was set back does not block queries.
    const isOver = ({ atMs }: { atMs: number }) =>
      now > atMs + AGAIN_MS_MAX || atMs > now + AGAIN_MS_MAX
    if (Math.abs(now - this.#forgotAtMs) >= AGAIN_MS_MAX) {
      this.#forgotAtMs = now
      for (const [each, last] of this.#again) if (isOver(last)) this.#again.delete(each)
    }
    const last = this.#again.get(name)
    const isKnown = last !== undefined && !isOver(last)
    if (isKnown && now < last.atMs) return false
    const afterMs = isKnown && slower ? Math.min(AGAIN_MS_MAX, 2 * last.afterMs) : AGAIN_MS
    this.#again.set(name, { atMs: now + afterMs, afterMs })
    return true
  }

  #seatOf(name: string, client: ChainClient): Seat {
    return {
      name,
      client,
      probed: null,
      isForeign: false,
      isUp: true,
      failures: 0,
      retryAtMs: 0,
      head: null,
      isLookedAt: false,
      doubt: null,
      behind: null,
    }
  }

  /** Returns a client that sends all requests to the endpoint that answered the first one. */
  #view(of: ChainClient): ChainClient {
    let own: Seat | null = null
    const ask = (name: string, args: unknown[]): Promise<unknown> => {
      if (own) return this.#try(own, (client) => call(client, name, args))
      return this.#ask(async (client, seat) => {
        const answer = await call(client, name, args)
        own ??= seat
        return answer
      })
    }
    const view = new Proxy(of, {
      get: (_of, name) => {
        const value = Reflect.get((own ?? this.#inUse).client, name) as unknown
        return typeof value !== 'function' || typeof name !== 'string'
          ? value
          : (...args: unknown[]) => ask(name, args)
      },
    })
    this.#views.set(view, () => own)
    return view
  }

  get #inUse(): Seat {
    return (
      this.#seats.find(({ isUp, isForeign }) => isUp && !isForeign) ??
      this.#order[0] ??
      (this.#seats[0] as Seat)
    )
  }

  /**
   * Endpoints that are up, in the configured order, then the others by the time of their next
   * retry.
   */
  get #order(): Seat[] {
    const there = this.#seats.filter(({ isForeign }) => !isForeign)
    return [
      ...there.filter(({ isUp }) => isUp),
      ...there.filter(({ isUp }) => !isUp).sort((a, b) => a.retryAtMs - b.retryAtMs),
    ]
  }

  #reportChange(seat: Seat): void {
    this.#watch.changed(seat.name, {
      isUp: seat.isUp && !seat.isForeign,
      isInUse: seat === this.#inUse,
      height: seat.head?.height ?? null,
    })
  }

  #tellAll(): void {
    for (const seat of this.#seats) this.#reportChange(seat)
  }

  /** Marks an endpoint as up after a response, unless it is in doubt. */
  #up(seat: Seat): void {
    if (seat.doubt) return
    seat.failures = 0
    if (seat.isUp) return
    seat.isUp = true
    this.#watch.warn(
      { network: this.#code, endpoint: seat.name },
      'a chain endpoint responds again',
    )
    this.#tellAll()
  }

  #down(seat: Seat, reason: string): void {
    const now = this.#environment.now()
    // Concurrent requests that fail together, and requests sent to a down endpoint because no other
    // responds, count as one failure.
    if (seat.isUp || now >= seat.retryAtMs || seat.retryAtMs - now > RETRY_MS_MAX) {
      seat.retryAtMs = now + Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** seat.failures)
      seat.failures++
    }
    if (!seat.isUp) return
    seat.isUp = false
    const next = this.#inUse
    this.#watch.warn(
      {
        network: this.#code,
        endpoint: seat.name,
        reason,
        ...(next.isUp ? { next: next.name } : {}),
      },
      next.isUp
        ? 'a chain endpoint is down; another one is used'
        : 'the last chain endpoint of a network is down',
    )
    this.#tellAll()
  }

  /** Checks once per endpoint that it serves the right network, before any other request. */
  #probed(seat: Seat): Promise<void> {
    seat.probed ??= seat.client.probe().catch((error: unknown) => {
      seat.probed = null
      if (error instanceof ChainError && error.code === 'WRONG_NETWORK') {
        seat.isForeign = true
        this.#watch.warn(
          { network: this.#code, endpoint: seat.name, reason: reasonOf(error) },
          'a chain endpoint serves another network',
        )
        this.#tellAll()
      }
      throw error
    })
    return seat.probed
  }

  /** Sends a request to one endpoint; a missing response counts as a failure of the endpoint. */
  async #try<Answer>(seat: Seat, ask: (client: ChainClient) => Promise<Answer>): Promise<Answer> {
    // A single endpoint cannot be compared with another one, or be replaced by it.
    if (this.#seats.length === 1) return ask(seat.client)
    this.#lookAround()
    try {
      await this.#probed(seat)
      const answer = await ask(seat.client)
      this.#up(seat)
      return answer
    } catch (error) {
      if (isAway(error)) this.#down(seat, reasonOf(error))
      throw error
    }
  }

  /** Returns the response of the first endpoint that responds; a refusal is a response. */
  async #ask<Answer>(ask: (client: ChainClient, seat: Seat) => Promise<Answer>): Promise<Answer> {
    const { pinned } = this.#current
    if (pinned) return this.#try(pinned, (client) => ask(client, pinned))
    let failed: unknown = new RpcUnavailable(
      `${this.#code}: all of its endpoints serve another network`,
    )
    for (const seat of this.#order) {
      try {
        return await this.#try(seat, (client) => ask(client, seat))
      } catch (error) {
        if (!(error instanceof RpcUnavailable) && !seat.isForeign) throw error
        failed = error
      }
    }
    throw failed
  }

  async *#votes<Answer>(ask: AskEndpoint<Answer>): AsyncGenerator<Vote<Answer>> {
    let count = 0
    let failed = 'all other endpoints were tried'
    for (const seat of this.#order) {
      let answer: Answer
      try {
        answer = await this.#try(seat, (client) => ask(client, seat.name))
      } catch (error) {
        if (!(error instanceof ChainError)) throw error
        failed = reasonOf(error)
        continue
      }
      count++
      yield { name: seat.name, answer }
    }
    if (count < this.#quorum) {
      throw new RpcUnavailable(
        `${this.#code}: ${count} of its endpoints respond, and ${this.#quorum} must agree (${failed})`,
      )
    }
  }

  /**
   * Probes all endpoints, so that one that serves another network is found before it is needed.
   * @throws if no endpoint serves the network
   */
  async #probe(): Promise<void> {
    const probed = await Promise.allSettled(
      this.#seats.map((seat) => this.#try(seat, async () => undefined)),
    )
    if (probed.some(({ status }) => status === 'fulfilled')) return
    throw (probed[0] as PromiseRejectedResult).reason
  }

  /**
   * Sends a transaction to all endpoints that are up, so that it propagates even if one of them
   * does not forward it. It counts as accepted if one endpoint accepts it.
   */
  async #broadcast(raw: string): Promise<BroadcastResult> {
    const up = this.#order.filter(({ isUp }) => isUp)
    const results = await Promise.all(
      (up.length > 0 ? up : this.#order).map(async (seat): Promise<BroadcastResult> => {
        try {
          return await this.#try(seat, (client) => client.broadcast(raw))
        } catch (error) {
          if (!(error instanceof ChainError)) throw error
          return { kind: 'unknown', reason: reasonOf(error) }
        }
      }),
    )
    const best = (['accepted', 'unknown', 'rejected'] as const).map((kind) =>
      results.find((each) => each.kind === kind),
    )
    return (
      best.find((each) => each !== undefined) ?? {
        kind: 'unknown',
        reason: `${this.#code}: all of its endpoints serve another network`,
      }
    )
  }

  /**
   * Returns true only if the quorum proves that the transaction is dead and no endpoint reports it.
   * An endpoint that cannot prove it is ignored; the others prove it repeatedly ({@link ROUNDS}).
   */
  async #isDead(args: unknown[]): Promise<boolean> {
    const isDead = async (client: ChainClient): Promise<boolean> => {
      for (let round = 0; round < ROUNDS; round++) {
        if (!(await call<boolean>(client, 'isDead', args))) return false
        await this.#current.assertCurrent(client)
      }
      return true
    }
    if (this.#quorum < 2) return this.#ask(isDead)
    let dead = 0
    const votes = this.#votes(async (client) => {
      if (await isDead(client)) return 'dead'
      const { state } = await call<TransactionStatus>(client, 'status', [args[0]])
      return state === 'absent' ? 'unknown' : 'alive'
    })
    for await (const { answer } of votes) {
      if (answer === 'alive') return false
      if (answer === 'dead') dead++
    }
    return dead >= this.#quorum
  }

  /** Returns the transaction if one endpoint finds it; null requires the quorum. */
  async #findSigned(args: unknown[]): Promise<Signed | null> {
    const find = (client: ChainClient) => call<Signed | null>(client, 'findSigned', args)
    if (this.#quorum < 2) return this.#ask(find)
    for await (const { answer } of this.#votes(find)) if (answer !== null) return answer
    return null
  }

  /** Checks the heads of the endpoints from time to time, in the background of other requests. */
  #lookAround(): void {
    const now = this.#environment.now()
    const isTime = now < this.#lookedAtMs || now - this.#lookedAtMs >= LOOK_MS
    if (isTime) this.#lookedAtMs = now
    for (const seat of this.#seats) {
      if (seat.isForeign || seat.isLookedAt || (seat.isUp ? !isTime : now < seat.retryAtMs))
        continue
      seat.isLookedAt = true
      void this.#look(seat).finally(() => {
        seat.isLookedAt = false
      })
    }
  }

  async #look(seat: Seat): Promise<void> {
    try {
      await this.#probed(seat)
      const head = await seat.client.head()
      const { height } = head
      seat.behind = await this.#current.judged(head, { blocks: STILL_BLOCKS })
      const stood = seat.head
      const hasMoved = stood === null || height > stood.height
      if (stood?.height !== height) seat.head = { height, sinceMs: this.#environment.now() }
      const { doubt } = seat
      if (doubt?.kind === 'still') seat.doubt = hasMoved ? null : doubt
      else if (doubt?.kind === 'behind') seat.doubt = seat.behind === null ? null : doubt
      else if (doubt?.kind === 'shown' && this.#environment.now() >= doubt.untilMs)
        seat.doubt = null
      if (seat.doubt) seat.retryAtMs = this.#environment.now() + LOOK_MS
      else this.#up(seat)
      this.#reportChange(seat)
      this.#findStill()
    } catch (error) {
      this.#down(seat, reasonOf(error))
    }
  }

  /** Stops using endpoints whose head is old or stands still while another one's is not or does not. */
  #findStill(): void {
    const now = this.#environment.now()
    const still = Math.max(STILL_MS, STILL_BLOCKS * this.#blockMs)
    const used = this.#seats.filter(({ isUp, isForeign }) => isUp && !isForeign)
    const isCurrent = used.some(({ head, behind }) => head !== null && behind === null)
    for (const seat of used) {
      const { head, behind } = seat
      if (behind !== null && isCurrent) {
        seat.doubt = { kind: 'behind' }
        this.#down(seat, behind)
        continue
      }
      const isPassed =
        head !== null &&
        now - head.sinceMs >= still &&
        this.#seats.some(
          (other) =>
            other.isUp &&
            !other.isForeign &&
            other.head !== null &&
            other.head.height > head.height &&
            other.head.sinceMs > head.sinceMs,
        )
      if (!isPassed) continue
      seat.doubt = { kind: 'still' }
      this.#down(seat, `its head stays at ${head.height} while other endpoints advance`)
    }
  }
}

/**
 * Returns a client that uses a single endpoint, for queries that need one consistent view of the
 * chain. If the endpoint fails, no other takes its place.
 */
export const oneEndpoint = async (client: ChainClient): Promise<ChainClient> =>
  (await client.oneEndpoint?.()) ?? client
