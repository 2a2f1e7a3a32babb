import { randomBytes } from 'node:crypto'

/**
 * Everything a node takes from the outside world except its sockets and files. Never reaches the
 * native engine.
 */
export interface Environment {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** Milliseconds that passed, from any point on: no setting of the clock changes them. */
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
