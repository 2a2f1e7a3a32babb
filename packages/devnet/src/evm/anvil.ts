import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Agent, request } from '../http.ts'
import { endLeftover, writePidFile } from '../processes.ts'

const ARCHITECTURE: Record<string, string> = { x64: 'amd64', arm64: 'arm64' }

/** Returns the path of the engine's own binary. Its npm wrapper would hide the engine's pid. */
function anvilBinary(): string {
  const platform = process.platform === 'win32' ? 'win32' : process.platform
  const name = `@foundry-rs/anvil-${platform}-${ARCHITECTURE[process.arch] ?? process.arch}`
  const require = createRequire(import.meta.url)
  return join(
    dirname(require.resolve(`${name}/package.json`)),
    'bin',
    process.platform === 'win32' ? 'anvil.exe' : 'anvil',
  )
}

const START_TIMEOUT_MS = 20_000
/**
 * Maximum number of characters of the engine's output that are kept while searching for its port.
 */
const PRINTED_LENGTH_MAX = 4000

/** Running engines, which are stopped whenever this process ends, even during a start. */
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** Parameters of the engine that runs a chain's contracts. `code` identifies it in errors. */
export interface Machine {
  code: string
  chainId: number
  hardfork: string
  genesisTime: number
}

export type RpcAnswer = {
  jsonrpc: '2.0'
  id: unknown
  result?: unknown
  error?: { code: number; message: string; data?: unknown }
}

/** One anvil process on a private loopback port. It mines only on command. */
export class Anvil {
  /** Port that the system assigned when the engine bound port 0. */
  readonly port: number
  readonly #child: ChildProcess
  readonly #agent = new Agent({ keepAlive: true })
  #ended = false

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
    child.once('exit', () => {
      this.#ended = true
    })
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /**
   * Starts an engine. `slot` is part of the pid file's name: during a reorganization two engines
   * run concurrently.
   */
  static async start(machine: Machine, home: string, slot: string): Promise<Anvil> {
    const folder = join(home, slot)
    const pidFile = join(home, `${slot}.pid`)
    await endLeftover(pidFile)
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const child = spawn(anvilBinary(), engineArguments(machine, folder), {
      stdio: ['ignore', 'pipe', 'inherit'],
      // Otherwise the engine prints a line for each request.
      env: { NO_COLOR: '1', RUST_LOG: 'node::user=off' },
    })
    running.add(child)
    for (const event of ['exit', 'error']) child.once(event, () => running.delete(child))
    if (child.pid !== undefined) writePidFile(pidFile, child.pid)
    try {
      return new Anvil(child, await listeningPort(child))
    } catch (error) {
      child.kill('SIGKILL')
      throw new Error(`anvil for ${machine.code} does not start`, { cause: error })
    }
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

/** Resolves with the port that the engine prints once it listens. */
function listeningPort(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => {
      clearTimeout(timer)
      reject(new Error(reason))
    }
    const timer = setTimeout(() => {
      fail(`it did not listen within ${START_TIMEOUT_MS / 1000} s`)
    }, START_TIMEOUT_MS)
    let printed = ''
    // The listener stays, because an unread pipe would block the engine once it is full.
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      printed = (printed + text).slice(-PRINTED_LENGTH_MAX)
      const port = /^Listening on 127\.0\.0\.1:(\d+)$/m.exec(printed)?.[1]
      if (port === undefined) return
      clearTimeout(timer)
      resolve(Number(port))
    })
    child.once('exit', (code, signal) => {
      fail(`it ended with ${signal ?? `exit code ${code}`}`)
    })
    child.once('error', (error) => {
      fail(error.message)
    })
  })
}

function engineArguments(machine: Machine, folder: string): string[] {
  const options: Record<string, string> = {
    '--host': '127.0.0.1',
    // The system assigns a free port, which the engine prints.
    '--port': '0',
    '--order': 'fifo',
    '--chain-id': String(machine.chainId),
    '--hardfork': machine.hardfork,
    '--slots-in-an-epoch': '1',
    '--timestamp': String(machine.genesisTime),
    '--accounts': '1',
    '--balance': '1000000000',
    '--cache-path': folder,
    // Like a full node: keeps states of recent blocks only, and none on disk.
    '--prune-history': '64',
    '--threads': '1',
  }
  return [
    ...Object.entries(options).flat(),
    '--no-mining',
    '--no-request-size-limit',
    '--enable-tx-gas-limit',
    '--no-cors',
    '--disable-console-log',
  ]
}
