import { parseAmount, type Asset } from '@custody/chains'
import { requestHeaders, signRequest } from '@custody/request-auth'
import type { Caller } from '../../src/core/http/endpoint.ts'
import { PRIVATE_KEY } from './caller-key.ts'
import { bytesOf } from './seeded-random.ts'
import type { Instance } from './instance.ts'
import { Actor } from './schedule.ts'
import type { SimulatedEnvironment } from './environment.ts'

/**
 * Time in milliseconds that a caller waits for an answer before it repeats the request, at any
 * instance.
 */
const PATIENCE_MS = 15_000
const AGAIN_MS = 3000

/**
 * A payment that a caller requests. Every amount is different, so that the chain shows which
 * payment was made, and how often.
 */
export interface PlannedTransfer {
  caller: Caller
  asset: string
  amount: string
  units: bigint
  to: string
  sequence: string
  body: Record<string, unknown>
  /** All responses, in order. */
  answers: string[]
  id: string | null
  /** Reason of a final refusal. */
  refused: string | null
}

/** Thrown if no response arrived in time. */
class NoAnswer extends Error {}

/** Thrown if the request is refused. */
export class Refused extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, text: string) {
    super(text)
    this.status = status
    this.code = /"code":"(\w+)"/.exec(text)?.[1] ?? ''
  }
}

/** Thrown if another request with the same key was finally refused; its caller stops. */
export class Decided extends Error {}

/** State of the requests with one key. */
export interface SentRequest {
  /** Number of requests without a response. */
  underWay: number
  /** Reason of a final refusal. */
  refused: string | null
}

export class Callers {
  readonly wanted: PlannedTransfer[] = []
  readonly #environment: SimulatedEnvironment
  readonly #actor = new Actor('callers')
  /** Number of requests in progress. */
  #open = 0
  #count = 0
  readonly #bytes: (length: number) => Uint8Array

  constructor(environment: SimulatedEnvironment) {
    this.#environment = environment
    this.#bytes = bytesOf(`${environment.seed}/callers`)
  }

  get isQuiet(): boolean {
    return this.#open === 0
  }

  async #ask(caller: Caller, path: string, body: Record<string, unknown> | null): Promise<string> {
    const { schedule, random, instances } = this.#environment
    const serving = instances.filter(({ isServing }) => isServing)
    if (serving.length === 0) throw new NoAnswer()
    const instance = random.of<Instance>(serving)
    // A request contains its signing time, and nodes refuse old requests.
    const now = Math.floor(schedule.nowMs / 1000)
    const nonce = Buffer.from(this.#bytes(16)).toString('hex')
    const [method, payload] = body === null ? ['GET', ''] : ['POST', JSON.stringify(body)]
    const headers = await schedule.pauseAt(this.#actor, `sign ${path}`, async () =>
      requestHeaders(
        await signRequest({
          apiKey: caller.apiKey,
          privateKey: PRIVATE_KEY,
          method,
          uri: path,
          body: payload,
          now,
          nonce,
        }),
        caller.apiKey,
      ),
    )
    // The request reaches the server directly, so that the schedule only controls the operations of
    // the platform itself.
    const server = await schedule.pauseAt(this.#actor, `ask ${path}`, () => instance.server)
    const answered = (async () => {
      instance.requestCount++
      const { statusCode, payload: text } = await server
        .inject({
          method: method as 'GET' | 'POST',
          url: path,
          ...(body === null
            ? { headers }
            : { payload, headers: { ...headers, 'content-type': 'application/json' } }),
        })
        .finally(() => instance.requestCount--)
      // A request to a dead instance never gets an answer.
      if (instance.actor.isDead) return new Promise<never>(() => undefined)
      if (statusCode >= 400) throw new Refused(statusCode, text)
      return text
    })()
    answered.catch(() => undefined)
    const late = new AbortController()
    const patience = schedule.sleep(this.#actor, PATIENCE_MS, late.signal).then(() => {
      throw new NoAnswer()
    })
    patience.catch(() => undefined)
    try {
      return await Promise.race([answered, patience])
    } finally {
      late.abort()
    }
  }

  /**
   * Repeats a request until there is a response.
   * @param body null: a GET request
   * @param key state of other requests with the same key: nothing is repeated during another
   *   request, or after a refusal
   * @throws Refused if the request is finally refused
   * @throws Decided if another request with the same key was finally refused
   */
  async until(
    caller: Caller,
    path: string,
    body: Record<string, unknown> | null,
    key: SentRequest = { underWay: 0, refused: null },
  ): Promise<string> {
    this.#open++
    try {
      for (;;) {
        key.underWay++
        try {
          return await this.#ask(caller, path, body)
        } catch (error) {
          if (
            error instanceof Refused &&
            ((error.status < 500 && error.status !== 429) || error.status === 500)
          )
            throw error
        } finally {
          key.underWay--
        }
        do await this.#environment.schedule.sleep(this.#actor, AGAIN_MS)
        while (key.refused === null && key.underWay > 0)
        if (key.refused !== null) throw new Decided()
      }
    } finally {
      this.#open--
    }
  }

  /**
   * Sends a request once.
   * @throws Refused; another error if no response arrived in time
   */
  async once(caller: Caller, path: string, body: Record<string, unknown>): Promise<string> {
    this.#open++
    try {
      return await this.#ask(caller, path, body)
    } finally {
      this.#open--
    }
  }

  /** Waits for a simulated time. */
  pause(milliseconds: number): Promise<void> {
    return this.#environment.schedule.sleep(this.#actor, milliseconds)
  }

  /** Runs an action of an outside party in its scheduled turn. */
  async outside<T>(label: string, act: () => Promise<T>): Promise<T> {
    this.#open++
    try {
      return await this.#environment.schedule.pauseAt(this.#actor, label, act)
    } finally {
      this.#open--
    }
  }

  async wallets(): Promise<void> {
    for (const { place } of this.#environment.networks) {
      if (place.created === undefined) continue
      const [asset, address] = Object.entries(place.to)[0] as [string, string]
      const command = { command: 'fund', asset, address, amount: place.created }
      await this.outside(`fund ${asset} ${address}`, () => this.#environment.control(command))
    }
    for (const caller of this.#environment.callers) {
      for (const asset of this.#environment.assets) {
        await this.until(caller, '/dac/v1/create-wallet', { asset })
        const { address, tag } = JSON.parse(
          await this.until(caller, '/dac/v1/address', { asset }),
        ) as { address: string; tag?: string }
        const place = this.#environment.networks.find(({ place: { assets } }) =>
          assets.includes(asset),
        )?.place
        await this.outside(`fund ${asset} ${address}`, () =>
          this.#environment.control({
            command: 'fund',
            asset,
            address,
            amount: place?.held,
            ...(tag ? { tag } : {}),
          }),
        )
      }
    }
  }

  /** Requests a payment, and repeats the request until it gets a response. */
  want(): PlannedTransfer {
    const { random, callers, assets, networks, policy } = this.#environment
    // Most transfers are those of the sub-account that the policy limits.
    const caller = random.of(policy ? [...callers, callers[0] as Caller] : callers)
    const asset = random.of(assets)
    const { place } = networks.find(({ place: { assets: of } }) =>
      of.includes(asset),
    ) as (typeof networks)[number]
    const { decimals } = this.#environment.registryAsset(asset) as Asset
    const count = ++this.#count
    const factor = policy?.drawFactor() ?? 1n
    const units = parseAmount(place.unit, decimals) * factor + BigInt(count)
    const amount = `${units / 10n ** BigInt(decimals)}.${String(units % 10n ** BigInt(decimals)).padStart(decimals, '0')}`
    const to = place.to[asset] as string
    const sequence = `sequence-${count}`
    const body = {
      asset,
      amount,
      destination_address: to,
      destination_type: 'EXTERNAL',
      source_type: 'INTERNAL',
      sequence_id: sequence,
    }
    const wanted: PlannedTransfer = {
      caller,
      asset,
      amount,
      units,
      to,
      sequence,
      body,
      answers: [],
      id: null,
      refused: null,
    }
    this.wanted.push(wanted)
    void this.pay(wanted)
    return wanted
  }

  async pay(wanted: PlannedTransfer): Promise<void> {
    try {
      const answer = await this.until(wanted.caller, '/dac/v1/transaction', wanted.body)
      wanted.answers.push(answer)
      wanted.id = (JSON.parse(answer) as { id: string }).id
    } catch (error) {
      wanted.refused =
        error instanceof Refused ? `${error.code} ${error.message}` : String((error as Error).stack)
    }
  }

  /** Cancels or speeds up a payment; a refusal is a valid response. */
  async change(wanted: PlannedTransfer, what: 'cancel' | 'speed-up'): Promise<void> {
    const path = `/dac/v1/transaction/${wanted.id}/${what}`
    try {
      await this.until(wanted.caller, path, what === 'cancel' ? {} : { fee_level: 'high' })
    } catch (error) {
      if (!(error instanceof Refused) || error.status === 500) throw error
    }
  }
}
