import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { Agent, request } from '../http.ts'
import { endLeftover, writePidFile } from '../processes.ts'

const ARCHITECTURE: Record<string, string> = { x64: 'amd64', arm64: 'arm64' }

/** The engine's own binary: its npm wrapper would stand between us and the child's pid. */
function anvilBinary(): string {
  const platform = process.platform === 'win32' ? 'win32' : process.platform
  const name = `@foundry-rs/anvil-${platform}-${ARCHITECTURE[process.arch] ?? process.arch}`
  const require = createRequire(import.meta.url)
  return join(dirname(require.resolve(`${name}/package.json`)), 'bin', process.platform === 'win32' ? 'anvil.exe' : 'anvil')
}

/** However this process ends of itself, also in the middle of a start, no engine stays behind. */
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** What a chain asks of the engine that runs its contracts. `code` names it in errors. */
export interface Machine { code: string; chainId: number; hardfork: string; genesisTime: number }

export type RpcAnswer = { jsonrpc: '2.0'; id: unknown; result?: unknown; error?: { code: number; message: string; data?: unknown } }

/** One anvil on a private loopback port. It mines only when told. */
export class Anvil {
  readonly port: number
  readonly #child: ChildProcess
  readonly #agent = new Agent({ keepAlive: true })
  #ended = false

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** `slot` names the pid file: a reorganisation runs two engines side by side for a moment. */
  static async start(machine: Machine, home: string, slot: string): Promise<Anvil> {
    const folder = join(home, slot)
    const pidFile = join(home, `${slot}.pid`)
    await endLeftover(pidFile)
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (let attempt = 1; ; attempt += 1) {
      const port = await freePort()
      const child = spawn(
        anvilBinary(),
        engineArguments(machine, port, folder),
        { stdio: ['ignore', 'ignore', 'inherit'], env: {} },
      )
      const anvil = new Anvil(child, port)
      running.add(child)
      child.once('exit', () => {
        running.delete(child)
        anvil.#ended = true
      })
      child.once('error', () => {
        anvil.#ended = true
      })
      if (child.pid !== undefined) writePidFile(pidFile, child.pid)
      if (await anvil.#listening(machine)) return anvil
      anvil.kill()
      if (attempt === 3) throw new Error(`anvil for ${machine.code} does not start`)
    }
  }

  async #listening(machine: Machine): Promise<boolean> {
    const deadline = Date.now() + 20_000
    while (!this.#ended && Date.now() < deadline) {
      try {
        return Number(await this.call('eth_chainId')) === machine.chainId
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }
    return false
  }

  onExit(listener: () => void): void {
    if (this.#ended) queueMicrotask(listener)
    else this.#child.once('exit', listener)
  }

  kill(): void {
    this.#child.removeAllListeners('exit')
    this.#ended = true
    running.delete(this.#child)
    this.#child.kill('SIGKILL')
    this.#agent.destroy()
  }

  async call<T = unknown>(method: string, ...params: unknown[]): Promise<T> {
    const answer = (await this.send({ jsonrpc: '2.0', id: 1, method, params })) as RpcAnswer
    if (answer.error) throw new Error(`${method}: ${answer.error.message}`)
    return answer.result as T
  }

  send(body: unknown): Promise<unknown> {
    const bytes = Buffer.from(JSON.stringify(body))
    return new Promise((resolve, reject) => {
      const outgoing = request(
        {
          host: '127.0.0.1',
          port: this.port,
          method: 'POST',
          agent: this.#agent,
          headers: { 'content-type': 'application/json', 'content-length': bytes.length },
        },
        (incoming) => {
          const parts: Buffer[] = []
          incoming.on('data', (part: Buffer) => parts.push(part))
          incoming.on('error', reject)
          incoming.on('end', () => {
            try {
              resolve(JSON.parse(Buffer.concat(parts).toString('utf8')))
            } catch (error) {
              reject(error as Error)
            }
          })
        },
      )
      outgoing.on('error', reject)
      outgoing.end(bytes)
    })
  }
}

function engineArguments(machine: Machine, port: number, folder: string): string[] {
  const options: Record<string, string> = {
    '--host': '127.0.0.1',
    '--port': String(port),
    '--order': 'fifo',
    '--chain-id': String(machine.chainId),
    '--hardfork': machine.hardfork,
    '--slots-in-an-epoch': '1',
    '--timestamp': String(machine.genesisTime),
    '--accounts': '1',
    '--balance': '1000000000',
    '--cache-path': folder,
    // As a full node: states of recent blocks only, and none of them on disk.
    '--prune-history': '64',
    '--threads': '1',
  }
  return [
    ...Object.entries(options).flat(), '--no-mining', '--no-request-size-limit', '--enable-tx-gas-limit', '--quiet', '--no-cors',
    '--disable-console-log',
  ]
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}
