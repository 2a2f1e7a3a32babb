import { Readable } from 'node:stream'
import { reasonOf } from '@custody/chains/reason'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Environment } from '../environment.ts'
import type { Logger } from 'pino'
import { ApiError } from '../errors.ts'
import { clientNetworks } from './client-network.ts'
import type { Principal } from './authentication/authenticator.ts'
import type { ServerEvent } from './endpoint.ts'
import { StreamQuota, type StreamOwner } from './stream-quota.ts'

interface Services {
  environment: Environment
  log: Logger
}

/**
 * Interval of comments in milliseconds. They keep proxies from closing an idle stream, and detect
 * disconnected clients.
 */
const COMMENT_EVERY_MS = 15_000
/** Time in milliseconds after which a browser reconnects by default. */
const RETRY_MS = 3000

/** Open responses of a server: event streams, and bodies of unlimited length. */
export class Streams {
  readonly #services: Services
  readonly #open = new Set<AbortController>()
  readonly #places = new StreamQuota()
  #isClosed = false

  constructor(services: Services) {
    this.#services = services
  }

  /**
   * Responds with server-sent events: those of `events`, and a comment at a fixed interval, until
   * the client disconnects, the events end, the API key or session is revoked, or the server
   * closes.
   * @param holder null: the stream needs no key, and is counted for the client's network and its
   *   resource
   * @param events called once; its iteration ends soon after the signal
   * @param resource subject of the stream, for example `invoice …`
   * @throws ApiError `RATE_LIMITED` or `UNAVAILABLE` if {@link StreamQuota} has no place
   */
  async sendEvents(
    request: FastifyRequest,
    reply: FastifyReply,
    holder: Principal | null,
    events: (signal: AbortSignal) => AsyncIterable<ServerEvent>,
    resource: string | null = null,
  ): Promise<FastifyReply> {
    const owner = ownerOf(request, holder, resource)
    // A client of events reconnects and continues from its last event, so its stream may be ended
    // for the stream of another owner.
    return this.#send(
      request,
      reply,
      { owner, mayEnd: true },
      (signal) => this.#frames(events(signal), holder, signal),
      () => {
        reply.header('x-accel-buffering', 'no').type('text/event-stream; charset=utf-8')
      },
    )
  }

  /**
   * Responds with a body of unlimited length, under the same conditions. If the iteration fails,
   * the connection is destroyed, so that the client cannot mistake a part for the complete body.
   */
  async sendPieces(
    request: FastifyRequest,
    reply: FastifyReply,
    holder: Principal | null,
    pieces: (signal: AbortSignal) => AsyncIterable<string>,
  ): Promise<FastifyReply> {
    const owner = ownerOf(request, holder, null)
    return this.#send(request, reply, { owner, mayEnd: false }, (signal) =>
      this.#whole(pieces(signal), holder, signal),
    )
  }

  async #send(
    request: FastifyRequest,
    reply: FastifyReply,
    { owner, mayEnd }: { owner: StreamOwner; mayEnd: boolean },
    text: (signal: AbortSignal) => AsyncIterable<string>,
    begin: () => void = () => undefined,
  ): Promise<FastifyReply> {
    if (this.#isClosed) throw new ApiError('UNAVAILABLE', 'the server is closing; reconnect')
    // HEAD returns the headers only; a stream after them would never end.
    if (request.method === 'HEAD') {
      this.#places.assertFree(owner)
      begin()
      // Without a length: that of the stream is not known.
      return reply.send(Readable.from([]))
    }
    const leaving = new AbortController()
    let left = () => {}
    const release = this.#places.take(owner, mayEnd ? () => left() : null)
    this.#open.add(leaving)
    begin()
    const stream = Readable.from(text(leaving.signal), { objectMode: false, highWaterMark: 16_384 })
    left = () => {
      if (!this.#open.delete(leaving)) return
      release()
      leaving.abort()
      stream.destroy()
    }
    reply.raw.once('close', () => left())
    stream.once('error', () => left())
    if (reply.raw.destroyed) left()
    return reply.send(stream)
  }

  /** Ends every stream, so that the server can close. */
  close(): void {
    this.#isClosed = true
    for (const leaving of this.#open) leaving.abort()
  }

  async *#whole(
    pieces: AsyncIterable<string>,
    holder: Principal | null,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    try {
      for await (const piece of pieces) {
        if (signal.aborted || (await hasLeft(holder)))
          throw new Error('the client is no longer authorised, or is too slow')
        yield piece
      }
    } catch (error) {
      if (!signal.aborted)
        this.#services.log.warn({ err: reasonOf(error) }, 'a streamed response was interrupted')
      throw error
    }
  }

  async *#frames(
    events: AsyncIterable<ServerEvent>,
    holder: Principal | null,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const { environment, log } = this.#services
    const iterator = events[Symbol.asyncIterator]()
    try {
      yield `retry: ${RETRY_MS}\n\n`
      let next = iterator.next()
      while (!signal.aborted) {
        const passed = new AbortController()
        // The pause also ends with the signal.
        const pause = environment
          .sleep(COMMENT_EVERY_MS, AbortSignal.any([signal, passed.signal]))
          .then(() => null)
        const first = await Promise.race([next, pause])
        passed.abort()
        if (first === null) {
          if (signal.aborted || (await hasLeft(holder))) return
          yield ': \n\n'
          continue
        }
        if (first.done || (await hasLeft(holder))) return
        yield frameOf(first.value)
        next = iterator.next()
        // The rejection is handled where the promise is awaited.
        next.catch(() => undefined)
      }
    } catch (error) {
      // The response has begun, so no error can be sent; the client reconnects by itself.
      log.warn({ err: reasonOf(error) }, 'an event stream was interrupted')
    } finally {
      void iterator.return?.().catch(() => undefined)
    }
  }
}

function ownerOf(
  request: FastifyRequest,
  holder: Principal | null,
  resource: string | null,
): StreamOwner {
  if (holder) return { kind: 'holder', name: holder.name, share: holder.share }
  return { kind: 'open', ...clientNetworks(request.ip), resource }
}

const hasLeft = async (holder: Principal | null): Promise<boolean> =>
  holder !== null && !(await holder.stays())

/**
 * Formats one event according to the HTML standard (server-sent events). The ID and the name must
 * not contain a line break.
 */
function frameOf({ id, event, data }: ServerEvent): string {
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}${lines.join('')}\n`
}
