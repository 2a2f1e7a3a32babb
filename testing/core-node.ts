import { spawn, type ChildProcess } from 'node:child_process'
import { freePorts } from './free-ports.ts'
import { waitFor } from './wait-for.ts'

const CREDENTIALS = { username: 'u', password: 'p' }

/**
 * Bitcoin Core or Litecoin Core on its regtest chain, with default options: those given here name folder, port and
 * credentials, and keep it from searching for other nodes.
 */
export class CoreNode {
  readonly url: string
  readonly credentials = CREDENTIALS
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, url: string) {
    this.#child = child
    this.url = url
  }

  /**
   * Starts a node and waits until it answers.
   * @param options further options, such as `-txindex=1`
   * @param port port of an earlier start; absent: a free one
   */
  static async start(
    binary: string,
    folder: string,
    options: readonly string[] = [],
    port?: number,
  ): Promise<CoreNode> {
    const chosen = port ?? (await freePorts(1))[0]
    const child = spawn(
      binary,
      [
        '-regtest',
        `-datadir=${folder}`,
        `-rpcport=${chosen}`,
        `-rpcuser=${CREDENTIALS.username}`,
        `-rpcpassword=${CREDENTIALS.password}`,
        '-listen=0',
        '-dnsseed=0',
        ...options,
      ],
      { stdio: 'ignore' },
    )
    const node = new CoreNode(child, `http://127.0.0.1:${chosen}/`)
    await waitFor(`${binary} answers`, async () =>
      node.call('getblockcount').then(
        () => true,
        () => false,
      ),
    )
    return node
  }

  get port(): number {
    return Number(new URL(this.url).port)
  }

  /** @throws Error if the node answers with an error */
  async call<T = unknown>(method: string, ...params: unknown[]): Promise<T> {
    const { username, password } = CREDENTIALS
    const response = await fetch(this.url, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
      },
      body: JSON.stringify({ id: 1, method, params }),
    })
    const { result, error } = (await response.json()) as { result: T; error: unknown }
    if (error) throw new Error(JSON.stringify(error))
    return result
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exit = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.kill('SIGTERM')
    await exit
  }
}
