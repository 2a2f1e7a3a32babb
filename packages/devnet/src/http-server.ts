import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http'
import { RequestError } from './errors.ts'
import { LAG_MS, type Faults } from './faults.ts'
import { createServer } from './http.ts'
import { WebSocketServer } from 'ws'

const BODY_MAX_BYTES = 8 * 1024 * 1024

/**
 * A chain's RPC handler: receives the body and returns the response's text; undefined closes the
 * connection without a response.
 */
export type RpcApi = {
  faults: Faults
  contentType: string
  handle: (body: string, method: string) => Promise<{ status: number; body: string } | undefined>
  /** GET requests are allowed too; their query is passed as a JSON object. */
  isGetAllowed?: boolean
  /** The body consists of bytes, which are passed one character each. */
  isBinary?: boolean
  /**
   * WebSocket handler, if the protocol has one: creates the session of one client, which may push
   * messages.
   */
  socket?: (push: (text: string) => void) => SocketSession
  /** Event stream over HTTP, if the protocol has one. */
  events?: EventStream
}

/**
 * Handles a GET for events (`text/event-stream`) and calls the callback with each; null if there is
 * no such stream.
 */
type EventStream = (
  query: Record<string, string>,
  push: (event: string) => void,
) => { close: () => void } | null

/** Result of a client's message: a response, none, or the end of the connection. */
export type Received = { text: string } | { silence: true } | { cut: true }
export interface SocketSession {
  receive: (text: string) => Received
  close: () => void
}

export type Control = (body: unknown) => Promise<unknown>

/**
 * A request to the emulator of an external service; `path` is relative to the service, `query`
 * includes the question mark.
 */
export type HttpRequest = {
  method: string
  path: string
  query: string
  headers: IncomingHttpHeaders
  body: string
}
/** `isStalled`: half of the body is sent, and then nothing more. */
export type HttpAnswer = {
  status: number
  body: string
  headers?: Record<string, string>
  isStalled?: boolean
}

/**
 * Returns the emulator of an external service at a path, or null. If its handler returns undefined,
 * the connection is closed without a response.
 */
export type ExternalApis = (
  path: string,
) => ((request: Omit<HttpRequest, 'path'>) => Promise<HttpAnswer | undefined>) | null

/** Handlers behind the server's port. */
export interface DevnetApis {
  apiAt: (path: string) => Promise<RpcApi | undefined>
  control: Control
  outside: ExternalApis
}

/**
 * A request to the server or from a caller in the same process. `url` is the path with its query.
 */
export interface ReceivedRequest {
  method: string
  url: string
  headers: IncomingHttpHeaders
  read: (encoding: BufferEncoding) => Promise<string>
  /** Sends events to the caller if it supports them; returns true if there are any. */
  stream?: (events: EventStream) => boolean
}

export function createDevnetServer(apis: DevnetApis): Server {
  const server = createServer((request, response) => {
    void serve(request, response, apis).catch((error: unknown) => {
      console.error(
        `devnet: ${request.method} ${request.url}: ${(error as Error).stack ?? String(error)}`,
      )
      response.destroy()
    })
  })
  // Longer than clients keep idle connections; otherwise a request may arrive on a connection that
  // is being closed.
  server.keepAliveTimeout = 65_000
  serveSockets(server, apis.apiAt)
  return server
}

function serveSockets(server: Server, apiAt: (path: string) => Promise<RpcApi | undefined>): void {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: BODY_MAX_BYTES })
  server.on('upgrade', (request, stream, head) => {
    void apiAt((request.url ?? '/').replace(/(.)\/$/, '$1')).then(
      (rpc) => {
        const { faults, socket: open } = rpc ?? {}
        if (!faults || !open || faults.mode === 'down' || request.headers.origin !== undefined)
          return void stream.destroy()
        sockets.handleUpgrade(request, stream, head, (socket) => {
          const send = (text: string) =>
            void setTimeout(() => socket.send(text), faults.mode === 'lag' ? LAG_MS : 0).unref()
          const session = open(send)
          socket.on('error', () => socket.terminate())
          socket.on('close', () => session.close())
          socket.on('message', (data) => {
            if (faults.mode === 'down') return socket.terminate()
            const received = session.receive(data.toString('utf8'))
            if ('cut' in received) return socket.terminate()
            if ('text' in received) send(received.text)
          })
        })
      },
      () => void stream.destroy(),
    )
  })
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  apis: DevnetApis,
): Promise<void> {
  const answer = await answerOf(apis, {
    method: request.method ?? 'GET',
    url: request.url ?? '/',
    headers: request.headers,
    read: (encoding) => readBody(request, encoding),
    stream: (events) => streamEvents(request, response, events),
  })
  if (answer === 'cut') return void request.socket.destroy()
  if (answer === 'streamed') return
  const { status, body, headers, isStalled } = answer
  response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) })
  if (isStalled) response.write(body.slice(0, body.length / 2))
  else response.end(body)
}

/**
 * Handles a request. `cut`: the connection is closed without a response; `streamed`: events are
 * sent.
 */
export async function answerOf(
  apis: DevnetApis,
  request: ReceivedRequest,
): Promise<HttpAnswer | 'cut' | 'streamed'> {
  try {
    return await answered(apis, request)
  } catch (error) {
    console.error(
      `devnet: ${request.method} ${request.url}: ${(error as Error).stack ?? String(error)}`,
    )
    return json(500, { error: (error as Error).message })
  }
}

async function answered(
  { apiAt, control, outside }: DevnetApis,
  request: ReceivedRequest,
): Promise<HttpAnswer | 'cut' | 'streamed'> {
  const { method, url, headers } = request
  const [beforeQuery = '/'] = url.split('?', 1)
  const path = beforeQuery.replace(/(.)\/$/, '$1')
  if (path === '/health') return json(200, { ok: true })
  // Only browsers send Origin, and web pages must not access a loopback chain.
  if (headers.origin !== undefined)
    return json(403, { error: 'requests of browsers are not allowed' })
  if (path === '/control') return answerControl(request, control)

  const service = outside(path)
  if (service) {
    const answer = await service({
      method,
      query: url.slice(beforeQuery.length),
      headers,
      body: await request.read('utf8'),
    })
    return answer
      ? { ...answer, headers: { ...answer.headers, 'content-type': 'application/json' } }
      : 'cut'
  }
  const rpc = await apiAt(path)
  if (!rpc) return json(404, { error: `no chain at ${path}` })
  if (rpc.faults.mode === 'down') return 'cut'
  if (method !== 'POST' && !(rpc.isGetAllowed && method === 'GET')) {
    return {
      status: 405,
      headers: { 'content-type': 'text/plain' },
      body: 'JSONRPC server handles only POST requests',
    }
  }
  const wantsEvents = method === 'GET' && headers.accept?.includes('text/event-stream') === true
  if (wantsEvents && rpc.events && request.stream?.(rpc.events)) return 'streamed'
  const body = await bodyOf(request, rpc.isBinary)
  const answer = await rpc.handle(body, method)
  if (rpc.faults.mode === 'lag') await new Promise((resolve) => setTimeout(resolve, LAG_MS).unref())
  return answer ? { ...answer, headers: { 'content-type': rpc.contentType } } : 'cut'
}

/** Returns the body of a request; of a GET request its query parameters as JSON. */
async function bodyOf(
  { method, url, read }: ReceivedRequest,
  isBinary: boolean | undefined,
): Promise<string> {
  return method === 'GET'
    ? JSON.stringify(Object.fromEntries(new URL(url, 'http://localhost').searchParams))
    : read(isBinary ? 'latin1' : 'utf8')
}

const json = (status: number, body: unknown): HttpAnswer => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
})

/**
 * Sends server-sent events until the client disconnects; returns false if there is no such stream.
 */
function streamEvents(
  request: IncomingMessage,
  response: ServerResponse,
  events: EventStream,
): boolean {
  const query = Object.fromEntries(new URL(request.url!, 'http://localhost').searchParams)
  const last = request.headers['last-event-id']
  const waiting: string[] = []
  let isOpen = false
  const stream = events(
    { ...query, ...(typeof last === 'string' && last !== '' ? { cursor: last } : {}) },
    (event) => {
      if (isOpen) response.write(event)
      else waiting.push(event)
    },
  )
  if (!stream) return false
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  isOpen = true
  for (const event of waiting) response.write(event)
  response.on('close', () => stream.close())
  return true
}

async function answerControl(
  { method, read }: ReceivedRequest,
  control: Control,
): Promise<HttpAnswer> {
  if (method !== 'POST') return json(405, { error: 'POST a JSON command' })
  try {
    const body = await read('utf8')
    let parsed: unknown
    try {
      parsed = JSON.parse(body)
    } catch {
      throw new RequestError('the body is not JSON')
    }
    return json(200, await control(parsed))
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return json(400, { error: error.message })
  }
}

async function readBody(request: IncomingMessage, encoding: BufferEncoding): Promise<string> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length
    if (size > BODY_MAX_BYTES)
      throw new RequestError(`a body must have at most ${BODY_MAX_BYTES} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString(encoding)
}
