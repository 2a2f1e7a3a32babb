import { createHmac, timingSafeEqual } from 'node:crypto'
import type { HttpRequest } from '../../http-server.ts'
import type { ApiKey, Permission, Venue } from '../venue.ts'
import { BinanceError, missing, whole, type Arguments } from './answer.ts'

const WINDOW_MS = 5000
const WINDOW_MAX_MS = 60_000
/** Maximum time in milliseconds by which a caller's clock may be ahead. */
const AHEAD_MS = 1000
/** Maximum weight of a caller per minute. */
const WEIGHT_MAX = 6000
const MINUTE_MS = 60_000
const ORDERS_MAX = 100
const ORDERS_MS = 10_000

/** Computes the HMAC-SHA256 of the concatenated query and body, in hexadecimal. */
export const signatureOf = (text: string, secret: string): string =>
  createHmac('sha256', secret).update(text).digest('hex')

/** Returns a query or form without its signature. */
const unsigned = (text: string): string =>
  text
    .split('&')
    .filter((part) => !part.startsWith('signature='))
    .join('&')

interface Window {
  startMs: number
  used: number
}

/** Authenticates callers and limits their request rate. */
export class BinanceGuard {
  readonly #venue: Venue
  readonly #weights = new Map<string, Window>()
  readonly #orders = new Map<string, Window>()

  constructor(venue: Venue) {
    this.#venue = venue
  }

  /**
   * Returns the key that signed a request.
   * @throws BinanceError
   */
  key({ headers, query, body }: HttpRequest, args: Arguments, permission: Permission): ApiKey {
    const name = headers['x-mbx-apikey']
    if (typeof name !== 'string' || name === '')
      throw new BinanceError(-2014, 'API-key format invalid.', 401)
    const key = this.#venue.keys.get(name)
    if (!key || key.isRevoked) throw notPermitted()
    const signature = args['signature']
    if (!signature) throw missing('signature')
    const signed = unsigned(query.replace(/^\?/, '')) + unsigned(body)
    const [shown, expected] = [Buffer.from(signature), Buffer.from(signatureOf(signed, key.secret))]
    if (shown.length !== expected.length || !timingSafeEqual(shown, expected)) {
      throw new BinanceError(-1022, 'Signature for this request is not valid.')
    }
    this.#inTime(args)
    if (!key.permissions.includes(permission)) throw notPermitted()
    return key
  }

  /**
   * Adds weight to the counter of a key; all callers without one share a counter.
   * @throws BinanceError if the limit is exceeded
   */
  count(key: string | undefined, weight: number): void {
    if (key !== undefined && this.#venue.keys.get(key)?.isUnlimited) return
    const { used, restMs } = add(this.#weights, key ?? '', weight, MINUTE_MS)
    if (used <= WEIGHT_MAX) return
    const text = `Too many requests; current limit is ${WEIGHT_MAX} request weight per 1 MINUTE.`
    throw new BinanceError(-1003, text, 429, { 'retry-after': String(Math.ceil(restMs / 1000)) })
  }

  /**
   * Counts an order of a key.
   * @throws BinanceError if the limit is exceeded
   */
  countOrder(key: ApiKey): void {
    if (key.isUnlimited || add(this.#orders, key.account, 1, ORDERS_MS).used <= ORDERS_MAX) return
    throw new BinanceError(
      -1015,
      `Too many new orders; current limit is ${ORDERS_MAX} orders per 10 SECOND.`,
      429,
      { 'retry-after': '10' },
    )
  }

  #inTime(args: Arguments): void {
    const at = whole(args, 'timestamp')
    if (at === null) throw missing('timestamp')
    const window = whole(args, 'recvWindow') ?? WINDOW_MS
    if (window > WINDOW_MAX_MS)
      throw new BinanceError(-1131, `recvWindow must be less than ${WINDOW_MAX_MS}.`)
    const now = this.#venue.now()
    if (at >= now + AHEAD_MS)
      throw new BinanceError(
        -1021,
        "Timestamp for this request was 1000ms ahead of the server's time.",
      )
    if (now - at > window)
      throw new BinanceError(-1021, 'Timestamp for this request is outside of the recvWindow.')
  }
}

const notPermitted = (): BinanceError =>
  new BinanceError(-2015, 'Invalid API-key, IP, or permissions for action.', 401)

function add(
  windows: Map<string, Window>,
  name: string,
  weight: number,
  lengthMs: number,
): { used: number; restMs: number } {
  const startMs = Math.floor(Date.now() / lengthMs) * lengthMs
  const window = windows.get(name)
  const used = (window?.startMs === startMs ? window.used : 0) + weight
  windows.set(name, { startMs, used })
  return { used, restMs: startMs + lengthMs - Date.now() }
}
