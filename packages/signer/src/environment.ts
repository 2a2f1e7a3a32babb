import { randomBytes } from 'node:crypto'

/**
 * Everything that a node uses from the outside world except its sockets and files. The native
 * engine does not use it.
 */
export interface Environment {
  /** Returns milliseconds since the Unix epoch. */
  now(): number
  /**
   * Returns elapsed milliseconds since an arbitrary time; adjustments of the clock do not change
   * them.
   */
  monotonic(): number
  random(length: number): Uint8Array
  exit(code: number): void
}

export const realEnvironment: Environment = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  random: (length) => new Uint8Array(randomBytes(length)),
  exit: (code) => process.exit(code),
}
