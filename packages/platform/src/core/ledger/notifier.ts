import type { Environment } from '../environment.ts'

/**
 * Wakes a waiter when something happened elsewhere in this process. A ring without a waiter is
 * stored until the next wait.
 */
export class Notifier {
  readonly #environment: Pick<Environment, 'sleep'>
  #isRung = false
  #wake: (() => void) | null = null

  constructor(environment: Pick<Environment, 'sleep'>) {
    this.#environment = environment
  }

  ring(): void {
    this.#isRung = true
    this.#wake?.()
  }

  /**
   * Resolves at a ring, after `ms` milliseconds (null: no timeout), or when the signal is aborted.
   * Only one caller may wait at a time.
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
