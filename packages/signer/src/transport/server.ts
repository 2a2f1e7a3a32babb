import { constants } from 'node:crypto'
import { createServer, type Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { ORDER_HEADER } from '@custody/request-auth/orders'
import { checkCertificate } from '@custody/request-auth/pinned'
import { continued, type Attributes } from '@custody/tracing'
import type { Config } from '../config.ts'
import { errorAnswer, Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import type { Hello } from '../fingerprints.ts'
import { answer, readBytes, readText } from './body.ts'
import { callOf, FrameReader, pathOf, PROTOCOL_NAME, writeFrame } from './channel.ts'
import { callBytesMax, MemoryBudget } from './memory-budget.ts'

/** The caller, by the pinned key of the connection's certificate. */
type Role = { kind: 'platform' } | { kind: 'peer'; node: number }

export interface Handlers {
  /**
   * Returns this node's identity and the fingerprints that it has pinned, for known callers only.
   */
  hello(): Hello
  /** @param order value of the header with the platform's authorisation, if there is one */
  platform(
    method: string,
    path: string,
    text: string,
    order: string | undefined,
  ): Promise<{ status: number; body: unknown }>
  /** Receives and returns an envelope. */
  peer(node: number, path: string, sealed: Buffer): Promise<Buffer>
}

/**
 * Maximum size of a request of the platform. An order contains previous transactions in hex: up to
 * thirty of the largest, without their witnesses.
 */
const PLATFORM_BYTES_MAX = 64 * 1024 * 1024
/**
 * Maximum idle time of a connection, and maximum time of receiving a complete request, in
 * milliseconds.
 */
const IDLE_MS_MAX = 120_000
const REQUEST_MS_MAX = 60_000

/** Client certificates, timeouts and limits of every connection. */
const CONNECTION_OPTIONS = {
  requestCert: true,
  // `checkCertificate` replaces this check: there is no certificate authority.
  rejectUnauthorized: false,
  keepAliveTimeout: IDLE_MS_MAX,
  requestTimeout: REQUEST_MS_MAX,
  headersTimeout: 10_000,
  maxHeaderSize: 8192,
} as const

/**
 * TLS settings of the server. Sessions are not resumed, so every connection presents its
 * certificate.
 */
const contextOf = ({ tlsKey, tlsCertificate, platform_certificate, peerList }: Config) => ({
  key: tlsKey,
  cert: tlsCertificate,
  // Names the authorities in the handshake, and keeps Node from loading the public certificate
  // authorities. `checkCertificate` decides.
  ca: [platform_certificate, ...peerList.map(({ certificate }) => certificate)],
  minVersion: 'TLSv1.3' as const,
  secureOptions: constants.SSL_OP_NO_TICKET,
})

/**
 * Makes a running server present the certificate of `config` on new connections. Open connections
 * continue.
 */
export const presentCertificate = (server: Server, config: Config): void => {
  server.setSecureContext(contextOf(config))
}

/**
 * Opens the HTTPS server with client certificates. A connection gets a role when its handshake
 * ends, if its certificate is valid and has a pinned key; any other connection is closed then.
 * Handlers serve connections with a role only.
 * @param now milliseconds since the epoch, against which certificates are checked
 */
export function openServer(
  config: Config,
  handlers: Handlers,
  log: Log,
  now: () => number,
): { server: Server; channels: Channels } {
  const roles = new WeakMap<object, Role>()
  const roleOf = (request: IncomingMessage): Role | null => roles.get(request.socket) ?? null
  const roleByPin = rolesByPin(config)
  const budget = new MemoryBudget()
  const channels = new Channels(log, budget)
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const role = roleOf(request)
    if (!role) {
      response.destroy()
      return
    }
    const method = request.method ?? ''
    const path = request.url ?? ''
    if (method === 'GET' && path === '/hello')
      return answer(response, 200, JSON.stringify(handlers.hello()))
    const isPeerCall = path.startsWith('/peer/')
    if (isPeerCall !== (role.kind === 'peer'))
      throw new Refusal('NOT_ALLOWED', 'This certificate must not call this endpoint')
    if (role.kind === 'peer')
      await servePeer({ request, response, node: role.node, handlers, budget })
    else await servePlatform(request, response, handlers)
  }
  const server = createServer(
    { ...contextOf(config), ...CONNECTION_OPTIONS },
    (request, response) => {
      serve(request, response).catch((error: unknown) => {
        answerError(log, request, response, error)
      })
    },
  )
  // Runs before the HTTP server receives the connection, so that it reads nothing of a rejected
  // one.
  server.prependListener('secureConnection', (socket) => {
    try {
      const role = roleByPin.get(
        checkCertificate(socket.getPeerX509Certificate(), [...roleByPin.keys()], now()),
      )
      if (role) roles.set(socket, role)
    } catch (error) {
      log('warn', 'handshake rejected', { reason: reason(error) })
      socket.destroy()
    }
  })
  server.on('upgrade', (request, stream, head) => {
    const role = roleOf(request)
    if (role?.kind !== 'peer' || request.headers.upgrade !== PROTOCOL_NAME || head.length > 0) {
      stream.destroy()
      return
    }
    stream.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${PROTOCOL_NAME}\r\n\r\n`,
    )
    channels.serve(stream as TLSSocket, role.node, (path, trace, sealed) =>
      within(trace, path, { from: role.node }, () => handlers.peer(role.node, path, sealed)),
    )
  })
  server.on('tlsClientError', (error) =>
    log('warn', 'handshake rejected', { reason: reason(error) }),
  )
  server.on('clientError', (_error, socket) => {
    socket.destroy()
  })
  return { server, channels }
}

/** Returns the role of each pinned key. */
const rolesByPin = ({ platformPin, peerList }: Config): Map<string, Role> =>
  new Map<string, Role>([
    [platformPin, { kind: 'platform' }],
    ...peerList.map(({ node, pin }) => [pin, { kind: 'peer', node }] as const),
  ])

/**
 * Answers a peer's call, within the peer's memory budget.
 * @throws Refusal
 */
async function servePeer({
  request,
  response,
  node,
  handlers,
  budget,
}: {
  request: IncomingMessage
  response: ServerResponse
  node: number
  handlers: Handlers
  budget: MemoryBudget
}): Promise<void> {
  const path = request.url ?? ''
  const max = callBytesMax(path)
  const declared = Number(request.headers['content-length'] ?? max)
  const release = budget.take(node, Math.min(Number.isFinite(declared) ? declared : max, max))
  try {
    const sealed = await readBytes(request, max)
    answer(
      response,
      200,
      await within(traceOf(request), path, { from: node }, () => handlers.peer(node, path, sealed)),
    )
  } finally {
    release()
  }
}

/**
 * Answers a call of the platform.
 * @throws Refusal
 */
async function servePlatform(
  request: IncomingMessage,
  response: ServerResponse,
  handlers: Handlers,
): Promise<void> {
  const method = request.method ?? ''
  const path = request.url ?? ''
  const text = method === 'GET' ? '' : await readText(request, PLATFORM_BYTES_MAX)
  const result = await within(traceOf(request), path, { from: 'platform' }, () =>
    handlers.platform(method, path, text, [request.headers[ORDER_HEADER]].flat()[0]),
  )
  answer(response, result.status, JSON.stringify(result.body))
}

/** Answers a request that failed, and logs an unexpected error. */
function answerError(
  log: Log,
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
): void {
  const { status, body } = errorAnswer(error)
  // The rest of the body may not have been read, so no other request may follow on this connection.
  if (error instanceof Refusal && error.code === 'TOO_LARGE' && !response.headersSent)
    response.setHeader('connection', 'close')
  if (status === 500)
    log('error', 'unexpected error', {
      path: (request.url ?? '').slice(0, 100),
      reason: reason(error),
    })
  answer(response, status, JSON.stringify(body))
}

const traceOf = (request: IncomingMessage): string | undefined =>
  [request.headers['traceparent']].flat()[0]

// Only the trace ID is read from a request's header; it authorises nothing and is not recorded.
const within = <T>(
  trace: string | undefined,
  path: string,
  attributes: Attributes,
  work: () => Promise<T>,
): Promise<T> => continued(trace, path.slice(0, 40), attributes, work)

/** Connections of peers that have been upgraded from HTTP. */
class Channels {
  readonly #log: Log
  readonly #budget: MemoryBudget
  readonly #idle = new Set<TLSSocket>()
  readonly #busy = new Set<TLSSocket>()

  constructor(log: Log, budget: MemoryBudget) {
    this.#log = log
    this.#budget = budget
  }

  /**
   * Answers the calls of one connection, one after the other. The connection is closed if a peer
   * sends several at a time.
   */
  serve(
    stream: TLSSocket,
    node: number,
    handle: (path: string, trace: string, sealed: Buffer) => Promise<Buffer>,
  ): void {
    const reader = new FrameReader()
    let begun = 0
    let release: (() => void) | null = null
    const giveBack = (): void => {
      release?.()
      release = null
    }
    this.#idle.add(stream)
    stream.setNoDelay(true)
    stream.setTimeout(IDLE_MS_MAX, () => {
      if (!this.#busy.has(stream)) stream.destroy()
    })
    stream.on('error', () => {
      stream.destroy()
    })
    stream.on('close', () => {
      this.#idle.delete(stream)
      // The memory of a call in progress is still in use.
      if (!this.#busy.delete(stream)) giveBack()
    })
    const take = async (chunk: Buffer): Promise<void> => {
      if (this.#busy.has(stream))
        throw new Error('a call that begins before the previous one has ended')
      if (reader.isEmpty) begun = performance.now()
      else if (performance.now() - begun > REQUEST_MS_MAX)
        throw new Error('a call that does not end')
      const frame = reader.push(chunk, callBytesMax('/peer/sign/open'))
      const path = pathOf(frame ?? reader.begun)
      const length = frame?.length ?? reader.length
      if (path !== null && length > callBytesMax(path)) {
        throw new Error(
          `${path.slice(0, 64)} with ${length} bytes, more than the allowed ${callBytesMax(path)}`,
        )
      }
      if (!frame) {
        if (length > 0) release ??= this.#budget.take(node, length)
        return
      }
      this.#idle.delete(stream)
      this.#busy.add(stream)
      const answered = await this.#answer(frame, handle)
      giveBack()
      if (stream.destroyed) return
      this.#busy.delete(stream)
      this.#idle.add(stream)
      writeFrame(stream, answered)
    }
    stream.on('data', (chunk: Buffer) => {
      take(chunk).catch((error: unknown) => {
        this.#log('warn', "a peer's connection was closed", { reason: reason(error) })
        stream.destroy()
      })
    })
  }

  async #answer(
    frame: Buffer,
    handle: (path: string, trace: string, sealed: Buffer) => Promise<Buffer>,
  ): Promise<Buffer> {
    const { path, trace, sealed } = callOf(frame)
    try {
      return await handle(path, trace, sealed)
    } catch (error) {
      const { status, body } = errorAnswer(error)
      if (status === 500)
        this.#log('error', 'unexpected error', { path: path.slice(0, 100), reason: reason(error) })
      return Buffer.from(JSON.stringify(body))
    }
  }

  closeIdle(): void {
    for (const stream of this.#idle) stream.destroy()
  }

  closeAll(): void {
    this.closeIdle()
    for (const stream of this.#busy) stream.destroy()
  }
}
