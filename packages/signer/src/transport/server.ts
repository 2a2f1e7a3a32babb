import { constants } from 'node:crypto'
import { createServer, type Server } from 'node:https'
import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { continued, type Attributes } from '@custody/tracing'
import type { Config } from '../config.ts'
import { errorAnswer, Refusal } from '../errors.ts'
import { reason, type Log } from '../log.ts'
import type { Hello } from '../prints.ts'
import { answer, readText } from './body.ts'

/** Who calls, by the pinned certificate of the connection. */
export type Role = { kind: 'platform' } | { kind: 'peer'; node: number }

export interface Handlers {
  /** To whoever is known: who this is and whom it knows. */
  hello(): Hello
  platform(method: string, path: string, text: string): Promise<{ status: number; body: unknown }>
  /** Receives and returns envelope text. */
  peer(node: number, path: string, text: string): Promise<{ status: number; text: string }>
}

/** An order shows previous transactions in hex: thirty of the largest, without their witnesses. */
const PLATFORM_BYTES_MAX = 64 * 1024 * 1024
/** The same order in an envelope, as one text. */
const PEER_BYTES_MAX = 72 * 1024 * 1024

/**
 * HTTPS with client certificates. A connection whose certificate is not pinned never reaches a handler:
 * the handshake ends it (the pinned certificates are the only authorities), and the fingerprint is compared again.
 */
export function openServer(config: Config, handlers: Handlers, log: Log): Server {
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
  const server = createServer({
    key: config.tlsKey,
    cert: config.tlsCertificate,
    ca: [config.platform_certificate, ...config.peerList.map((peer) => peer.certificate)],
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.3',
    // No resumption: every connection shows its certificate.
    secureOptions: constants.SSL_OP_NO_TICKET,
    keepAliveTimeout: 120_000,
    requestTimeout: 60_000,
    headersTimeout: 10_000,
    maxHeaderSize: 8192,
  }, (request, response) => {
    // What a trace is called, and nothing else, is taken from this header: it authorises nothing and is not written down here.
    const within = <T>(path: string, attributes: Attributes, work: () => Promise<T>): Promise<T> =>
      continued([request.headers['traceparent']].flat()[0], path.slice(0, 40), attributes, work)
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
        const text = await readText(request, PEER_BYTES_MAX)
        const result = await within(path, { from: role.node }, () => handlers.peer(role.node, path, text))
        answer(response, result.status, result.text)
      } else {
        const text = method === 'GET' ? '' : await readText(request, PLATFORM_BYTES_MAX)
        const result = await within(path, { from: 'platform' }, () => handlers.platform(method, path, text))
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
  server.on('tlsClientError', (error) => log('warn', 'handshake refused', { reason: reason(error) }))
  server.on('clientError', (_error, socket) => { socket.destroy() })
  return server
}
