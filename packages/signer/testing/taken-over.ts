import { createPrivateKey, randomBytes, randomUUID, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { join } from 'node:path'
import { NO_BINDING, seal, type Binding, type Header } from '../src/envelope.ts'
import { loadConfig } from '../src/config.ts'
import { Store } from '../src/store/index.ts'
import { writeFrame } from '../src/transport/channel.ts'
import { Link } from '../src/transport/client.ts'
import { takesCalls } from './channels.ts'
import type { SignerCluster, Json } from './signer-cluster.ts'

/**
 * A compromised node of a cluster: the node is stopped, and the test uses its keys, its record and its
 * port.
 */
export class TakenOver {
  readonly identity: KeyObject
  readonly store: Store
  readonly #cluster: SignerCluster
  readonly #home: string
  readonly #node: number
  readonly #boot = randomUUID()
  #server: Server | undefined

  private constructor(cluster: SignerCluster, home: string, node: number) {
    this.#cluster = cluster
    this.#home = home
    this.#node = node
    this.identity = createPrivateKey(readFileSync(join(home, 'identity.key'), 'utf8'))
    this.store = new Store(join(home, 'record.sqlite'), () => Date.now())
  }

  static async start(cluster: SignerCluster, node: number): Promise<TakenOver> {
    if (cluster.processes.has(node)) await cluster.kill(node)
    else await cluster.stopHere(node)
    const { home, port } = cluster.peers.nodes[node - 1]!
    const taken = new TakenOver(cluster, home, node)
    await taken.#listen(port)
    return taken
  }

  #header(to: number, call: string, more: Partial<Header>): Header {
    const { record } = this.store
    return {
      protocol: 'custody/peer',
      version: 1,
      call,
      request: randomBytes(16).toString('hex'),
      response: false,
      status: 0,
      ...NO_BINDING,
      from: this.#node,
      to,
      height: record.height,
      head: record.head,
      generation: 0,
      boot: this.#boot,
      ...more,
    }
  }

  async #listen(port: number): Promise<void> {
    const config = JSON.parse(readFileSync(join(this.#home, 'config.json'), 'utf8')) as Json
    const credentials = {
      key: readFileSync(join(this.#home, 'tls.key'), 'utf8'),
      cert: readFileSync(join(this.#home, 'tls.crt'), 'utf8'),
    }
    const server = createServer({
      ...credentials,
      ca: config.peers.map((peer: Json) => peer.certificate),
      requestCert: true,
    })
    this.#server = server
    takesCalls(server, ({ path: call, sealed }, stream) => {
      const request = JSON.parse(sealed.toString()) as Json
      const body = JSON.parse(request.payload) as Json
      const answer =
        call === '/peer/hash'
          ? { hash: this.store.record.hashAt(body.height) }
          : call === '/peer/nonce'
            ? { nonce: null }
            : {}
      writeFrame(
        stream,
        seal(
          this.identity,
          this.#header(request.header.from, call, {
            request: request.header.request,
            response: true,
            status: 200,
          }),
          answer,
        ),
      )
    })
    await new Promise<void>((resolve) => {
      server.listen(port, '127.0.0.1', resolve)
    })
  }

  /**
   * Adds what a platform that cooperates with the node authorises: any order. A body that has an
   * authorisation, or states that it has none, stays the same.
   */
  #authorised(to: number, call: string, body: unknown): unknown {
    const { order, orders } = body as { order?: Json; orders?: Json[] }
    if (call !== '/peer/sign/open' || !(order ?? orders) || 'authorisation' in (body as object))
      return body
    const ordered = order
      ? this.#cluster.authorise(this.#node, '/sign', { ...order, partner: to })
      : this.#cluster.authorise(this.#node, '/sign-run', {
          workspace: orders![0].workspace,
          run: orders,
          partner: to,
        })
    return { ...(body as object), authorisation: ordered }
  }

  /** Calls a peer. @returns the peer's answer, including a refusal */
  async say(to: number, call: string, body: unknown, binding: Binding = NO_BINDING): Promise<Json> {
    const config = loadConfig(this.#home)
    const link = new Link(
      config,
      config.peerList.find(({ node }) => node === to)!,
      Date.now,
    )
    try {
      const [text = ''] = String(
        await link.post(
          call,
          seal(this.identity, this.#header(to, call, binding), this.#authorised(to, call, body)),
          20_000,
          1e6,
        ),
      ).split('\n')
      const answer = JSON.parse(text) as Json
      return answer.payload ? JSON.parse(answer.payload) : answer
    } finally {
      link.close()
    }
  }

  stop(): void {
    this.#server?.closeAllConnections()
    this.#server?.close()
    this.store.close()
  }
}
