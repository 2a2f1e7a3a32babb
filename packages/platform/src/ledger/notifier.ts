import type { Environment } from '../environment.ts'

/**
 * Wakes the one who waits for something that was done elsewhere in this process. A ring that nobody
 * waits for is kept.
 */
export class Notifier {
  readonly #environment: Environment
  #isRung = false
  #wake: (() => void) | null = null

  constructor(environment: Environment) {
    this.#environment = environment
  }

  ring(): void {
    this.#isRung = true
    this.#wake?.()
  }

  /**
   * Resolves at a ring, after `ms` milliseconds (null: never by itself), or with the signal. One at
   * a time may wait.
   */
  async wait(ms: number | null, signal: AbortSignal): Promise<void> {
    if (!this.#isRung && !signal.aborted) {
      const over = new AbortController()
      const rung = new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      const ended =
        ms === null
          ? new Promise<void>((resolve) => {
              signal.addEventListener('abort', () => resolve(), { once: true, signal: over.signal })
            })
          : this.#environment.sleep(ms, AbortSignal.any([signal, over.signal]))
      await Promise.race([rung, ended])
      over.abort()
      this.#wake = null
    }
    this.#isRung = false
  }
}
