import { parseAmount, type Asset } from '@custody/chains'
import { requestHeaders, signRequest } from '@custody/request-auth'
import type { Caller } from '../../src/http/endpoint.ts'
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
 * What a caller wants paid: each amount is another, so that the chain tells which was paid, and how
 * often.
 */
export interface Wanted {
  caller: Caller
  asset: string
  amount: string
  units: bigint
  to: string
  sequence: string
  body: Record<string, unknown>
  /** What was answered, each time. */
  answers: string[]
  id: string | null
  /** Why it was refused for good. */
  refused: string | null
}

/** Thrown where no answer came in time. */
class NoAnswer extends Error {}

/** What was asked is refused. */
export class Refused extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, text: string) {
    super(text)
    this.status = status
    this.code = /"code":"(\w+)"/.exec(text)?.[1] ?? ''
  }
}

/** Another request of the same key was refused for good; its caller asks no more. */
export class Decided extends Error {}

/** What a caller knows of a key. */
export interface Asked {
  /** Requests that have no answer yet. */
  underWay: number
  /** Why it was refused for good. */
  refused: string | null
}

export class Callers {
  readonly wanted: Wanted[] = []
  readonly #world: SimulatedEnvironment
  readonly #actor = new Actor('callers')
  /** Requests under way. */
  #open = 0
  #count = 0
  readonly #bytes: (length: number) => Uint8Array

  constructor(world: SimulatedEnvironment) {
    this.#world = world
    this.#bytes = bytesOf(`${world.seed}/callers`)
  }

  get isQuiet(): boolean {
    return this.#open === 0
  }

  async #ask(caller: Caller, path: string, body: Record<string, unknown>): Promise<string> {
    const { schedule, chance, instances } = this.#world
    const serving = instances.filter(({ isServing }) => isServing)
    if (serving.length === 0) throw new NoAnswer()
    const instance = chance.of<Instance>(serving)
    // A request says when it was signed, and nodes take none that is old.
    const now = Math.floor(schedule.nowMs / 1000)
    const nonce = Buffer.from(this.#bytes(16)).toString('hex')
    const payload = JSON.stringify(body)
    const headers = await schedule.gate(this.#actor, `sign ${path}`, async () =>
      requestHeaders(
        await signRequest({
          apiKey: caller.apiKey,
          privateKey: PRIVATE_KEY,
          method: 'POST',
          uri: path,
          body: payload,
          now,
          nonce,
        }),
        caller.apiKey,
      ),
    )
    // Asked with nothing else between, so that only what the platform itself waits for is the
    // schedule's.
    const server = await schedule.gate(this.#actor, `ask ${path}`, () => instance.server)
    const answered = (async () => {
      instance.asked++
      const { statusCode, payload: text } = await server
        .inject({
          method: 'POST',
          url: path,
          payload,
          headers: { ...headers, 'content-type': 'application/json' },
        })
        .finally(() => instance.asked--)
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
   * Asks until there is an answer.
   * @param key what else is asked for under the same key: nothing is asked again beside it, and
   *   nothing once it was refused
   * @throws Refused for good @throws Decided
   */
  async until(
    caller: Caller,
    path: string,
    body: Record<string, unknown>,
    key: Asked = { underWay: 0, refused: null },
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
        do await this.#world.schedule.sleep(this.#actor, AGAIN_MS)
        while (key.refused === null && key.underWay > 0)
        if (key.refused !== null) throw new Decided()
      }
    } finally {
      this.#open--
    }
  }

  /** Runs an action of an outside party in its scheduled turn. */
  async outside<T>(label: string, act: () => Promise<T>): Promise<T> {
    this.#open++
    try {
      return await this.#world.schedule.gate(this.#actor, label, act)
    } finally {
      this.#open--
    }
  }

  async wallets(): Promise<void> {
    for (const caller of this.#world.callers) {
      for (const asset of this.#world.assets) {
        await this.until(caller, '/dac/v1/create-wallet', { asset })
        const { address, tag } = JSON.parse(
          await this.until(caller, '/dac/v1/address', { asset }),
        ) as { address: string; tag?: string }
        const place = this.#world.networks.find(({ place: { assets } }) =>
          assets.includes(asset),
        )?.place
        await this.outside(`fund ${asset} ${address}`, () =>
          this.#world.control({
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

  /** Wants something paid, and asks for it until it is answered. */
  want(): Wanted {
    const { chance, callers, assets, networks } = this.#world
    const caller = chance.of(callers)
    const asset = chance.of(assets)
    const { place } = networks.find(({ place: { assets: of } }) =>
      of.includes(asset),
    ) as (typeof networks)[number]
    const { decimals } = this.#world.registryAsset(asset) as Asset
    const count = ++this.#count
    const units = parseAmount(place.unit, decimals) + BigInt(count)
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
    const wanted: Wanted = {
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

  async pay(wanted: Wanted): Promise<void> {
    try {
      const answer = await this.until(wanted.caller, '/dac/v1/transaction', wanted.body)
      wanted.answers.push(answer)
      wanted.id = (JSON.parse(answer) as { id: string }).id
    } catch (error) {
      wanted.refused =
        error instanceof Refused ? `${error.code} ${error.message}` : String((error as Error).stack)
    }
  }

  /** Cancels or speeds up something; that it cannot be is an answer. */
  async change(wanted: Wanted, what: 'cancel' | 'speed-up'): Promise<void> {
    const path = `/dac/v1/transaction/${wanted.id}/${what}`
    try {
      await this.until(wanted.caller, path, what === 'cancel' ? {} : { fee_level: 'high' })
    } catch (error) {
      if (!(error instanceof Refused) || error.status === 500) throw error
    }
  }
}
