import { ChainError, NoFeeEstimate, RpcMismatch, RpcUnavailable } from '@custody/chains'
import type {
  BroadcastResult,
  ChainClient,
  ChainTip,
  Fetch,
  ResignedClient,
  RpcEndpoint,
  Signed,
  TransactionStatus,
} from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Environment } from '../environment.ts'

/**
 * One endpoint of a network, and how it is reached. `name`: its host, which may be shown and
 * logged; its URL may hold a key.
 */
export interface NamedEndpoint {
  name: string
  endpoint: RpcEndpoint
  fetch: Fetch
}

/** What is told of an endpoint whenever it changes. `height`: its head; null: not known. */
export interface EndpointState {
  isUp: boolean
  isInUse: boolean
  height: number | null
}

/** Told of a network's endpoints by name. */
export interface EndpointWatch {
  changed(name: string, state: EndpointState): void
  warn(details: Record<string, unknown>, message: string): void
}

/**
 * Makes the clients of a network, one for each endpoint, and answers one that asks whichever of
 * them is up.
 */
export interface Endpoints {
  client<Client extends ChainClient>(make: (endpoint: RpcEndpoint, fetch: Fetch) => Client): Client
}

/** What one endpoint answered. */
export interface Vote<Answer> {
  name: string
  answer: Answer
}

/**
 * Where an operator has set that several endpoints must show the same before money depends on it.
 */
export interface Agreement {
  /** How many endpoints must agree, two or more. */
  readonly quorum: number
  /**
   * The answer of each endpoint that gives one, in their order. @throws RpcUnavailable where fewer
   * than the quorum answer
   */
  votes<Answer>(ask: (client: ChainClient) => Promise<Answer>): AsyncGenerator<Vote<Answer>>
  /**
   * False where it was called with the same name seconds ago: what was not agreed on is not asked
   * with each block.
   * @param slower asked twice as long after each time, as nothing ends what one endpoint has made
   *   up
   */
  isDue(name: string, slower?: boolean): boolean
  /**
   * Leaves an endpoint aside for a while that showed what the others do not. @param client as
   * `oneEndpoint` answered it
   */
  distrust(client: ChainClient, reason: string): void
}

/** A down endpoint is looked at again after so long, twice as long each time, and at most so. */
const RETRY_MS = 10_000
const RETRY_MS_MAX = 300_000
/** How often the heads of all endpoints are compared. */
const LOOK_MS = 60_000
/**
 * A head that stands still for so long while another endpoint goes on, and for so many blocks'
 * time, is out of order.
 */
const STILL_MS = 120_000
const STILL_BLOCKS = 10
/**
 * What was not agreed on is asked again after so long, where it may wait without end twice as long
 * each time, and at most so.
 */
const AGAIN_MS = 10_000
const AGAIN_MS_MAX = 300_000
/** How long an endpoint is left aside that showed what the others do not. */
const DISTRUST_MS = 600_000

interface Seat {
  readonly name: string
  readonly client: ChainClient
  probed: Promise<void> | null
  /** It serves another network: it is never asked again. */
  isForeign: boolean
  isUp: boolean
  failures: number
  retryAtMs: number
  head: { height: number; sinceMs: number } | null
  isLookedAt: boolean
  /** Why it is down although it answers: its head stood still, or it showed what others did not. */
  doubt: { kind: 'still' } | { kind: 'shown'; untilMs: number } | null
}

type Method = (...args: unknown[]) => Promise<unknown>

/**
 * An endpoint that is to be asked no more for now, as opposed to one that answered with a refusal.
 */
const isAway = (error: unknown): boolean =>
  error instanceof RpcUnavailable &&
  !(error instanceof RpcMismatch) &&
  !(error instanceof NoFeeEstimate)

/**
 * The endpoints of one network, in the order of the operator's preference. The first that is up is
 * used; what it does not answer is asked of the next. One that fails, or whose head stands still
 * while another goes on, is down until it answers again.
 */
export class EndpointGroup implements Endpoints {
  readonly #code: string
  readonly #endpoints: readonly NamedEndpoint[]
  readonly #quorum: number
  readonly #blockMs: number
  readonly #environment: Pick<Environment, 'now'>
  readonly #watch: EndpointWatch
  #seats: Seat[] = []
  /** The endpoint of each client of one view; null: it has asked nothing yet. */
  readonly #views = new WeakMap<ChainClient, () => Seat | null>()
  /** When what was asked of several endpoints may be asked again. */
  readonly #again = new Map<string, { atMs: number; afterMs: number }>()
  #lookedAtMs: number
  /** When what is asked for no more was forgotten last. */
  #forgotAtMs = 0

  constructor(o: {
    network: { code: string; block_ms?: number }
    endpoints: readonly NamedEndpoint[]
    quorum: number
    environment: Pick<Environment, 'now'>
    watch: EndpointWatch
  }) {
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
    if (others.length === 0) return only
    this.#seats = clients.map((client, at) =>
      this.#seatOf((this.#endpoints[at] as NamedEndpoint).name, client),
    )
    for (const seat of this.#seats) this.#tell(seat)
    const own: Partial<Record<string, Method>> = {
      probe: () => this.#probe(),
      broadcast: (raw) => this.#broadcast(raw as string),
      isDead: (...args) => this.#isDead(args),
      findSigned: (...args) => this.#findSigned(args),
      oneEndpoint: async () => this.#view(only),
    }
    const methods = new Map<string, Method>()
    const methodOf = (name: string): Method => {
      const known =
        methods.get(name) ??
        own[name] ??
        ((...args: unknown[]) => this.#ask((client) => call(client, name, args)))
      methods.set(name, known)
      return known
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

  /** Null where one endpoint's word is enough. */
  get agreement(): Agreement | null {
    if (this.#quorum < 2) return null
    return {
      quorum: this.#quorum,
      votes: (ask) => this.#votes(ask),
      isDue: (name, slower = false) => this.#isDue(name, slower),
      distrust: (client, reason) => {
        const seat = this.#views.get(client)?.()
        if (!seat) return
        seat.doubt = { kind: 'shown', untilMs: this.#environment.now() + DISTRUST_MS }
        this.#down(seat, reason)
      },
    }
  }

  /** Place of the endpoint in use among those that were given. */
  get inUse(): number {
    return Math.max(
      0,
      this.#seats.findIndex((seat) => seat === this.#inUse),
    )
  }

  #isDue(name: string, slower: boolean): boolean {
    const now = this.#environment.now()
    // What is not asked for any more has ended; a clock that was put back holds nothing up.
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
    }
  }

  /** A client of the endpoint that answers its first question, and of no other after that. */
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
   * Those that are up as they were given, then those whose turn to be looked at again comes first.
   */
  get #order(): Seat[] {
    const there = this.#seats.filter(({ isForeign }) => !isForeign)
    return [
      ...there.filter(({ isUp }) => isUp),
      ...there.filter(({ isUp }) => !isUp).sort((a, b) => a.retryAtMs - b.retryAtMs),
    ]
  }

  #tell(seat: Seat): void {
    this.#watch.changed(seat.name, {
      isUp: seat.isUp && !seat.isForeign,
      isInUse: seat === this.#inUse,
      height: seat.head?.height ?? null,
    })
  }

  #tellAll(): void {
    for (const seat of this.#seats) this.#tell(seat)
  }

  /** It answers. One that is doubted is not back by that. */
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
    // Questions that were under way together, and those that are asked of it as nobody else
    // answers, fail once.
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

  /** Once for each endpoint: one that serves another network must not be asked for anything. */
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

  /** What one endpoint answers; a failure to answer counts against it. */
  async #try<Answer>(seat: Seat, ask: (client: ChainClient) => Promise<Answer>): Promise<Answer> {
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

  /** What the first endpoint answers that does; refusals are answers. */
  async #ask<Answer>(ask: (client: ChainClient, seat: Seat) => Promise<Answer>): Promise<Answer> {
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

  async *#votes<Answer>(
    ask: (client: ChainClient) => Promise<Answer>,
  ): AsyncGenerator<Vote<Answer>> {
    let count = 0
    let failed = 'all other endpoints were tried'
    for (const seat of this.#order) {
      let answer: Answer
      try {
        answer = await this.#try(seat, ask)
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
   * All are asked: one of another network is to be found before it is needed. @throws where none
   * serves the network
   */
  async #probe(): Promise<void> {
    const probed = await Promise.allSettled(
      this.#seats.map((seat) => this.#try(seat, async () => undefined)),
    )
    if (probed.some(({ status }) => status === 'fulfilled')) return
    throw (probed[0] as PromiseRejectedResult).reason
  }

  /**
   * To all that are up, so that a transaction spreads although one of them keeps it. What one
   * accepts is accepted.
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
   * A transaction is given up only where the quorum proves that it is dead, and nobody shows it.
   * One that proves nothing may be behind, or keep too little, and holds nobody up by that.
   */
  async #isDead(args: unknown[]): Promise<boolean> {
    const isDead = (client: ChainClient) => call(client, 'isDead', args) as Promise<boolean>
    if (this.#quorum < 2) return this.#ask(isDead)
    let dead = 0
    const votes = this.#votes(async (client) => {
      if (await isDead(client)) return 'dead'
      const { state } = await (call(client, 'status', [args[0]]) as Promise<TransactionStatus>)
      return state === 'absent' ? 'unknown' : 'alive'
    })
    for await (const { answer } of votes) {
      if (answer === 'alive') return false
      if (answer === 'dead') dead++
    }
    return dead >= this.#quorum
  }

  /** One that finds it is enough; that there is none the quorum says. */
  async #findSigned(args: unknown[]): Promise<Signed | null> {
    const find = (client: ChainClient) =>
      call(client, 'findSigned', args) as ReturnType<ResignedClient['findSigned']>
    if (this.#quorum < 2) return this.#ask(find)
    for await (const { answer } of this.#votes(find)) if (answer !== null) return answer
    return null
  }

  /** Now and then looks at each endpoint's head, beside whatever is asked: nobody waits for it. */
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
      const { height } = await (call(seat.client, 'tip', []) as Promise<ChainTip>)
      const stood = seat.head
      const hasMoved = stood === null || height > stood.height
      if (stood?.height !== height) seat.head = { height, sinceMs: this.#environment.now() }
      const { doubt } = seat
      if (doubt?.kind === 'still' ? hasMoved : doubt && this.#environment.now() >= doubt.untilMs)
        seat.doubt = null
      if (seat.doubt) seat.retryAtMs = this.#environment.now() + LOOK_MS
      else this.#up(seat)
      this.#tell(seat)
      this.#findStill()
    } catch (error) {
      this.#down(seat, reasonOf(error))
    }
  }

  #findStill(): void {
    const now = this.#environment.now()
    const still = Math.max(STILL_MS, STILL_BLOCKS * this.#blockMs)
    for (const seat of this.#seats.filter(({ isUp, isForeign }) => isUp && !isForeign)) {
      const { head } = seat
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

function call(client: ChainClient, name: string, args: unknown[]): Promise<unknown> {
  return (client as unknown as Record<string, Method>)[name]!(...args)
}

/**
 * Answers of one endpoint alone, where they must be of one view of the chain. One that fails is not
 * replaced in between.
 */
export const oneEndpoint = async (client: ChainClient): Promise<ChainClient> =>
  (await client.oneEndpoint?.()) ?? client
