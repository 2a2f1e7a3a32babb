import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { RequestError } from './errors.ts'
import { LAG_MS, type Faults } from './faults.ts'
import { WebSocketServer } from 'ws'

const BODY_MAX_BYTES = 8 * 1024 * 1024

/** A chain's RPC face: the body in, the answer's text out; undefined cuts the connection unanswered. */
export type RpcFace = {
  faults: Faults
  contentType: string
  handle: (body: string, method: string) => Promise<{ status: number; body: string } | undefined>
  /** Questions may come as GET too; what is asked is then in the query, and handed on as a JSON object. */
  isGetAllowed?: boolean
  /** What is posted are bytes: handed on one character each. */
  isBinary?: boolean
  /** Where the protocol has a WebSocket too: one client's session, which may push messages of its own. */
  socket?: (push: (text: string) => void) => SocketSession
  /** Where the protocol streams events over HTTP. */
  events?: EventStream
}

/** A GET that wants events (`text/event-stream`), and what is called with each; null where there is no such stream. */
export type EventStream = (query: Record<string, string>, push: (event: string) => void) => { close: () => void } | null

/** What becomes of a client's message: an answer, none, or the end of the connection. */
export type Received = { text: string } | { silence: true } | { cut: true }
export interface SocketSession { receive: (text: string) => Received; close: () => void }

export type Control = (body: unknown) => Promise<unknown>

/** A request to the face of an outside service; `path` is that service's own, `query` with its question mark. */
export type HttpRequest = { method: string; path: string; query: string; headers: IncomingHttpHeaders; body: string }
/** `isStalled`: half of the body comes, and then nothing more. */
export type HttpAnswer = { status: number; body: string; headers?: Record<string, string>; isStalled?: boolean }

/** The face of an outside service at a path, or null; its undefined cuts the connection unanswered. */
export type OutsideFaces = (path: string) => ((request: Omit<HttpRequest, 'path'>) => Promise<HttpAnswer | undefined>) | null

export function createDevnetServer(
  face: (path: string) => Promise<RpcFace | undefined>,
  control: Control,
  outside: OutsideFaces = () => null
): Server {
  const server = createServer((request, response) => {
    void serve(request, response, face, control, outside).catch((error: unknown) => {
      console.error(`devnet: ${request.method} ${request.url}: ${(error as Error).stack ?? String(error)}`)
      if (response.headersSent) response.destroy()
      else send(response, 500, 'application/json', JSON.stringify({ error: (error as Error).message }))
    })
  })
  // Longer than clients keep idle connections: else a request may meet a connection that is just closing.
  server.keepAliveTimeout = 65_000
  serveSockets(server, face)
  return server
}

function serveSockets(server: Server, face: (path: string) => Promise<RpcFace | undefined>): void {
  const sockets = new WebSocketServer({ noServer: true, maxPayload: BODY_MAX_BYTES })
  server.on('upgrade', (request, stream, head) => {
    void face((request.url ?? '/').replace(/(.)\/$/, '$1')).then((rpc) => {
      const { faults, socket: open } = rpc ?? {}
      if (!faults || !open || faults.mode === 'down' || request.headers.origin !== undefined) return void stream.destroy()
      sockets.handleUpgrade(request, stream, head, (socket) => {
        const send = (text: string) => void setTimeout(() => socket.send(text), faults.mode === 'lag' ? LAG_MS : 0).unref()
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
    }, () => void stream.destroy())
  })
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  face: (path: string) => Promise<RpcFace | undefined>,
  control: Control,
  outside: OutsideFaces,
): Promise<void> {
  const path = (request.url ?? '/').split('?')[0]!.replace(/(.)\/$/, '$1')
  if (path === '/health') return send(response, 200, 'application/json', '{"ok":true}')
  // Only a browser sends Origin, and no page has any business on a loopback chain.
  if (request.headers.origin !== undefined) return send(response, 403, 'application/json', '{"error":"not for browsers"}')
  if (path === '/control') return serveControl(request, response, control)

  const service = outside(path)
  if (service) {
    const answer = await service({
      method: request.method ?? 'GET', query: request.url!.slice(request.url!.split('?')[0]!.length), headers: request.headers,
      body: await readBody(request),
    })
    if (!answer) return void request.socket.destroy()
    return send(response, answer.status, 'application/json', answer.body, answer.headers, answer.isStalled)
  }
  const rpc = await face(path)
  if (!rpc) return send(response, 404, 'application/json', JSON.stringify({ error: `no chain at ${path}` }))
  if (rpc.faults.mode === 'down') return void request.socket.destroy()
  if (request.method !== 'POST' && !(rpc.isGetAllowed && request.method === 'GET')) {
    return send(response, 405, 'text/plain', 'JSONRPC server handles only POST requests')
  }
  const wantsEvents = request.method === 'GET' && request.headers.accept?.includes('text/event-stream') === true
  if (wantsEvents && rpc.events && streamEvents(request, response, rpc.events)) return
  const body =
    request.method === 'GET'
      ? JSON.stringify(Object.fromEntries(new URL(request.url!, 'http://localhost').searchParams))
      : await readBody(request, rpc.isBinary ? 'latin1' : 'utf8')
  const answer = await rpc.handle(body, request.method ?? 'GET')
  if (rpc.faults.mode === 'lag') await new Promise((resolve) => setTimeout(resolve, LAG_MS).unref())
  if (!answer) return void request.socket.destroy()
  send(response, answer.status, rpc.contentType, answer.body)
}

/** Server-sent events until the client goes; false where there is no such stream. */
function streamEvents(request: IncomingMessage, response: ServerResponse, events: EventStream): boolean {
  const query = Object.fromEntries(new URL(request.url!, 'http://localhost').searchParams)
  const last = request.headers['last-event-id']
  const waiting: string[] = []
  let isOpen = false
  const stream = events({ ...query, ...(typeof last === 'string' && last !== '' ? { cursor: last } : {}) }, (event) => {
    if (isOpen) response.write(event)
    else waiting.push(event)
  })
  if (!stream) return false
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  isOpen = true
  for (const event of waiting) response.write(event)
  response.on('close', () => stream.close())
  return true
}

async function serveControl(request: IncomingMessage, response: ServerResponse, control: Control): Promise<void> {
  if (request.method !== 'POST') return send(response, 405, 'application/json', '{"error":"POST a JSON command"}')
  try {
    const body = await readBody(request)
    let parsed: unknown
    try {
      parsed = JSON.parse(body)
    } catch {
      throw new RequestError('the body is not JSON')
    }
    send(response, 200, 'application/json', JSON.stringify(await control(parsed)))
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    send(response, 400, 'application/json', JSON.stringify({ error: error.message }))
  }
}

async function readBody(request: IncomingMessage, encoding: BufferEncoding = 'utf8'): Promise<string> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length
    if (size > BODY_MAX_BYTES) throw new RequestError(`a body is at most ${BODY_MAX_BYTES} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString(encoding)
}

function send(
  response: ServerResponse, status: number, contentType: string, body: string, headers: Record<string, string> = {}, isStalled = false
): void {
  response.writeHead(status, { ...headers, 'content-type': contentType, 'content-length': Buffer.byteLength(body) })
  if (isStalled) response.write(body.slice(0, body.length / 2))
  else response.end(body)
}
