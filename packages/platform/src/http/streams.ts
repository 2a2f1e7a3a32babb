import { Readable } from 'node:stream'
import { reasonOf } from '@custody/chains/reason'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Services } from '../engine/services.ts'
import { ApiError } from '../errors.ts'
import type { Holder } from './door.ts'
import type { ServerEvent } from './endpoint.ts'

/** A comment this often keeps proxies from closing a stream on which nothing happens, and finds clients that are gone. */
const COMMENT_EVERY_MS = 15_000
/** What a browser waits before it comes back, unless it is told otherwise. */
const RETRY_MS = 3000
/** Open streams of one process: of one API key or session, of one client address where neither is needed, and in all. */
export const STREAMS_MAX = { holder: 16, address: 64, all: 2000 } as const

/** The answers that a server has open: streams of events, and bodies of any length. */
export class Streams {
  readonly #services: Services
  readonly #open = new Map<AbortController, string>()
  readonly #counts = new Map<string, number>()
  #isClosed = false

  constructor(services: Services) {
    this.#services = services
  }

  /**
   * Answers with server-sent events: of `events`, and a comment now and then, until the client leaves, the events end, its API key
   * or session is revoked, or the server closes.
   * @param holder null: the client's address
   * @param events called once; its iteration ends soon after the signal
   * @throws ApiError `RATE_LIMITED` or `UNAVAILABLE` beyond {@link STREAMS_MAX}
   */
  async sendEvents(
    request: FastifyRequest, reply: FastifyReply, holder: Holder | null, events: (signal: AbortSignal) => AsyncIterable<ServerEvent>
  ): Promise<FastifyReply> {
    reply.header('x-accel-buffering', 'no').type('text/event-stream; charset=utf-8')
    return this.#send(request, reply, holder, (signal) => this.#frames(events(signal), holder, signal))
  }

  /** Answers with a body of any length, on the same terms. One that breaks off breaks the connection: nobody takes a part for all. */
  async sendPieces(
    request: FastifyRequest, reply: FastifyReply, holder: Holder | null, pieces: (signal: AbortSignal) => AsyncIterable<string>
  ): Promise<FastifyReply> {
    return this.#send(request, reply, holder, (signal) => this.#whole(pieces(signal), holder, signal))
  }

  async #send(
    request: FastifyRequest, reply: FastifyReply, holder: Holder | null, text: (signal: AbortSignal) => AsyncIterable<string>
  ): Promise<FastifyReply> {
    const owner = holder?.name ?? `address ${request.ip}`
    this.#admit(owner, holder ? STREAMS_MAX.holder : STREAMS_MAX.address)
    // Asked for the headers alone: a stream behind them would be read for ever.
    if (request.method === 'HEAD') return reply.serializer((data) => data as string).send('')
    const leaving = new AbortController()
    this.#open.set(leaving, owner)
    this.#counts.set(owner, (this.#counts.get(owner) ?? 0) + 1)
    const stream = Readable.from(text(leaving.signal), { objectMode: false, highWaterMark: 16_384 })
    const left = () => {
      if (!this.#open.delete(leaving)) return
      const others = (this.#counts.get(owner) ?? 1) - 1
      if (others > 0) this.#counts.set(owner, others)
      else this.#counts.delete(owner)
      leaving.abort()
      stream.destroy()
    }
    reply.raw.once('close', left)
    stream.once('error', left)
    if (reply.raw.destroyed) left()
    return reply.send(stream)
  }

  /** Ends every stream, so that the server can close. */
  close(): void {
    this.#isClosed = true
    for (const leaving of this.#open.keys()) leaving.abort()
  }

  #admit(owner: string, most: number): void {
    if (this.#isClosed) throw new ApiError('UNAVAILABLE', 'the server is closing; come back')
    if (this.#open.size >= STREAMS_MAX.all)
      throw new ApiError('UNAVAILABLE', `${STREAMS_MAX.all} streams are open, which is the most; try later`)
    if ((this.#counts.get(owner) ?? 0) >= most)
      throw new ApiError('RATE_LIMITED', `${most} streams of this ${owner.split(' ')[0]} are open, which is the most; close one`)
  }

  async *#whole(pieces: AsyncIterable<string>, holder: Holder | null, signal: AbortSignal): AsyncGenerator<string> {
    try {
      for await (const piece of pieces) {
        if (signal.aborted || await hasLeft(holder)) throw new Error('its client may not, or cannot, be told more')
        yield piece
      }
    } catch (error) {
      if (!signal.aborted) this.#services.log.warn({ err: reasonOf(error) }, 'a long answer broke off')
      throw error
    }
  }

  async *#frames(events: AsyncIterable<ServerEvent>, holder: Holder | null, signal: AbortSignal): AsyncGenerator<string> {
    const { environment, log } = this.#services
    const iterator = events[Symbol.asyncIterator]()
    try {
      yield `retry: ${RETRY_MS}\n\n`
      let next = iterator.next()
      while (!signal.aborted) {
        const passed = new AbortController()
        // Ends with the signal as well.
        const pause = environment.sleep(COMMENT_EVERY_MS, AbortSignal.any([signal, passed.signal])).then(() => null)
        const first = await Promise.race([next, pause])
        passed.abort()
        if (first === null) {
          if (signal.aborted || await hasLeft(holder)) return
          yield ': \n\n'
          continue
        }
        if (first.done || await hasLeft(holder)) return
        yield frameOf(first.value)
        next = iterator.next()
        // Its failure is told where it is waited for.
        next.catch(() => undefined)
      }
    } catch (error) {
      // The answer has begun: the client comes back by itself.
      log.warn({ err: reasonOf(error) }, 'a stream of events broke off')
    } finally {
      void iterator.return?.().catch(() => undefined)
    }
  }
}

const hasLeft = async (holder: Holder | null): Promise<boolean> => holder !== null && !await holder.stays()

/** One event as the HTML standard's section on server-sent events writes it. Neither id nor name may hold a line break. */
function frameOf({ id, event, data }: ServerEvent): string {
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`)
  return `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}${lines.join('')}\n`
}
