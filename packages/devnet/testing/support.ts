import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export function tempHome(): string {
  return mkdtempSync(join(tmpdir(), 'devnet-test-'))
}

export function removeHome(home: string): void {
  rmSync(home, { recursive: true, force: true, maxRetries: 5 })
}

type RpcResult = { result?: unknown; error?: { code: number; message: string } | null }

export type Running = {
  url: string
  pid: number
  startMs: number
  /** Sends SIGKILL to every process of this devnet, including the engine. */
  killAll: () => Promise<void>
  /** Sends SIGKILL to the node process alone: the engine keeps running without it. */
  killNode: () => Promise<void>
  stop: () => Promise<number | null>
  closeStdin: () => Promise<number | null>
  rpc: (path: 'btc' | 'eth', method: string, ...params: unknown[]) => Promise<RpcResult>
  call: <T = unknown>(path: 'btc' | 'eth', method: string, ...params: unknown[]) => Promise<T>
  control: <T = Record<string, unknown>>(command: Record<string, unknown>) => Promise<T>
  mine: (network: string, blocks?: number) => Promise<{ height: number; hash: string }>
  /** Returns how many transactions are waiting for a block. */
  waiting: (network: string) => Promise<number>
  /**
   * Runs a client's call that ends when a block contains its transaction: the block is produced
   * once the transaction is waiting.
   */
  mined: <T>(network: string, call: Promise<T>) => Promise<T>
  rawControl: (body: string) => Promise<{ status: number; body: { error?: string } }>
}

/**
 * @param options.manual blocks are produced only on command, and clocks are stopped: nothing
 *   happens that the test does not trigger
 */
export async function startDevnet(
  home: string,
  options: { port?: number; manual?: boolean; pace?: number } = {},
): Promise<Running> {
  const { port = 0, manual = true, pace = 1 } = options
  const started = Date.now()
  const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
  const times = ['--pace', String(pace), ...(manual ? ['--manual'] : [])]
  const child = spawn(process.execPath, [main, '--home', home, '--port', String(port), ...times], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  })
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const url = await new Promise<string>((resolve, reject) => {
    let text = ''
    child.stdout.on('data', (part: Buffer) => {
      text += part.toString()
      const ready = /^devnet ready (\S+)$/m.exec(text)
      if (ready) resolve(ready[1]!)
    })
    void exit.then((code) => reject(new Error(`devnet ended with ${code}`)))
  })
  const pid = child.pid!
  const post = async (path: string, body: string): Promise<Response> =>
    fetch(`${url}/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
  const running: Running = {
    url,
    pid,
    startMs: Date.now() - started,
    killAll: async () => {
      process.kill(-pid, 'SIGKILL')
      await exit
    },
    killNode: async () => {
      process.kill(pid, 'SIGKILL')
      await exit
    },
    stop: async () => {
      child.kill('SIGTERM')
      return exit
    },
    closeStdin: async () => {
      child.stdin.end()
      return exit
    },
    rpc: async (path, method, ...params) =>
      (
        await post(path, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
      ).json() as Promise<RpcResult>,
    call: async <T>(path: 'btc' | 'eth', method: string, ...params: unknown[]): Promise<T> => {
      const { result, error } = await running.rpc(path, method, ...params)
      if (error) throw new Error(`${method}: ${error.code} ${error.message}`)
      return result as T
    },
    control: async <T>(command: Record<string, unknown>): Promise<T> => {
      const { status, body } = await running.rawControl(JSON.stringify(command))
      if (status !== 200) throw new Error(body.error)
      return body as T
    },
    mine: async (network, blocks = 1) => running.control({ command: 'mine', network, blocks }),
    waiting: async (network) => {
      const { networks } = await running.control<{
        networks: Record<string, { waiting: number | null }>
      }>({ command: 'info' })
      return networks[network]?.waiting ?? 0
    },
    mined: async <T>(network: string, call: Promise<T>): Promise<T> => {
      let isOver = false
      const end = () => {
        isOver = true
      }
      call.then(end, end)
      while (!isOver) {
        if ((await running.waiting(network)) > 0) await running.mine(network)
        else await new Promise((resolve) => setTimeout(resolve, 20))
      }
      return call
    },
    rawControl: async (body) => {
      const response = await post('control', body)
      return { status: response.status, body: (await response.json()) as { error?: string } }
    },
  }
  return running
}

/** Returns the process ids of engines that belong to a home. */
export function enginesOf(home: string): number[] {
  return readdirSync(join(home, 'eth'))
    .filter((name) => name.endsWith('.pid'))
    .map((name) => Number.parseInt(readFileSync(join(home, 'eth', name), 'utf8'), 10))
    .filter((pid) => isAlive(pid))
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
