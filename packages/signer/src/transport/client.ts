import { request as httpsRequest } from 'node:https'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { requirePinned } from '@custody/request-auth/pinned'
import { traceHeader } from '@custody/tracing'
import type { Config, Peer } from '../config.ts'
import { callHead, FrameReader, PROTOCOL_NAME, writeFrame } from './channel.ts'

/** Thrown if the other node does not respond, or not in time. It is never a reason for a ban. */
export class Unreachable extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Unreachable'
  }
}

const CHANNELS_MAX = 64
/**
 * Maximum idle time of a connection in milliseconds. It is shorter than the limit of the other
 * node, so that no connection is used that is about to be closed.
 */
const IDLE_MS_MAX = 60_000

interface PendingCall {
  bytesMax: number
  resolve: (answer: Buffer) => void
  reject: (error: Error) => void
}

/** One connection to a peer, with one call at a time. */
class Channel {
  readonly #name: string
  readonly #connecting
  #stream: Duplex | null = null
  #pending: PendingCall | null = null
  #frame: Buffer[] = []
  #ended: Error | null = null
  readonly #reader = new FrameReader()
  /** Called when the connection was closed while it was idle. */
  onIdleEnd = (): void => {}

  constructor(config: Config, peer: Peer, now: () => number) {
    this.#name = `peer node ${peer.node}`
    this.#connecting = httpsRequest({
      agent: false,
      host: peer.host,
      port: peer.port,
      path: '/peer',
      headers: { connection: 'Upgrade', upgrade: PROTOCOL_NAME },
      key: config.tlsKey,
      cert: config.tlsCertificate,
      minVersion: 'TLSv1.3',
      // `requirePinned` replaces this check: there is no certificate authority, and no name to
      // compare. Without `ca`, Node would load the public authorities.
      rejectUnauthorized: false,
      ca: [peer.certificate],
    })
    this.#connecting.on('socket', (socket) => {
      requirePinned(socket as TLSSocket, { pin: peer.pin, now })
    })
    this.#connecting.on('error', (error) => {
      this.destroy(error)
    })
    this.#connecting.on('response', () => {
      this.destroy(new Error('does not support this version'))
    })
    this.#connecting.on('upgrade', (_response, stream, head) => {
      this.#opened(stream as TLSSocket, head)
    })
    this.#connecting.end()
  }

  #opened(stream: TLSSocket, head: Buffer): void {
    this.#stream = stream
    stream.setNoDelay(true)
    stream.setTimeout(IDLE_MS_MAX, () => {
      if (!this.#pending) this.destroy(new Error('idle'))
    })
    stream.on('data', (chunk: Buffer) => {
      this.#received(chunk)
    })
    stream.on('error', (error) => {
      this.destroy(error)
    })
    stream.on('close', () => {
      this.destroy(new Error('the connection was closed'))
    })
    if (this.#ended) stream.destroy()
    else if (head.length > 0) this.#received(head)
    else if (this.#pending) writeFrame(stream, ...this.#frame)
  }

  #received(chunk: Buffer): void {
    const request = this.#pending
    if (!request) {
      this.destroy(new Error('a response without a request'))
      return
    }
    try {
      // Checked while the response is read, because a hostile peer must not fill this node's
      // memory.
      const answer = this.#reader.push(chunk, request.bytesMax)
      if (!answer) return
      this.#pending = null
      request.resolve(answer)
    } catch (error) {
      this.destroy(new Unreachable(`${this.#name} sent invalid data: ${(error as Error).message}`))
    }
  }

  ask(frame: Buffer[], bytesMax: number): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      if (this.#ended) {
        reject(this.#ended)
        return
      }
      this.#pending = { bytesMax, resolve, reject }
      this.#frame = frame
      if (this.#stream) writeFrame(this.#stream, ...frame)
    })
  }

  destroy(why: Error): void {
    if (this.#ended) return
    this.#ended =
      why instanceof Unreachable
        ? why
        : new Unreachable(`${this.#name}: ${why.message.slice(0, 200)}`)
    const request = this.#pending
    this.#pending = null
    this.#connecting.destroy()
    this.#stream?.destroy()
    if (request) request.reject(this.#ended)
    else this.onIdleEnd()
  }
}

/** Pool of pinned connections to one peer: as many as there are concurrent calls, up to a limit. */
export class Link {
  readonly peer: Peer
  readonly #config: Config
  readonly #now: () => number
  readonly #all = new Set<Channel>()
  readonly #idle: Channel[] = []
  readonly #waiting: ((channel: Channel) => void)[] = []

  /** @param now milliseconds since the epoch, against which the peer's certificate is checked */
  constructor(config: Config, peer: Peer, now: () => number) {
    this.#config = config
    this.#now = now
    this.peer = peer
  }

  /**
   * Sends a call. A single time limit covers connecting, sending and the whole response, because a
   * stopped process accepts connections without responding.
   * @param timeoutMs limit for everything until the response's last byte
   * @param bytesMax maximum size of the response; both are checked while it is read
   */
  post(path: string, sealed: Buffer, timeoutMs: number, bytesMax: number): Promise<Buffer> {
    const frame = [callHead(path, traceHeader()['traceparent'] ?? ''), sealed]
    return new Promise((resolve, reject) => {
      let channel: Channel | null = null
      const begin = (free: Channel): void => {
        channel = free
        free.ask(frame, bytesMax).then(
          (answer) => {
            clearTimeout(timer)
            this.#next(free)
            resolve(answer)
          },
          (error: unknown) => {
            clearTimeout(timer)
            this.#lost(free)
            reject(error as Error)
          },
        )
      }
      const timer = setTimeout(() => {
        const late = new Unreachable(
          `peer node ${this.peer.node} did not respond within ${timeoutMs} ms`,
        )
        if (channel) channel.destroy(late)
        else {
          this.#waiting.splice(this.#waiting.indexOf(begin), 1)
          reject(late)
        }
      }, timeoutMs)
      const free = this.#idle.pop() ?? (this.#all.size < CHANNELS_MAX ? this.#open() : null)
      if (free) begin(free)
      else this.#waiting.push(begin)
    })
  }

  #open(): Channel {
    const channel = new Channel(this.#config, this.peer, this.#now)
    this.#all.add(channel)
    channel.onIdleEnd = () => {
      this.#all.delete(channel)
      const at = this.#idle.indexOf(channel)
      if (at !== -1) this.#idle.splice(at, 1)
    }
    return channel
  }

  #next(channel: Channel): void {
    const waiting = this.#waiting.shift()
    if (waiting) waiting(channel)
    else this.#idle.push(channel)
  }

  #lost(channel: Channel): void {
    this.#all.delete(channel)
    const waiting = this.#waiting.shift()
    if (waiting) waiting(this.#open())
  }

  close(): void {
    for (const channel of this.#all) channel.destroy(new Error('closed'))
  }
}
