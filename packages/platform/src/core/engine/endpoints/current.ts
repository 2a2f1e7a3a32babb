import { AsyncLocalStorage } from 'node:async_hooks'
import {
  ChainError,
  NoFeeEstimate,
  RpcUnavailable,
  type ChainClient,
  type EndpointHead,
} from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Environment } from '../../environment.ts'
import {
  agreedRates,
  BlockAges,
  contradictionText,
  doubtOf,
  NoCurrentEndpoint,
  type KnownOfNetwork,
} from './belief.ts'

/** The state of an endpoint. `head`: null if it does not answer; `doubt`: why its answers may be old. */
export interface HeadState {
  name: string
  head: EndpointHead | null
  doubt: string | null
}

/** Asks only endpoints whose state is current for answers that end a transfer. */
export interface Belief {
  /**
   * Asks a question whose answer would end a transfer at endpoints that are current before and after
   * it. All requests of `ask` go to the same endpoint, which is asked repeatedly: behind a load
   * balancer, the answer and the looks at the head may come from different nodes.
   * @param ends whether an answer ends the transfer; the first that does not is returned
   * @param rounds how often each endpoint is asked
   * @returns otherwise an answer that a current endpoint gave, with a quorum as many as it requires
   * @throws NoCurrentEndpoint if too few endpoints are current
   */
  assure<Answer>(
    ask: () => Promise<Answer>,
    ends: (answer: Answer) => boolean,
    rounds?: number,
  ): Promise<Answer>
  /**
   * Returns the state of each endpoint.
   * @param o.isTrusted whether the operator's trust removes doubts
   */
  states(o?: { isTrusted: boolean }): Promise<HeadState[]>
}

interface Seat {
  readonly name: string
  readonly client: ChainClient
  readonly isUp: boolean
}

/** Network, and what the platform knows of it. `ages` is shared by the networks of a process. */
export interface CurrentContext {
  network: { code: string; stale_after_s?: number }
  quorum: number
  environment: Pick<Environment, 'now'>
  known?: () => Promise<KnownOfNetwork>
  ages?: BlockAges
}

/**
 * Number of times that one endpoint must give the answer that ends a transfer. If each request
 * reaches either of two nodes by chance, and one of them is behind, all of these answers and the
 * looks at the head in between are wrong in one of 100,000 cases.
 */
export const ROUNDS = 8
/** Number of endpoints whose fee rates are compared. */
const RATES_ASKED = 3
const NOTHING_KNOWN: KnownOfNetwork = { scanned: null, trustedUntil: null, contradiction: null }

const nonceIn = (answer: unknown): bigint =>
  typeof answer === 'bigint'
    ? answer
    : answer === null
      ? -1n
      : ((answer as { sequence?: bigint }).sequence ?? 0n)

/** The endpoints of a network whose answers are about its present state. */
export class CurrentEndpoints<S extends Seat> implements Belief {
  readonly #context: CurrentContext
  readonly #ages: BlockAges
  readonly #order: () => readonly S[]
  readonly #ask: <T>(seat: S, ask: (client: ChainClient) => Promise<T>) => Promise<T>
  readonly #pinned = new AsyncLocalStorage<S>()
  /** The fee rates that were used last. */
  #rates: Record<string, unknown> | null = null

  /**
   * @param order returns the endpoints, the preferred one first
   * @param ask sends a request to one endpoint
   */
  constructor(
    context: CurrentContext,
    order: () => readonly S[],
    ask: <T>(seat: S, ask: (client: ChainClient) => Promise<T>) => Promise<T>,
  ) {
    this.#context = context
    this.#ages = context.ages ?? new BlockAges()
    this.#order = order
    this.#ask = ask
  }

  /** The endpoint to which all requests of the current question go; undefined outside of one. */
  get pinned(): S | undefined {
    return this.#pinned.getStore()
  }

  async assure<Answer>(
    ask: () => Promise<Answer>,
    ends: (answer: Answer) => boolean,
    rounds = ROUNDS,
  ): Promise<Answer> {
    const reasons: string[] = []
    let count = 0
    for (const seat of this.#order()) {
      try {
        let doubt = await this.#doubtOf(seat)
        for (let round = 1; doubt === null; round++) {
          const answer = await this.#pinned.run(seat, ask)
          if (!ends(answer)) return answer
          doubt = await this.#doubtOf(seat)
          if (doubt === null && round < rounds) doubt = await this.#shift(seat, round)
          if (doubt !== null || round < rounds) continue
          if (++count >= this.#context.quorum) return answer
          break
        }
        if (doubt !== null) reasons.push(`${seat.name}: ${doubt}`)
      } catch (error) {
        if (!(error instanceof ChainError)) throw error
        reasons.push(`${seat.name}: ${reasonOf(error)}`)
      }
    }
    throw this.#notCurrent(reasons)
  }

  async states({ isTrusted } = { isTrusted: false }): Promise<HeadState[]> {
    return Promise.all(
      this.#order().map(async (seat): Promise<HeadState> => {
        const { name } = seat
        try {
          const head = await this.#ask(seat, (client) => client.head())
          return { name, head, doubt: await this.judged(head, { isTrusted }) }
        } catch (error) {
          return { name, head: null, doubt: reasonOf(error) }
        }
      }),
    )
  }

  /**
   * Checks that the endpoint which gave an answer is current.
   * @throws NoCurrentEndpoint if it is not
   */
  async assertCurrent(client: ChainClient): Promise<void> {
    const doubt = await this.judged(await client.head())
    if (doubt !== null) throw this.#notCurrent([doubt])
  }

  /**
   * Returns the fee rates of current endpoints: of several the median ({@link agreedRates}), and
   * those that were used last while two differ too much. An endpoint that does not answer, or refuses
   * the method, stops no other.
   * @throws NoCurrentEndpoint if no endpoint is current, otherwise the error of the last one
   */
  async feeRates(
    read: (client: ChainClient) => Promise<Record<string, unknown>>,
  ): Promise<Record<string, unknown>> {
    const { pinned } = this
    const doubts: string[] = []
    const answers: Record<string, unknown>[] = []
    let failed: unknown = null
    for (const seat of pinned ? [pinned] : this.#order()) {
      // An endpoint that is down is not waited for once another one has answered.
      if (answers.length === RATES_ASKED || (answers.length > 0 && !seat.isUp)) break
      try {
        const doubt = await this.#doubtOf(seat)
        if (doubt === null) answers.push(await this.#ask(seat, read))
        else doubts.push(`${seat.name}: ${doubt}`)
      } catch (error) {
        if (!(error instanceof ChainError)) throw error
        if (!(failed instanceof NoFeeEstimate)) failed = error
      }
    }
    if (answers.length === 0) throw failed ?? this.#notCurrent(doubts)
    const rates = agreedRates(answers) ?? this.#rates
    if (rates === null)
      throw new RpcUnavailable(
        `${this.#context.network.code}: the fee rates of two endpoints differ too much`,
      )
    this.#rates = rates
    return rates
  }

  /**
   * Returns the answer with the highest nonce that as many endpoints reach as the quorum requires. A
   * nonce only rises, so neither an endpoint that is behind nor one that invents a nonce decides.
   * @param read returns a nonce, or an account with its `sequence`; null: it does not exist
   * @throws RpcUnavailable if fewer endpoints than the quorum answer
   */
  async reached(read: (client: ChainClient) => Promise<unknown>): Promise<unknown> {
    const { pinned } = this
    const { network, quorum } = this.#context
    if (pinned) return this.#ask(pinned, read)
    const answers: unknown[] = []
    let failed = ''
    for (const seat of this.#order()) {
      if (answers.length >= quorum && !seat.isUp) break
      try {
        answers.push(await this.#ask(seat, read))
      } catch (error) {
        if (!(error instanceof ChainError)) throw error
        failed = reasonOf(error)
      }
    }
    const nonces = answers.map(nonceIn).sort((a, b) => Number(b - a))
    const highest = nonces[quorum - 1]
    if (highest === undefined)
      throw new RpcUnavailable(
        `${network.code}: ${answers.length} of its endpoints respond, and ${quorum} must (${failed})`,
      )
    return answers.find((answer) => nonceIn(answer) === highest)
  }

  /**
   * Sends further requests between two rounds. Otherwise nodes that take turns behind a load balancer
   * might always get the same requests of a round.
   * @returns why the endpoint's answers may be about an old state; null if they are not
   */
  async #shift(seat: S, round: number): Promise<string | null> {
    if (round % 4 >= 2) await this.#ask(seat, (client) => client.tip())
    return round % 2 === 1 ? this.#doubtOf(seat) : null
  }

  /** @throws RpcUnavailable if the endpoint does not answer */
  async #doubtOf(seat: S): Promise<string | null> {
    return this.judged(await this.#ask(seat, (client) => client.head()))
  }

  /**
   * Returns why the answers of an endpoint may be about an old or another state; null if they are not,
   * or if the operator trusts the endpoints of the network. The trust does not cover a contradiction.
   * @param o.isTrusted false: the operator's trust does not count
   * @param o.blocks number of blocks that it may be below those that were read
   */
  async judged(
    head: EndpointHead,
    { isTrusted = true, blocks = 0 }: { isTrusted?: boolean; blocks?: number } = {},
  ): Promise<string | null> {
    const { network, environment, known } = this.#context
    const { scanned, trustedUntil, contradiction } = (await known?.()) ?? NOTHING_KNOWN
    if (contradiction) return contradictionText(network.code, contradiction)
    const now = environment.now()
    const doubt = doubtOf(head, network, { scanned, now, ages: this.#ages, blocks })
    return isTrusted && trustedUntil !== null && trustedUntil.getTime() > now ? null : doubt
  }

  #notCurrent(reasons: readonly string[]): NoCurrentEndpoint {
    const { network, quorum } = this.#context
    const few = quorum > 1 ? `fewer than ${quorum} endpoints are current` : 'no endpoint is current'
    return new NoCurrentEndpoint(`${network.code}: ${few} (${reasons.join('; ')})`)
  }
}
