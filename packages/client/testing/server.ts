import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { KeyObject } from 'node:crypto'
import { AuthError, verifyRequest, type Claims } from '@custody/request-auth'

export interface Seen {
  method: string
  url: string
  body: string
  headers: IncomingHttpHeaders
  claims: Claims | null
}
export interface Canned {
  status?: number
  headers?: Record<string, string>
  body?: string
  /** Parts that are sent, after which the response stays open. */ open?: string[]
  /** Closes the connection instead of responding. */ cut?: boolean
  /** Never responds. */ hang?: boolean
}

/** Returns whether an endpoint requires no API key and is called without one. */
export const isOpen = (url: string): boolean =>
  ['/', '/assets', '/openapi.json', '/livez', '/metrics'].includes(url) ||
  /^\/(?:readyz|checkout\/|\.well-known\/)/.test(url)

/**
 * A service that verifies each request like the real one and then returns the next prepared
 * response.
 */
export class TestServer {
  readonly seen: Seen[] = []
  readonly #server: Server
  #answers: ((seen: Seen) => Canned)[] = []

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(
    apiKey: string,
    publicKey: KeyObject,
    now: () => number = Date.now,
  ): Promise<TestServer> {
    const nonces = new Set<string>()
    // Connections stay open: otherwise, after a test that blocks this process for seconds, a
    // connection could be closed during the next request.
    const server = createServer({ keepAliveTimeout: 0 })
    const self = new TestServer(server)
    server.on('request', (request, response) => {
      void (async () => {
        const parts: Buffer[] = []
        for await (const part of request) parts.push(part as Buffer)
        const seen: Seen = {
          method: request.method as string,
          url: request.url as string,
          body: Buffer.concat(parts).toString('utf8'),
          headers: request.headers,
          claims: null,
        }
        self.seen.push(seen)
        try {
          if (!isOpen(seen.url)) {
            const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
            if (request.headers['x-api-key'] !== apiKey)
              throw new AuthError('x-api-key', 'is unknown')
            if (seen.body !== '' && request.headers['content-type'] !== 'application/json')
              throw new AuthError('content-type', 'is missing')
            seen.claims = await verifyRequest({
              request: { token, method: seen.method, uri: seen.url, body: seen.body },
              apiKey,
              publicKey,
              now: Math.floor(now() / 1000),
              age: 'live',
            })
            if (nonces.has(seen.claims.nonce)) throw new AuthError('nonce', 'was used before')
            nonces.add(seen.claims.nonce)
          }
        } catch (error) {
          const { claim, message } = error as AuthError
          response.writeHead(401, { 'content-type': 'application/json' }).end(
            JSON.stringify({
              error: 'Unauthorized',
              message: `${claim}: ${message}`,
              code: 'UNAUTHORIZED',
              field: claim,
              status: 401,
              request_id: 'r-401',
            }),
          )
          return
        }
        const answer: Canned = self.#answers.shift()?.(seen) ?? { body: '{}' }
        if (answer.cut) request.socket.destroy()
        else if (answer.open) {
          response.writeHead(answer.status ?? 200, {
            'content-type': 'text/event-stream',
            ...answer.headers,
          })
          for (const part of answer.open) response.write(part)
        } else if (!answer.hang)
          response
            .writeHead(answer.status ?? 200, {
              'content-type': 'application/json',
              ...answer.headers,
            })
            .end(answer.body ?? '')
      })()
    })
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve)
    })
    return self
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Sets the responses, which are returned in order, and clears the recorded requests. */
  script(...answers: (Canned | ((seen: Seen) => Canned))[]): void {
    this.seen.length = 0
    this.#answers = answers.map((answer) => (typeof answer === 'function' ? answer : () => answer))
  }

  /** Closes every open connection. */
  cutAll(): void {
    this.#server.closeAllConnections()
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => {
      this.#server.close(resolve)
    })
  }
}
