import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { setPriority } from 'node:os'
import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'

export interface ChildOptions {
  name: string
  script: string
  args: string[]
  /** Standard error goes here. */
  logFile: string
  env?: Record<string, string>
  /** Options of Node itself. */
  nodeArgs?: string[]
  /** Matches the line that says it is ready; the first group is its URL. */
  ready: RegExp
}

const READY_TIMEOUT_MS = 60_000
const RESTART_MIN_MS = 200
const RESTART_MAX_MS = 10_000
const STOP_TIMEOUT_MS = 6000
/**
 * Where this process wants the same processor a child makes way, as by `nice`: callers wait for
 * this one alone.
 */
const NICENESS = 5

/**
 * A process that belongs to this one. It reads a pipe that we hold: when we die, however, it ends
 * by itself. When it dies it is started again, after a growing pause, for as long as it takes.
 */
export class Child {
  readonly options: ChildOptions
  readonly #log: Logger
  #process: ChildProcess | null = null
  #isReady = false
  #stopping = false
  #failures = 0
  #restart: NodeJS.Timeout | null = null

  constructor(options: ChildOptions, log: Logger) {
    this.options = options
    this.#log = log
  }

  get pid(): number | null {
    return this.#process?.pid ?? null
  }

  /** It runs and has said that it is ready. */
  get isReady(): boolean {
    return this.#isReady
  }

  /** Starts it and answers what the ready line names. Throws where it does not become ready. */
  async start(): Promise<string> {
    const deadline = Date.now() + READY_TIMEOUT_MS
    for (;;) {
      try {
        return await this.#spawn()
      } catch (error) {
        // A predecessor that is still closing may hold a port for a moment.
        if (this.#stopping || Date.now() > deadline || ++this.#failures > 8) throw error
        await new Promise((resolve) => setTimeout(resolve, 300))
        // Told to stop meanwhile, it had nothing to stop.
        if (this.#stopping) throw error
      }
    }
  }

  #makeWay(pid: number): void {
    try {
      setPriority(pid, NICENESS)
    } catch (error) {
      this.#log.debug(
        { child: this.options.name, err: reasonOf(error) },
        'the priority of a child process could not be lowered',
      )
    }
  }

  async #spawn(): Promise<string> {
    const { name, script, args, logFile, env, nodeArgs, ready } = this.options
    const log = openSync(logFile, 'a', 0o600)
    const child = spawn(process.execPath, [...(nodeArgs ?? []), script, ...args], {
      stdio: ['pipe', 'pipe', log],
      // Least privilege: a child sees nothing of our environment but where programs are.
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: process.env['HOME'] ?? '',
        TMPDIR: process.env['TMPDIR'] ?? '/tmp',
        ...env,
      },
    })
    closeSync(log)
    this.#process = child
    // Before it has threads, which inherit it. Where it could not be started at all, that is told
    // below.
    if (child.pid !== undefined) this.#makeWay(child.pid)
    child.stdin?.on('error', () => undefined)
    return new Promise((resolve, reject) => {
      let isReady = false
      let text = ''
      const timer = setTimeout(() => child.kill('SIGKILL'), READY_TIMEOUT_MS)
      child.stdout?.on('data', (chunk: Buffer) => {
        if (isReady) return
        text = (text + chunk.toString()).slice(-10_000)
        const match = ready.exec(text)
        if (!match) return
        isReady = true
        this.#isReady = true
        this.#failures = 0
        clearTimeout(timer)
        resolve(match[1] ?? '')
      })
      // It was never there: neither its end nor its time is waited for.
      child.once('error', (error) => {
        clearTimeout(timer)
        if (this.#process === child) this.#process = null
        reject(error)
      })
      child.once('exit', (code, signal) => {
        clearTimeout(timer)
        if (this.#process === child) this.#process = null
        if (!isReady)
          return reject(
            new Error(
              `${name} did not start (${signal ?? `exit ${String(code)}`}); see ${logFile}`,
            ),
          )
        this.#isReady = false
        if (this.#stopping) return
        this.#log.warn({ child: name, code, signal }, 'a process ended; it is restarted')
        this.#startAgain()
      })
    })
  }

  #startAgain(): void {
    const pause = Math.min(RESTART_MAX_MS, RESTART_MIN_MS * 2 ** this.#failures++)
    this.#restart = setTimeout(() => {
      this.#spawn().catch((error: unknown) => {
        if (this.#stopping) return
        this.#log.error(
          { child: this.options.name, err: reasonOf(error) },
          'a process could not be restarted; the restart is retried',
        )
        this.#startAgain()
      })
    }, pause)
  }

  async stop(): Promise<void> {
    this.#stopping = true
    if (this.#restart) clearTimeout(this.#restart)
    const child = this.#process
    if (!child || child.exitCode !== null) return
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
    await gone
    clearTimeout(timer)
  }
}
