import type { Logger } from 'pino'
import type { Environment } from '../environment.ts'
import type { Metrics } from '../metrics.ts'
import { networkOf } from './client-network.ts'
import { windowOf } from './rate-limit.ts'

interface Services {
  environment: Pick<Environment, 'now'>
  log: Pick<Logger, 'warn'>
  metrics: Pick<Metrics, 'refusalsUnlogged'>
}

/**
 * Maximum numbers of log lines in a minute about refused requests without an authenticated caller:
 * of one client network, and of all together.
 */
export const REFUSAL_LINES_MAX = { network: 60, all: 600 } as const

/**
 * Limits the log lines that clients without a key can cause, so that they cannot fill the disk.
 * Refusals without a line are counted, and reported in one line after the minute.
 */
export class RefusalLog {
  readonly #services: Services
  readonly #lines = new Map<string, number>()
  #window = 0
  #written = 0
  #unlogged = 0

  constructor(services: Services) {
    this.#services = services
  }

  /**
   * Returns whether the refusal of a request is logged.
   * @param ip address of the client
   */
  admits(ip: string): boolean {
    this.turn()
    const network = networkOf(ip)
    const lines = this.#lines.get(network) ?? 0
    if (lines >= REFUSAL_LINES_MAX.network || this.#written >= REFUSAL_LINES_MAX.all) {
      this.#unlogged++
      this.#services.metrics.refusalsUnlogged.inc()
      return false
    }
    this.#lines.set(network, lines + 1)
    this.#written++
    return true
  }

  /** Reports the refusals of an earlier minute that were not logged. Called at every response. */
  turn(): void {
    const { start } = windowOf(this.#services.environment.now())
    if (start === this.#window) return
    this.report()
    this.#window = start
    this.#lines.clear()
    this.#written = 0
  }

  /** Reports the refusals that were not logged, if there are any. */
  report(): void {
    if (this.#unlogged === 0) return
    this.#services.log.warn(
      { requests: this.#unlogged, minute: new Date(this.#window).toISOString() },
      'refused requests were not logged individually',
    )
    this.#unlogged = 0
  }
}
