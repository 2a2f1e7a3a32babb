import { spawn, type ChildProcess } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { CustodyClient } from '@custody/client'
import { freePorts } from '../../../signer/testing/data-dirs.ts'
import { callerKey } from '../../../signer/testing/prepared.ts'
import { callPlatform } from '../../src/server/operator/connect.ts'
import { createApiUserEverywhere } from '../../src/server/operator/enrol.ts'

const PLATFORM = fileURLToPath(new URL('../../', import.meta.url))
/** Delay in milliseconds before a supervisor restarts a service. */
const RESTART_MS = 500
const STOP_MS = 15_000
const { privateKey, publicKey } = await callerKey()

/** Kinds of processes that can be killed. */
export const KINDS = [
  'platform',
  'PostgreSQL',
  'a PostgreSQL backend',
  'signer 1',
  'signer 2',
  'signer 3',
  'chains',
  'Ethereum engine',
] as const
export type Kind = (typeof KINDS)[number]

export interface Wallets {
  client: CustodyClient
  subAccount: string
}

/**
 * `npm start` in a separate home directory, under a supervisor that restarts it whenever it dies,
 * as systemd does. The platform itself restarts all other processes.
 */
export class Installation {
  readonly home: string
  readonly logFile: string
  port = 0
  /** Number of times that the platform was started. */
  starts = 0
  /** Reasons for which the platform ended without being killed. */
  readonly ended: string[] = []
  readonly #env: () => Record<string, string>
  #child: ChildProcess | null = null
  #isWanted = false
  #mayEnd = false

  constructor(home: string, env: () => Record<string, string> = () => ({})) {
    this.home = home
    this.#env = env
    mkdirSync(home, { recursive: true })
    this.logFile = `${home}.log`
  }

  get base(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async start(): Promise<void> {
    if (this.port === 0) this.port = (await freePorts(1))[0] as number
    this.#isWanted = true
    this.#mayEnd = false
    this.#run()
    await this.ready(180_000)
  }

  #run(): void {
    this.starts++
    const child = spawn(process.execPath, [join(PLATFORM, 'src', 'main.ts')], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        ...process.env,
        CUSTODY_HOME: this.home,
        PORT: String(this.port),
        CUSTODY_LOG_LEVEL: 'warn',
        CUSTODY_LOCAL_PACE: '10',
        CUSTODY_RATE_LIMIT: '10000000',
        ...this.#env(),
      },
    })
    this.#child = child
    child.stderr?.on('data', (text: Buffer) => appendFileSync(this.logFile, text))
    child.once('exit', (code, signal) => {
      if (signal !== 'SIGKILL' && !this.#mayEnd)
        this.ended.push(`${String(signal ?? code)}: ${this.lastLines()}`)
      if (this.#child === child) this.#child = null
      if (this.#isWanted)
        setTimeout(() => {
          if (this.#isWanted) this.#run()
        }, RESTART_MS)
    })
  }

  lastLines(count = 3): string {
    return existsSync(this.logFile)
      ? readFileSync(this.logFile, 'utf8').trim().split('\n').slice(-count).join('\n')
      : ''
  }

  /** Resolves when the platform reports that it accepts transfers. */
  async ready(timeoutMs = 120_000, path = '/readyz'): Promise<void> {
    for (const deadline = Date.now() + timeoutMs; !(await this.answers(path)); await sleep(200)) {
      if (Date.now() > deadline)
        throw new Error(
          `${path} is not 200 within ${timeoutMs / 1000} s: ${JSON.stringify(await this.readiness())}\n${this.lastLines(20)}`,
        )
    }
  }

  async answers(path = '/readyz'): Promise<boolean> {
    return fetch(`${this.base}${path}`, { signal: AbortSignal.timeout(3000) }).then(
      (answer) => answer.ok,
      () => false,
    )
  }

  async readiness(): Promise<{ status: string; checks: Record<string, string> } | null> {
    return fetch(`${this.base}/readyz?deep`, { signal: AbortSignal.timeout(5000) }).then(
      (answer) => answer.json() as never,
      () => null,
    )
  }

  /** Creates a workspace's API user for a sub-account. */
  async user(workspace: string, subAccount: string): Promise<Wallets> {
    const { apiKey } = await createApiUserEverywhere(
      this.home,
      { workspace, subAccount, role: 'full', publicKeyPem: publicKey },
      10_000_000,
    )
    return {
      subAccount,
      client: new CustodyClient({
        baseUrl: this.base,
        apiKey,
        privateKey,
        timeoutMs: 15_000,
        retry: { attemptsMax: 1 },
      }),
    }
  }

  async fund(asset: string, address: string, amount: string): Promise<void> {
    await callPlatform(this.home, 'devnet', { command: 'fund', asset, address, amount, tag: null })
  }

  /** Runs the operator's command as an operator does. */
  async cli(...args: string[]): Promise<{ status: number | null; text: string }> {
    const child = spawn(process.execPath, [join(PLATFORM, 'bin', 'custody.mjs'), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, CUSTODY_HOME: this.home },
    })
    let text = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    return new Promise((resolve) => {
      child.once('close', (status) => resolve({ status, text }))
    })
  }

  /**
   * Returns the process ids of a kind that are running now. They are found by the home directory in
   * their command lines, so they never belong to another installation.
   */
  pids(kind: Kind): number[] {
    if (kind === 'platform') return this.#child?.pid === undefined ? [] : [this.#child.pid]
    const server = this.#postmaster()
    if (kind === 'PostgreSQL') return server === null ? [] : [server]
    const all = processes()
    if (kind === 'a PostgreSQL backend')
      return all
        .filter(({ parent, command }) => parent === server && command.includes('custody custody'))
        .map(({ pid }) => pid)
    if (kind === 'chains')
      return all
        .filter(({ command }) => command.includes(`devnet/src/main.ts --home ${this.home}/devnet`))
        .map(({ pid }) => pid)
    if (kind === 'Ethereum engine')
      return all
        .filter(
          ({ command }) =>
            command.includes('bin/anvil') && command.includes(`${this.home}/devnet/eth`),
        )
        .map(({ pid }) => pid)
    return all
      .filter(({ command }) =>
        command.includes(`signer/src/main.ts --home ${this.home}/signers/node-${kind.at(-1)}`),
      )
      .map(({ pid }) => pid)
  }

  #postmaster(): number | null {
    try {
      const pid = Number(
        readFileSync(join(this.home, 'postgres', 'data', 'postmaster.pid'), 'utf8').split(
          '\n',
          1,
        )[0],
      )
      return pid > 1 && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(this.home)
        ? pid
        : null
    } catch {
      return null
    }
  }

  /** Kills one process of a kind; returns false if none is running. */
  kill(kind: Kind, which = 0): boolean {
    const pids = this.pids(kind)
    const pid = pids[which % Math.max(1, pids.length)]
    if (pid === undefined) return false
    try {
      process.kill(pid, 'SIGKILL')
      return true
    } catch {
      return false
    }
  }

  /**
   * Sends SIGTERM to the platform.
   * @returns its exit status
   */
  async stop(): Promise<number | null> {
    this.#isWanted = false
    this.#mayEnd = true
    const child = this.#child
    if (!child) return null
    const gone = new Promise<number | null>((resolve) => {
      child.once('exit', (code) => resolve(code))
    })
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    return gone.finally(() => clearTimeout(timer))
  }

  /**
   * Returns the processes of this home directory that are still running; there should be none after
   * a stop.
   */
  left(): string[] {
    return processes()
      .filter(({ command, pid }) => command.includes(this.home) && pid !== process.pid)
      .map(({ pid, command }) => `${pid} ${command.slice(0, 120)}`)
  }

  /** Ends all remaining processes. */
  end(): void {
    this.#isWanted = false
    for (const kind of KINDS)
      for (const pid of this.pids(kind)) {
        try {
          process.kill(pid, 'SIGKILL')
        } catch {
          /* The process has ended. */
        }
      }
  }

  note(name: string, value: unknown): void {
    writeFileSync(`${this.home}.${name}.json`, JSON.stringify(value, null, 1))
  }
}

interface Process {
  pid: number
  parent: number
  command: string
}

function processes(): Process[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
        const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
        return state === 'Z' ? [] : [{ pid: Number(name), parent: Number(parent), command }]
      } catch {
        return []
      }
    })
}
