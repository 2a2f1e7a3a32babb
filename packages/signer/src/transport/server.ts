import { constants } from 'node:crypto'
import { createServer, type Server } from 'node:https'
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { continued, type Attributes } from '@custody/tracing'
import type { Config } from '../config.ts'
import { errorAnswer, Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import type { Hello } from '../prints.ts'
import { answer, readBytes, readText } from './body.ts'
import { callOf, FrameReader, PROTOCOL_NAME, writeFrame } from './channel.ts'

/** Who calls, by the pinned certificate of the connection. */
export type Role = { kind: 'platform' } | { kind: 'peer'; node: number }

export interface Handlers {
  /** To whoever is known: who this is and whom it knows. */
  hello(): Hello
  platform(method: string, path: string, text: string): Promise<{ status: number; body: unknown }>
  /** Receives and returns an envelope. */
  peer(node: number, path: string, sealed: Buffer): Promise<Buffer>
}

/** An order shows previous transactions in hex: thirty of the largest, without their witnesses. */
const PLATFORM_BYTES_MAX = 64 * 1024 * 1024
/** The same order in an envelope, as one text. */
const PEER_BYTES_MAX = 72 * 1024 * 1024
/** How long a connection is kept on which nobody asks, and how long a whole request may take to come. */
const IDLE_MS_MAX = 120_000
const REQUEST_MS_MAX = 60_000

/**
 * HTTPS with client certificates. A connection whose certificate is not pinned never reaches a handler:
 * the handshake ends it (the pinned certificates are the only authorities), and the fingerprint is compared again.
 */
export function openServer(config: Config, handlers: Handlers, log: Log): { server: Server; channels: Channels } {
  const roles = new WeakMap<object, Role>()
  const roleOf = (request: IncomingMessage): Role | null => {
    const socket = request.socket as TLSSocket
    const known = roles.get(socket)
    if (known) return known
    if (!socket.authorized) return null
    const print = socket.getPeerCertificate().fingerprint256
    let role: Role | null = null
    if (print === config.platformFingerprint) role = { kind: 'platform' }
    const peer = config.peerList.find((candidate) => candidate.fingerprint === print)
    if (peer) role = { kind: 'peer', node: peer.node }
    if (role) roles.set(socket, role)
    return role
  }
  const channels = new Channels(log)
  const server = createServer({
    key: config.tlsKey,
    cert: config.tlsCertificate,
    ca: [config.platform_certificate, ...config.peerList.map((peer) => peer.certificate)],
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.3',
    // No resumption: every connection shows its certificate.
    secureOptions: constants.SSL_OP_NO_TICKET,
    keepAliveTimeout: IDLE_MS_MAX,
    requestTimeout: REQUEST_MS_MAX,
    headersTimeout: 10_000,
    maxHeaderSize: 8192,
  }, (request, response) => {
    const trace = [request.headers['traceparent']].flat()[0]
    const handle = async (): Promise<void> => {
      const role = roleOf(request)
      if (!role) {
        response.destroy()
        return
      }
      const method = request.method ?? ''
      const path = request.url ?? ''
      if (method === 'GET' && path === '/hello') return answer(response, 200, JSON.stringify(handlers.hello()))
      const isPeerCall = path.startsWith('/peer/')
      if (isPeerCall !== (role.kind === 'peer')) throw new Refusal('NOT_ALLOWED', 'This certificate may not call this endpoint')
      if (role.kind === 'peer') {
        const sealed = await readBytes(request, PEER_BYTES_MAX)
        answer(response, 200, await within(trace, path, { from: role.node }, () => handlers.peer(role.node, path, sealed)))
      } else {
        const text = method === 'GET' ? '' : await readText(request, PLATFORM_BYTES_MAX)
        const result = await within(trace, path, { from: 'platform' }, () => handlers.platform(method, path, text))
        answer(response, result.status, JSON.stringify(result.body))
      }
    }
    handle().catch((error: unknown) => {
      const { status, body } = errorAnswer(error)
      // The rest of the body may not have been read: nothing else may follow it on this connection.
      if (error instanceof Refusal && error.code === 'TOO_LARGE' && !response.headersSent) response.setHeader('connection', 'close')
      if (status === 500) log('error', 'unexpected error', { path: (request.url ?? '').slice(0, 100), reason: reason(error) })
      answer(response, status, JSON.stringify(body))
    })
  })
  server.on('upgrade', (request, stream, head) => {
    const role = roleOf(request)
    if (role?.kind !== 'peer' || request.headers.upgrade !== PROTOCOL_NAME || head.length > 0) {
      stream.destroy()
      return
    }
    stream.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${PROTOCOL_NAME}\r\n\r\n`)
    channels.serve(stream as TLSSocket, (path, trace, sealed) => (
      within(trace, path, { from: role.node }, () => handlers.peer(role.node, path, sealed))
    ))
  })
  server.on('tlsClientError', (error) => log('warn', 'handshake refused', { reason: reason(error) }))
  server.on('clientError', (_error, socket) => { socket.destroy() })
  return { server, channels }
}

// What a trace is called, and nothing else, is taken from a request's header: it authorises nothing and is not written down here.
const within = <T>(trace: string | undefined, path: string, attributes: Attributes, work: () => Promise<T>): Promise<T> =>
  continued(trace, path.slice(0, 40), attributes, work)

/** The connections of peers that have ceased to be HTTP. */
class Channels {
  readonly #log: Log
  readonly #idle = new Set<TLSSocket>()
  readonly #busy = new Set<TLSSocket>()

  constructor(log: Log) { this.#log = log }

  /** Answers the calls of one connection, one after the other. Whoever says more than one at a time is cut off. */
  serve(stream: TLSSocket, handle: (path: string, trace: string, sealed: Buffer) => Promise<Buffer>): void {
    const reader = new FrameReader()
    let begun = 0
    this.#idle.add(stream)
    stream.setNoDelay(true)
    stream.setTimeout(IDLE_MS_MAX, () => { if (!this.#busy.has(stream)) stream.destroy() })
    stream.on('error', () => { stream.destroy() })
    stream.on('close', () => {
      this.#idle.delete(stream)
      this.#busy.delete(stream)
    })
    const take = async (chunk: Buffer): Promise<void> => {
      if (this.#busy.has(stream)) throw new Error('a call within a call')
      if (reader.isEmpty) begun = performance.now()
      else if (performance.now() - begun > REQUEST_MS_MAX) throw new Error('a call that does not end')
      const frame = reader.push(chunk, PEER_BYTES_MAX)
      if (!frame) return
      this.#idle.delete(stream)
      this.#busy.add(stream)
      const answered = await this.#answer(frame, handle)
      if (stream.destroyed) return
      this.#busy.delete(stream)
      this.#idle.add(stream)
      writeFrame(stream, answered)
    }
    stream.on('data', (chunk: Buffer) => {
      take(chunk).catch((error: unknown) => {
        this.#log('warn', "a peer's connection was cut off", { reason: reason(error) })
        stream.destroy()
      })
    })
  }

  async #answer(frame: Buffer, handle: (path: string, trace: string, sealed: Buffer) => Promise<Buffer>): Promise<Buffer> {
    const { path, trace, sealed } = callOf(frame)
    try {
      return await handle(path, trace, sealed)
    } catch (error) {
      const { status, body } = errorAnswer(error)
      if (status === 500) this.#log('error', 'unexpected error', { path: path.slice(0, 100), reason: reason(error) })
      return Buffer.from(JSON.stringify(body))
    }
  }

  closeIdle(): void { for (const stream of this.#idle) stream.destroy() }

  closeAll(): void {
    this.closeIdle()
    for (const stream of this.#busy) stream.destroy()
  }
}
