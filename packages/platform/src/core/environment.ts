import { randomBytes, randomUUID } from 'node:crypto'

/**
 * Time, randomness and process exit, which are passed as arguments and never taken from globals, so
 * that the platform can run with a simulated clock and injected faults at every await.
 */
export interface Environment {
  /** Returns milliseconds since the Unix Epoch. */
  now(): number
  uuid(): string
  bytes(length: number): Uint8Array
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>
  /**
   * Called with the name of the position after each commit during a transfer. Does nothing outside
   * tests, which use it to stop the platform at that position.
   */
  checkpoint(name: string): void
}

/** Returns the real clock and the operating system's randomness. */
export function systemEnvironment(): Environment {
  return {
    now: () => Date.now(),
    uuid: () => randomUUID(),
    bytes: (length) => randomBytes(length),
    sleep: (milliseconds, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve()
        const timer = setTimeout(done, milliseconds)
        function done() {
          clearTimeout(timer)
          signal?.removeEventListener('abort', done)
          resolve()
        }
        signal?.addEventListener('abort', done, { once: true })
      }),
    checkpoint: () => undefined,
  }
}
