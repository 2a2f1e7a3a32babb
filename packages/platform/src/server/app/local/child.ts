import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { setPriority } from 'node:os'
import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'

export interface ChildOptions {
  name: string
  script: string
  args: string[]
  /** File to which standard error is written. */
  logFile: string
  env?: Record<string, string>
  /** Command-line options of Node.js itself. */
  nodeArgs?: string[]
  /** Matches the line that reports readiness; the first group is the URL. */
  ready: RegExp
}

const READY_TIMEOUT_MS = 60_000
const RESTART_MIN_MS = 200
const RESTART_MAX_MS = 10_000
const STOP_TIMEOUT_MS = 6000
/**
 * Nice value of children, so that this process, which serves the callers, has priority over them.
 */
const NICENESS = 5

/**
 * A child process. It reads a pipe that this process holds, so it ends by itself when this process
 * ends, even if it is killed. If the child dies, it is restarted after a growing pause, without
 * limit.
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

  /** Whether the child is running and has reported that it is ready. */
  get isReady(): boolean {
    return this.#isReady
  }

  /**
   * Starts the child and returns the URL in its ready line.
   * @throws Error if it does not become ready
   */
  async start(): Promise<string> {
    const deadline = Date.now() + READY_TIMEOUT_MS
    for (;;) {
      try {
        return await this.#spawn()
      } catch (error) {
        // A previous process that is still closing may hold a port for a moment.
        if (this.#stopping || Date.now() > deadline || ++this.#failures > 8) throw error
        await new Promise((resolve) => setTimeout(resolve, 300))
        // If `stop` was called in between, there was no process to stop.
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
      // Least privilege: of this process's environment, the child receives only the paths that it
      // needs.
      env: {
        PATH: process.env['PATH'] ?? '',
        HOME: process.env['HOME'] ?? '',
        TMPDIR: process.env['TMPDIR'] ?? '/tmp',
        ...env,
      },
    })
    closeSync(log)
    this.#process = child
    // The priority is lowered before the child creates threads, which inherit it. If the child
    // could not be started, the error handler below reports it.
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
      // The process never started, so there is no exit or timeout to wait for.
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
        this.#log.warn({ child: name, code, signal }, 'a child process ended; it is restarted')
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
          'a child process could not be restarted; the restart is retried',
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
