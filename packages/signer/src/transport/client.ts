import { Agent, request as httpsRequest } from 'node:https'
import type { PeerCertificate } from 'node:tls'
import { traceHeader } from '@custody/tracing'
import type { Config, Peer } from '../config.ts'

/** The other end did not answer in time, or not at all. Never a reason for a ban. */
export class Unreachable extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'Unreachable'
  }
}

/** A pinned, kept-alive link to one peer. */
export class Link {
  readonly peer: Peer
  readonly #agent: Agent

  constructor(config: Config, peer: Peer) {
    this.peer = peer
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: 64,
      maxCachedSessions: 0,
      key: config.tlsKey,
      cert: config.tlsCertificate,
      ca: [peer.certificate],
      minVersion: 'TLSv1.3',
      // The certificate itself is the name.
      checkServerIdentity: (_host: string, certificate: PeerCertificate) => (
        certificate.fingerprint256 === peer.fingerprint ? undefined : new Error('another certificate')
      ),
    })
  }

  /** @param timeoutMs for all of it, to the answer's last byte @param bytesMax of the answer; both are kept while it is read */
  post(path: string, text: string, timeoutMs: number, bytesMax: number): Promise<string> {
    const bytes = Buffer.from(text)
    return new Promise((resolve, reject) => {
      const request = httpsRequest({
        agent: this.#agent,
        host: this.peer.host,
        port: this.peer.port,
        path,
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-length': bytes.length, ...traceHeader() },
      })
      // One clock for connecting, sending and the whole answer: a stopped process accepts connections and says nothing.
      const timer = setTimeout(
        () => { request.destroy(new Unreachable(`peer node ${this.peer.node} did not answer within ${timeoutMs} ms`)) }, timeoutMs
      )
      request.on('error', (error) => {
        clearTimeout(timer)
        reject(error instanceof Unreachable ? error : new Unreachable(`peer node ${this.peer.node}: ${error.message.slice(0, 200)}`))
      })
      request.on('response', (response) => {
        const chunks: Buffer[] = []
        let size = 0
        response.on('data', (chunk: Buffer) => {
          size += chunk.length
          // While it is read: a hostile peer must not fill this node's memory.
          if (size > bytesMax) request.destroy(new Unreachable(`peer node ${this.peer.node} answered with more than ${bytesMax} bytes`))
          else chunks.push(chunk)
        })
        response.on('end', () => {
          clearTimeout(timer)
          resolve(Buffer.concat(chunks).toString('utf8'))
        })
        response.on('error', (error) => {
          clearTimeout(timer)
          reject(error instanceof Unreachable ? error : new Unreachable(`peer node ${this.peer.node}: ${error.message.slice(0, 200)}`))
        })
      })
      request.end(bytes)
    })
  }

  close(): void { this.#agent.destroy() }
}
