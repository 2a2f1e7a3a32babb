import type { Environment } from '../../core/environment.ts'
import type { Client } from './client.ts'

/**
 * Lifetime of a lock in milliseconds, longer than a call may take. After it, another process may
 * take the lock of a process that has crashed.
 */
export const LOCK_MS = 15_000
const ASK_AGAIN_MS = 40

/** Nonces for API keys whose requests must arrive at the exchange with increasing nonces. */
export interface Nonces {
  /**
   * Takes the lock of a key and returns its next nonce; null while another process has the lock.
   */
  take(keyHash: string, token: string): Promise<bigint | null>
  giveBack(keyHash: string, token: string): Promise<void>
}

/**
 * Sends the requests of one key one after another, across all processes that use the key. A request
 * that overtook another would be rejected, and too many rejections lock the key out.
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

  /** Makes a client take the lock for each of its private calls. */
  guard(client: Client): void {
    const send = client.fetch2.bind(client)
    client.nonce = () => Number(this.#nonce)
    const isLimited = client.enableRateLimit
    client.enableRateLimit = false
    client.fetch2 = async (path, api, ...rest) => {
      const [method, params, , , config] = rest
      // The rate-limit wait happens before the lock is taken, so that it does not delay other
      // processes.
      const cost = client.calculateRateLimiterCost(api, method, path, params ?? {}, config ?? {})
      // The exchange counts orders separately, so they never wait behind reads.
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
        // A lock that cannot be released expires by itself.
        await this.#nonces.giveBack(this.#keyHash, token).catch(() => undefined)
      }
    } finally {
      mine.resolve()
    }
  }
}
