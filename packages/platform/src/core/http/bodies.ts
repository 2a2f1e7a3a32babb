import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'
import type { Metrics } from '../metrics.ts'
import { networkOf } from './client-network.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The bytes of the body that are in memory; null until the body may be read. */
    held: HeldBody | null
  }
  interface FastifyInstance {
    /** The bytes of request bodies that this server has in memory. */
    bodies: BodyBudget
  }
}

/** Maximum size in bytes of a body that is read without authentication. */
export const PUBLIC_BODY_BYTES_MAX = 4096
/** Maximum size in bytes of a body that contains a document, such as a policy. */
export const DOCUMENT_BYTES_MAX = 1024 * 1024

/**
 * Maximum numbers of bytes of request bodies that one process has in memory. `keyed`: of callers
 * with a key or session together; `holder`: of one workspace or person among them. `open`: of
 * requests without authentication together; `network`: of one client network among them.
 */
export const BODY_BYTES_HELD_MAX = {
  keyed: 64 * 1024 * 1024,
  holder: 16 * 1024 * 1024,
  open: 8 * 1024 * 1024,
  network: 512 * 1024,
} as const
type Limits = { readonly [Name in keyof typeof BODY_BYTES_HELD_MAX]: number }

/** Owner of a body: a workspace or person, or the client's address if it is not authenticated. */
export type BodyOwner = { share: string } | { ip: string }

/** Time in seconds after which a caller should send a body again that had no room. */
const ROOM_AFTER_S = 1

/**
 * Counts the bytes of request bodies in memory, from their arrival until the response has been sent.
 * Requests without authentication have a sum of their own, so they cannot take the room of others.
 */
export class BodyBudget {
  /** Largest number of bytes that were in memory at one time. */
  peak = 0
  /** Bytes by pool and by owner. */
  readonly #held = new Map<string, number>()
  readonly #limits: Limits
  readonly #metrics: Pick<Metrics, 'bodyBytes' | 'bodiesRefused'>

  constructor(
    metrics: Pick<Metrics, 'bodyBytes' | 'bodiesRefused'>,
    limits: Limits = BODY_BYTES_HELD_MAX,
  ) {
    this.#metrics = metrics
    this.#limits = limits
  }

  /** Number of bytes that are in memory. */
  get bytes(): number {
    return this.#of('keyed') + this.#of('open')
  }

  /** Returns the counter of one request's body, which is empty. */
  hold(owner: BodyOwner): HeldBody {
    return 'share' in owner
      ? new HeldBody(this, ['keyed', this.#limits.keyed], [owner.share, this.#limits.holder])
      : new HeldBody(
          this,
          ['open', this.#limits.open],
          [`network ${networkOf(owner.ip)}`, this.#limits.network],
        )
  }

  /** Adds bytes to all counters; returns false and adds nothing if one of them would be exceeded. */
  take(counters: readonly Counter[], bytes: number): boolean {
    if (counters.some(([name, most]) => this.#of(name) + bytes > most)) {
      this.#metrics.bodiesRefused.inc()
      return false
    }
    for (const [name] of counters) this.#held.set(name, this.#of(name) + bytes)
    this.peak = Math.max(this.peak, this.bytes)
    this.#metrics.bodyBytes.set(this.bytes)
    return true
  }

  give(counters: readonly Counter[], bytes: number): void {
    for (const [name] of counters) {
      const left = this.#of(name) - bytes
      if (left > 0) this.#held.set(name, left)
      else this.#held.delete(name)
    }
    this.#metrics.bodyBytes.set(this.bytes)
  }

  #of(name: string): number {
    return this.#held.get(name) ?? 0
  }
}

/** Name and maximum of a counter of bytes. */
type Counter = readonly [name: string, most: number]

/** The bytes of one request's body that are in memory. */
export class HeldBody {
  readonly #budget: BodyBudget
  readonly #counters: readonly Counter[]
  #bytes = 0
  #isReleased = false

  constructor(budget: BodyBudget, ...counters: readonly Counter[]) {
    this.#budget = budget
    this.#counters = counters
  }

  /** Counts received bytes; returns whether there is room for them. */
  add(bytes: number): boolean {
    if (this.#isReleased || !this.#budget.take(this.#counters, bytes)) return false
    this.#bytes += bytes
    return true
  }

  /** Gives all bytes back. Further calls have no effect. */
  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#budget.give(this.#counters, this.#bytes)
  }
}

/** Lets the body of a request be read, and counts it for its owner until the response has ended. */
export function allowBody(
  budget: BodyBudget,
  request: FastifyRequest,
  reply: FastifyReply,
  owner: BodyOwner,
): void {
  const held = budget.hold(owner)
  request.held = held
  const release = () => held.release()
  // `close` also follows a connection that breaks before the response.
  reply.raw.once('finish', release).once('close', release)
}

/**
 * Checks the length that a request announces, before anything else is done for it.
 * @throws ApiError `PAYLOAD_TOO_LARGE`
 */
export function assertLength({ headers, routeOptions }: FastifyRequest): void {
  const most = routeOptions.bodyLimit
  if (most !== undefined && Number(headers['content-length']) > most) throw tooLarge(most)
}

const tooLarge = (most: number) =>
  new ApiError('PAYLOAD_TOO_LARGE', `body: must have at most ${most} bytes`, { field: 'body' })

/** Sets how bodies are received. Endpoints validate them. */
export function receiveBodies(server: FastifyInstance, budget: BodyBudget): void {
  server.decorate('bodies', budget)
  server.decorateRequest('held', null)
  server.removeAllContentTypeParsers()
  // The body is hashed before it is parsed, because the caller signed the raw bytes.
  server.addContentTypeParser(
    'application/json',
    async (request: FastifyRequest, payload: IncomingMessage) => {
      const body = await received(
        payload,
        request.held ?? budget.hold({ ip: request.ip }),
        request.routeOptions.bodyLimit ?? PUBLIC_BODY_BYTES_MAX,
      )
      const error = refusedBytes(request, body)
      if (error) throw error
      return body
    },
  )
}

/**
 * Reads a body. The rest of a refused body is discarded as it arrives.
 * @throws ApiError `PAYLOAD_TOO_LARGE`; `UNAVAILABLE` if too many bodies are in memory
 */
function received(payload: IncomingMessage, held: HeldBody, most: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const refuse = (error: ApiError) => {
      payload.off('data', onData).off('end', onEnd).off('close', onClose)
      chunks.length = 0
      held.release()
      payload.resume()
      reject(error)
    }
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length > most) return refuse(tooLarge(most))
      if (!held.add(chunk.length))
        return refuse(
          new ApiError(
            'UNAVAILABLE',
            'the platform is receiving too many request bodies at the same time; send the request again',
            { retryAfterS: ROOM_AFTER_S },
          ),
        )
      chunks.push(chunk)
      return undefined
    }
    const onEnd = () => {
      payload.off('close', onClose)
      resolve(Buffer.concat(chunks, length))
    }
    const onClose = () =>
      refuse(
        new ApiError('INVALID_REQUEST', 'body: the connection ended before the body', {
          field: 'body',
        }),
      )
    // A broken connection also emits `close`.
    payload.on('error', () => undefined)
    payload.on('data', onData).on('end', onEnd).on('close', onClose)
  })
}

/**
 * Returns the error for a body that is not valid UTF-8. It could not be hashed again from the
 * stored request, nor sent to a signer node.
 */
function refusedBytes(request: FastifyRequest, body: Buffer): ApiError | null {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(request.headers['content-type'] ?? '')?.[1]
  if (charset !== undefined && !/^utf-?8$/i.test(charset))
    return new ApiError('UNSUPPORTED_MEDIA_TYPE', 'Content-Type: its charset must be utf-8', {
      field: 'Content-Type',
    })
  return isUtf8(body)
    ? null
    : new ApiError('INVALID_JSON', 'body: must be UTF-8 text', {
        field: 'body',
      })
}
