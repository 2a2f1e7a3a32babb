import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { HttpRequest } from '../../http-server.ts'
import type { ApiKey, Permission, Venue } from '../venue.ts'
import { KrakenError, type Arguments } from './answer.ts'

/** Limits of a key's call counter: maximum value, and decrease per second. */
const COUNTER_MAX = 20
const DECAY_PER_SECOND = 1
/** Number of consecutive wrong nonces that locks a key. */
const WRONG_NONCES_MAX = 20
const LOCKOUT_MS = 60_000
const NONCE_MAX = 1n << 64n

/**
 * Computes API-Sign: HMAC-SHA512 with the decoded secret of path ‖ SHA256(nonce ‖ body), in base64.
 */
export function apiSign(path: string, nonce: string, body: string, secret: string): string {
  const inner = createHash('sha256')
    .update(nonce + body)
    .digest()
  return createHmac('sha512', Buffer.from(secret, 'base64'))
    .update(path)
    .update(inner)
    .digest('base64')
}

/** Parses a request's body, which is a form or a flat JSON object. */
export function argumentsOf({ body, headers }: HttpRequest): Arguments {
  if (!headers['content-type']?.includes('json'))
    return Object.fromEntries(new URLSearchParams(body))
  try {
    return Object.fromEntries(
      Object.entries(JSON.parse(body) as Record<string, unknown>).map(([name, value]) => [
        name,
        String(value),
      ]),
    )
  } catch {
    throw new KrakenError('EGeneral:Invalid arguments')
  }
}

interface Usage {
  counter: number
  atMs: number
  wrongNonces: number
  lockedUntilMs: number
  recent: Set<string>
}

/** Authenticates callers and limits their request rate. */
export class KrakenGuard {
  readonly #venue: Venue
  readonly #usage = new Map<string, Usage>()

  constructor(venue: Venue) {
    this.#venue = venue
  }

  /**
   * Returns the key of a request.
   * @throws KrakenError
   */
  key(request: HttpRequest, args: Arguments): ApiKey {
    const { 'api-key': name, 'api-sign': sign } = request.headers
    const key = this.#venue.keys.get(String(name))
    if (!key || key.isRevoked) throw new KrakenError('EAPI:Invalid key')
    const nonce = args['nonce'] ?? ''
    const expected = Buffer.from(apiSign(request.path, nonce, request.body, key.secret))
    const shown = Buffer.from(String(sign))
    if (shown.length !== expected.length || !timingSafeEqual(shown, expected))
      throw new KrakenError('EAPI:Invalid signature')
    this.#takeNonce(key, nonce)
    return key
  }

  /**
   * Adds the cost of a call to the key's counter.
   * @throws KrakenError if the limit is exceeded
   */
  count(key: ApiKey, cost: number): void {
    if (key.isUnlimited) return
    const usage = this.#usageOf(key)
    usage.counter = Math.max(
      0,
      usage.counter - ((Date.now() - usage.atMs) / 1000) * DECAY_PER_SECOND,
    )
    usage.atMs = Date.now()
    if (usage.counter + cost > COUNTER_MAX) throw new KrakenError('EAPI:Rate limit exceeded')
    usage.counter += cost
  }

  #takeNonce(key: ApiKey, text: string): void {
    const usage = this.#usageOf(key)
    if (Date.now() < usage.lockedUntilMs) throw new KrakenError('EGeneral:Temporary lockout')
    const nonce = /^\d{1,20}$/.test(text) ? BigInt(text) : -1n
    const last = BigInt(key.nonce)
    const isFresh =
      nonce > last || (nonce > last - BigInt(key.nonceWindow) && !usage.recent.has(text))
    if (nonce < 0n || nonce >= NONCE_MAX || !isFresh) {
      usage.wrongNonces += 1
      if (usage.wrongNonces >= WRONG_NONCES_MAX)
        Object.assign(usage, { lockedUntilMs: Date.now() + LOCKOUT_MS, wrongNonces: 0 })
      throw new KrakenError('EAPI:Invalid nonce')
    }
    usage.wrongNonces = 0
    if (key.nonceWindow > 0) {
      usage.recent.add(text)
      for (const old of usage.recent)
        if (BigInt(old) <= nonce - BigInt(key.nonceWindow)) usage.recent.delete(old)
    }
    if (nonce > last) this.#venue.used(key, nonce)
  }

  #usageOf({ key }: ApiKey): Usage {
    let usage = this.#usage.get(key)
    if (!usage)
      this.#usage.set(
        key,
        (usage = {
          counter: 0,
          atMs: Date.now(),
          wrongNonces: 0,
          lockedUntilMs: 0,
          recent: new Set(),
        }),
      )
    return usage
  }
}

/**
 * Checks a permission of a key.
 * @throws KrakenError if it is missing
 */
export function permitted(key: ApiKey, permission: Permission): void {
  if (!key.permissions.includes(permission)) throw new KrakenError('EGeneral:Permission denied')
}
