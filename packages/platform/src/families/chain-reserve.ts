import { withTimeout } from '../engine/with-timeout.ts'
import type { Environment } from '../environment.ts'

const FRESH_MS = 10_000
/** Accounts whose last answer is remembered; the one that was asked longest ago makes room. */
const KNOWN_MAX = 10_000

/**
 * What must stay on an account, at most ten seconds old. Where the chain is away or slow it is what
 * was said last of that account, and `fallback` where nothing ever was: a caller's answer does not
 * wait for the chain.
 */
export function cachedReserveOf(
  environment: Environment,
  ask: (address: string) => Promise<bigint>,
  fallback: bigint,
): (address: string) => Promise<bigint> {
  const known = new Map<string, { value: bigint; at: number }>()
  const read = async (address: string): Promise<bigint> => {
    const value = await ask(address)
    known.delete(address)
    known.set(address, { value, at: environment.now() })
    if (known.size > KNOWN_MAX) known.delete(known.keys().next().value as string)
    return value
  }
  return async (address) => {
    const last = known.get(address)
    if (last && Math.abs(environment.now() - last.at) < FRESH_MS) return last.value
    return withTimeout(environment, read(address), last?.value ?? fallback)
  }
}
