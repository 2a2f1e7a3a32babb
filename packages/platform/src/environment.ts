import { randomBytes, randomUUID } from 'node:crypto'

/**
 * Time, randomness and process exit, passed in and never taken from globals, so that the platform
 * can run under a seeded clock with faults at every await.
 */
export interface Environment {
  /** Milliseconds since the Unix Epoch. */
  now(): number
  uuid(): string
  bytes(length: number): Uint8Array
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>
  /**
   * Called after each commit on a transfer's way with the name of the place. Does nothing outside
   * tests, which let the platform end there.
   */
  checkpoint(name: string): void
}

/** The real clock and the operating system's randomness. */
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
