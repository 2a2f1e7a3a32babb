import { createPublicKey, verify, type KeyObject } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { Agent, request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import { inSpan, traceHeader } from '@custody/tracing'

/** What the platform knows of a node; written by the nodes' set-up. */
export interface NodePeer {
  node: number
  host: string
  port: number
  certificate: string
  /** PEM, Ed25519. */ identity: string
  /** The node operator's own entrance, where it is on this machine. */ socket?: string
}

/** A node refused: `code` and `rule` say why. Nothing was signed by it in this call. */
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

/** A node could not be reached, was too slow, or has no partner. */
export class NodeUnavailable extends Error {
  readonly node: number
  /** The node's own error code; null where it did not answer. */
  readonly code: string | null
  constructor(node: number, message: string, code: string | null = null) {
    super(`signer ${node}: ${message}`)
    this.name = 'NodeUnavailable'
    this.node = node
    this.code = code
  }
}

const ANSWER_BYTES_MAX = 16 * 1024 * 1024

/** Speaks to the three signer nodes over mutual TLS with pinned certificates. */
export class SignerNodes {
  readonly peers: readonly NodePeer[]
  readonly #penalties = new Map<number, number>()
  readonly #agents = new Map<number, Agent>()
  readonly #identities = new Map<number, KeyObject>()

  /** @param folder the platform's folder as the nodes' set-up wrote it: tls.key, tls.crt, peers.json */
  constructor(folder: string) {
    if (!existsSync(join(folder, 'peers.json'))) {
      const needs = `${folder} needs peers.json, tls.key and tls.crt as the nodes' set-up wrote them (packages/signer/README.md)`
      throw new Error(`no signer nodes are known: ${needs}; name another folder with CUSTODY_SIGNERS`)
    }
    this.peers = (JSON.parse(readFileSync(join(folder, 'peers.json'), 'utf8')) as { nodes: NodePeer[] }).nodes
    const key = readFileSync(join(folder, 'tls.key'))
    const cert = readFileSync(join(folder, 'tls.crt'))
    for (const peer of this.peers) {
      this.#agents.set(peer.node, new Agent({
        keepAlive: true, maxSockets: 32, key, cert, ca: peer.certificate, minVersion: 'TLSv1.3',
        // The certificate itself is pinned: a self-signed one is its own authority, and names do not matter.
        checkServerIdentity: () => undefined,
      }))
      this.#identities.set(peer.node, createPublicKey(peer.identity))
    }
  }

  /** Verifies an Ed25519 signature (hex) of a node's identity key. */
  verify(node: number, message: string, signature: string): boolean {
    const key = this.#identities.get(node)
    return key !== undefined && /^[0-9a-f]{128}$/.test(signature) && verify(null, Buffer.from(message), key, Buffer.from(signature, 'hex'))
  }

  /** @throws NodeRefused (4xx), NodeUnavailable (connection, time-out, 5xx) */
  call<T>(node: number, method: 'GET' | 'POST', path: string, body: unknown, timeoutMs: number): Promise<T> {
    return inSpan(`signer ${method} ${path}`, { node }, () => this.#call<T>(node, method, path, body, timeoutMs))
  }

  async #call<T>(node: number, method: 'GET' | 'POST', path: string, body: unknown, timeoutMs: number): Promise<T> {
    const peer = this.peers.find((each) => each.node === node)
    const agent = this.#agents.get(node)
    if (!peer || !agent) throw new NodeUnavailable(node, 'is not configured')
    const payload = body === undefined ? '' : JSON.stringify(body)
    const { status, text } = await new Promise<{ status: number; text: string }>((resolve, reject) => {
      const outgoing = httpsRequest({
        agent, host: peer.host, port: peer.port, method, path, servername: '', signal: AbortSignal.timeout(timeoutMs),
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload), ...traceHeader() },
      }, (response) => {
        const chunks: Buffer[] = []
        let size = 0
        response.on('data', (chunk: Buffer) => {
          size += chunk.length
          if (size > ANSWER_BYTES_MAX) response.destroy(new Error('answer is too large'))
          else chunks.push(chunk)
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }))
        response.on('error', reject)
      })
      outgoing.on('error', reject)
      outgoing.end(payload)
    }).catch((error: Error) => {
      throw new NodeUnavailable(
        node, error.name === 'TimeoutError' || error.name === 'AbortError' ? `no answer within ${timeoutMs} ms` : 'cannot be reached'
      )
    })
    let answer: Record<string, unknown>
    try {
      answer = JSON.parse(text) as Record<string, unknown>
    } catch {
      throw new NodeUnavailable(node, `status ${status} without JSON`)
    }
    if (status >= 500) {
      throw new NodeUnavailable(node, String(answer['message'] ?? answer['error'] ?? status), String(answer['error'] ?? status))
    }
    if (status >= 400) throw new NodeRefused(node, status, answer)
    return answer as T
  }

  /** A node that failed lately is asked last until then. */
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
