import { createPublicKey, verify, X509Certificate, type KeyObject } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { Agent, request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { CertificateError, pinOf, requirePinned } from '@custody/request-auth/pinned'
import { inSpan, traceHeader } from '@custody/tracing'
import { OrderHeaders } from './order-header.ts'

/** Connection data of a signer node, written by the nodes' setup. */
export interface NodePeer {
  node: number
  host: string
  port: number
  /** PEM. Its key is pinned; the node may present a newer certificate of that key. */ certificate: string
  /** Public identity key (Ed25519) in PEM. */ identity: string
  /** Path of the node operator's own socket, if the node runs on this machine. */ socket?: string
}

/**
 * Thrown when a node refused a request; `code` and `rule` give the reason. The node signed nothing
 * in this call.
 */
export class NodeRefused extends Error {
  readonly node: number
  readonly status: number
  readonly code: string
  readonly rule: number | null
  readonly body: Record<string, unknown>
  constructor(node: number, status: number, body: Record<string, unknown>) {
    super(String(body['message'] ?? body['error'] ?? `status ${status}`))
    this.name = 'NodeRefused'
    this.node = node
    this.status = status
    this.code = String(body['error'] ?? 'REFUSED')
    this.rule = typeof body['rule'] === 'number' ? body['rule'] : null
    this.body = body
  }
}

/** Thrown when a node could not be reached, was too slow, or has no partner node. */
export class NodeUnavailable extends Error {
  readonly node: number
  /** The node's own error code; null if it did not respond. */
  readonly code: string | null
  /** Whether the node may have received the request. */
  readonly isSent: boolean
  constructor(node: number, message: string, code: string | null = null, isSent = true) {
    super(`signer ${node}: ${message}`)
    this.name = 'NodeUnavailable'
    this.node = node
    this.code = code
    this.isSent = isSent
  }
}

const ANSWER_BYTES_MAX = 16 * 1024 * 1024
/**
 * Age in milliseconds above which an idle connection is closed, so that a renewed certificate of
 * either end is used and seen.
 */
const CONNECTION_AGE_MS_MAX = 600_000

/**
 * The platform's TLS certificate. It is read again when its file was replaced, so that a renewal
 * needs no restart.
 */
class OwnCertificate {
  readonly #path: string
  readonly #pin: string
  #version = ''
  #text = ''

  /**
   * Reads the certificate from a file.
   * @throws if the file is missing or is not a certificate
   */
  constructor(path: string) {
    this.#path = path
    this.#read()
    this.#pin = pinOf(this.#text)
  }

  /** The certificate in PEM. A file that is not a certificate of the same key is ignored. */
  get text(): string {
    const previous = this.#text
    try {
      this.#read()
      if (this.#text !== previous && pinOf(this.#text) !== this.#pin) this.#text = previous
    } catch {
      this.#text = previous
    }
    return this.#text
  }

  get expiresAt(): Date {
    return new X509Certificate(this.text).validToDate
  }

  #read(): void {
    const { ino, mtimeMs } = statSync(this.#path)
    const version = `${ino} ${mtimeMs}`
    if (version === this.#version) return
    this.#text = readFileSync(this.#path, 'utf8')
    this.#version = version
  }
}

interface PinnedAgentOptions {
  key: Buffer
  own: OwnCertificate
  peer: NodePeer
  now: () => number
  onPresented: (certificate: X509Certificate) => void
}

/** HTTPS agent for connections to one node, whose key is pinned. */
class PinnedAgent extends Agent {
  readonly #o: PinnedAgentOptions
  readonly #pin: string
  readonly #openedAtMs = new WeakMap<object, number>()

  constructor(o: PinnedAgentOptions) {
    super({
      keepAlive: true,
      maxSockets: 32,
      maxCachedSessions: 0,
      key: o.key,
      minVersion: 'TLSv1.3',
      // `requirePinned` verifies the peer instead: there is no certificate authority and no host
      // name to compare. Without `ca`, Node.js would load the public authorities.
      rejectUnauthorized: false,
      ca: o.peer.certificate,
    })
    this.#o = o
    this.#pin = pinOf(o.peer.certificate)
  }

  override createConnection(
    ...[options, callback]: Parameters<Agent['createConnection']>
  ): Duplex | null | undefined {
    const socket = super.createConnection(
      { ...options, cert: this.#o.own.text } as typeof options,
      callback,
    ) as TLSSocket
    this.#openedAtMs.set(socket, performance.now())
    requirePinned(socket, { pin: this.#pin, now: this.#o.now, onPresented: this.#o.onPresented })
    return socket
  }

  override keepSocketAlive(socket: Duplex): boolean {
    const ageMs = performance.now() - (this.#openedAtMs.get(socket) ?? -Infinity)
    // The inherited method returns false for a connection that must not be reused, although the
    // types say otherwise.
    return ageMs <= CONNECTION_AGE_MS_MAX && (super.keepSocketAlive(socket) as unknown as boolean)
  }
}

/** Client of the three signer nodes, over mutual TLS with pinned keys. */
export class SignerNodes {
  readonly peers: readonly NodePeer[]
  readonly #penalties = new Map<number, number>()
  readonly #agents = new Map<number, Agent>()
  readonly #identities = new Map<number, KeyObject>()
  readonly #own: OwnCertificate
  readonly #orders: OrderHeaders
  readonly #expiries = new Map<number, Date>()
  readonly #clock: () => number

  /**
   * Reads the connection data of the nodes.
   * @param folder the platform's folder as the nodes' setup wrote it: tls.key, tls.crt, peers.json
   * @param clock returns the current time in milliseconds since the Unix epoch, for checking
   *   certificates
   * @param orderClock the same, for orders; default: `clock`
   * @throws if the folder has no peers.json
   */
  constructor(folder: string, clock: () => number = Date.now, orderClock = clock) {
    if (!existsSync(join(folder, 'peers.json'))) {
      const needs = `${folder} must contain peers.json, tls.key and tls.crt as the nodes' set-up wrote them (packages/signer/README.md)`
      throw new Error(
        `no signer nodes are configured: ${needs}; set another folder with CUSTODY_SIGNERS`,
      )
    }
    this.peers = (
      JSON.parse(readFileSync(join(folder, 'peers.json'), 'utf8')) as { nodes: NodePeer[] }
    ).nodes
    const key = readFileSync(join(folder, 'tls.key'))
    const own = new OwnCertificate(join(folder, 'tls.crt'))
    this.#own = own
    this.#clock = clock
    for (const peer of this.peers) {
      const onPresented = ({ validToDate }: X509Certificate): void => {
        this.#expiries.set(peer.node, validToDate)
      }
      this.#agents.set(peer.node, new PinnedAgent({ key, own, peer, now: clock, onPresented }))
      this.#identities.set(peer.node, createPublicKey(peer.identity))
    }
    this.#orders = new OrderHeaders(key, this.#identities, orderClock)
  }

  /**
   * Returns the expiry of the platform's own certificate and of the one that each node presented
   * last. A node that has not presented one is absent.
   */
  certificateExpiries(): { platform: Date; nodes: ReadonlyMap<number, Date> } {
    return { platform: this.#own.expiresAt, nodes: this.#expiries }
  }

  /** Describes for the operator why a call received no response. */
  #whyUnreachable(error: Error, timeoutMs: number): string {
    if (error instanceof CertificateError) return error.message
    if (error.name === 'TimeoutError' || error.name === 'AbortError')
      return `no response within ${timeoutMs} ms`
    // The node closes the connection without a reason if the platform's certificate has expired.
    const { expiresAt } = this.#own
    if (expiresAt.getTime() >= this.#clock()) return 'cannot be reached'
    return `cannot be reached; the platform's own TLS certificate expired on ${expiresAt.toISOString().slice(0, 10)}`
  }

  /** Verifies an Ed25519 signature (hex) made with a node's identity key. */
  verify(node: number, message: string, signature: string): boolean {
    const key = this.#identities.get(node)
    return (
      key !== undefined &&
      /^[0-9a-f]{128}$/.test(signature) &&
      verify(null, Buffer.from(message), key, Buffer.from(signature, 'hex'))
    )
  }

  /**
   * Sends a request to a node and returns the response body.
   * @throws NodeRefused for status 4xx; NodeUnavailable for a connection error, a timeout or status
   *   5xx
   */
  call<T>(
    node: number,
    method: 'GET' | 'POST',
    path: string,
    body: unknown,
    timeoutMs: number,
  ): Promise<T> {
    return inSpan(`signer ${method} ${path}`, { node }, () =>
      this.#call<T>(node, method, path, body, timeoutMs),
    )
  }

  async #call<T>(
    node: number,
    method: 'GET' | 'POST',
    path: string,
    body: unknown,
    timeoutMs: number,
  ): Promise<T> {
    const peer = this.peers.find((each) => each.node === node)
    const agent = this.#agents.get(node)
    if (!peer || !agent) throw new NodeUnavailable(node, 'is not configured')
    const payload = body === undefined ? '' : JSON.stringify(body)
    const { status, text } = await this.#send(peer, agent, {
      method,
      path,
      payload,
      timeoutMs,
      headers: this.#orders.of(node, path, body, timeoutMs),
    })
    let answer: Record<string, unknown>
    try {
      answer = JSON.parse(text) as Record<string, unknown>
    } catch {
      throw new NodeUnavailable(node, `status ${status} without JSON`)
    }
    if (status >= 500) {
      throw new NodeUnavailable(
        node,
        String(answer['message'] ?? answer['error'] ?? status),
        String(answer['error'] ?? status),
      )
    }
    if (status >= 400) throw new NodeRefused(node, status, answer)
    return answer as T
  }

  /** @throws NodeUnavailable if there is no answer */
  async #send(
    peer: NodePeer,
    agent: Agent,
    o: { method: string; path: string; payload: string; timeoutMs: number; headers: object },
  ): Promise<{ status: number; text: string }> {
    const { method, path, payload, timeoutMs } = o
    let isSent = false
    return new Promise<{ status: number; text: string }>((resolve, reject) => {
      const outgoing = httpsRequest(
        {
          agent,
          host: peer.host,
          port: peer.port,
          method,
          path,
          servername: '',
          signal: AbortSignal.timeout(timeoutMs),
          headers: {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(payload),
            ...traceHeader(),
            ...o.headers,
          },
        },
        (response) => {
          const chunks: Buffer[] = []
          let size = 0
          response.on('data', (chunk: Buffer) => {
            size += chunk.length
            if (size > ANSWER_BYTES_MAX) response.destroy(new Error('the response is too large'))
            else chunks.push(chunk)
          })
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              text: Buffer.concat(chunks).toString('utf8'),
            }),
          )
          response.on('error', reject)
        },
      )
      outgoing.on('error', reject)
      // Nothing is sent before the handshake has ended and the node's key was compared.
      outgoing.on('socket', (socket) => {
        if (!(socket as TLSSocket).connecting) isSent = true
        else
          socket.once('secureConnect', () => {
            isSent = true
          })
      })
      outgoing.end(payload)
    }).catch((error: Error) => {
      throw new NodeUnavailable(peer.node, this.#whyUnreachable(error, timeoutMs), null, isSent)
    })
  }

  /** Marks a node that failed recently; until `untilMs` it is tried last. */
  penalise(node: number, untilMs: number): void {
    this.#penalties.set(node, untilMs)
  }

  isPenalised(node: number, nowMs: number): boolean {
    return (this.#penalties.get(node) ?? 0) > nowMs
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy()
  }
}
