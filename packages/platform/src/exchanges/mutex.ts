import type { Environment } from '../environment.ts'
import type { Client } from './client.ts'

/** Longer than a call may take: after this the turn of a process that died is another's. */
export const LOCK_MS = 15_000
const ASK_AGAIN_MS = 40

/**
 * Numbers of keys whose requests must carry one that rises, in the order in which the venue gets
 * them.
 */
export interface Nonces {
  /** The turn of a key and its next number; null while another has it. */
  take(keyHash: string, token: string): Promise<bigint | null>
  giveBack(keyHash: string, token: string): Promise<void>
}

/**
 * Sends requests of one key one after another, over all processes that have the key: two that
 * overtook each other would be refused, and too many of those lock the key out.
 */
export class KeyMutex {
  readonly #nonces: Nonces
  readonly #keyHash: string
  readonly #environment: Environment
  #last: Promise<unknown> = Promise.resolve()
  #nonce = 0n

  constructor(o: { nonces: Nonces; keyHash: string; environment: Environment }) {
    this.#nonces = o.nonces
    this.#keyHash = o.keyHash
    this.#environment = o.environment
  }

  /** Has a client take a turn for each of its private calls. */
  guard(client: Client): void {
    const send = client.fetch2.bind(client)
    client.nonce = () => Number(this.#nonce)
    const isLimited = client.enableRateLimit
    client.enableRateLimit = false
    client.fetch2 = async (path, api, ...rest) => {
      const [method, params, , , config] = rest
      // The pace is kept before the turn is taken: nobody else waits for it.
      const cost = client.calculateRateLimiterCost(api, method, path, params ?? {}, config ?? {})
      // Orders are counted by the venue apart, and never wait behind questions.
      if (isLimited && cost > 0) await client.throttle(cost)
      return api === 'private'
        ? this.#inTurn(() => send(path, api, ...rest))
        : send(path, api, ...rest)
    }
  }

  async #inTurn<T>(send: () => Promise<T>): Promise<T> {
    const before = this.#last
    const mine = Promise.withResolvers<void>()
    this.#last = mine.promise
    await before
    try {
      const token = this.#environment.uuid()
      let nonce = await this.#nonces.take(this.#keyHash, token)
      const until = this.#environment.now() + LOCK_MS * 2
      while (nonce === null) {
        if (this.#environment.now() > until) throw new Error('another process is using this key')
        await this.#environment.sleep(ASK_AGAIN_MS)
        nonce = await this.#nonces.take(this.#keyHash, token)
      }
      this.#nonce = nonce
      try {
        return await send()
      } finally {
        // A turn that cannot be given back ends by itself.
        await this.#nonces.giveBack(this.#keyHash, token).catch(() => undefined)
      }
    } finally {
      mine.resolve()
    }
  }
}
