import { withTimeout } from '../engine/with-timeout.ts'
import type { Environment } from '../environment.ts'

const FRESH_MS = 10_000
/** Maximum number of accounts whose last result is cached; the oldest entry is removed first. */
const KNOWN_MAX = 10_000

/**
 * Returns a function that reads the chain reserve of an account, at most ten seconds old. If the
 * chain is unreachable or slow, it returns the last known value for that account, or `fallback` if
 * there is none, so that a caller's response does not wait for the chain.
 */
export function cachedReserveOf(
  environment: Environment,
  ask: (address: string) => Promise<bigint>,
  fallback: bigint,
): (address: string) => Promise<bigint> {
  const existing = new Map<string, { value: bigint; at: number }>()
  const read = async (address: string): Promise<bigint> => {
    const value = await ask(address)
    existing.delete(address)
    existing.set(address, { value, at: environment.now() })
    if (existing.size > KNOWN_MAX) existing.delete(existing.keys().next().value as string)
    return value
  }
  return async (address) => {
    const last = existing.get(address)
    if (last && Math.abs(environment.now() - last.at) < FRESH_MS) return last.value
    return withTimeout(environment, read(address), last?.value ?? fallback)
  }
}
