import { soon } from '../engine/patience.ts'
import type { Environment } from '../environment.ts'

const FRESH_MS = 10_000

/**
 * What must stay on an account, at most ten seconds old. Where the chain is away or slow it is what was said last of
 * that account, and `fallback` where nothing ever was: a caller's answer does not wait for the chain.
 */
export function keptOn(
  environment: Environment, ask: (address: string) => Promise<bigint>, fallback: bigint,
): (address: string) => Promise<bigint> {
  const known = new Map<string, { value: bigint; at: number }>()
  const read = async (address: string): Promise<bigint> => {
    const value = await ask(address)
    known.set(address, { value, at: environment.now() })
    return value
  }
  return async (address) => {
    const last = known.get(address)
    if (last && environment.now() - last.at < FRESH_MS) return last.value
    return soon(environment, read(address), last?.value ?? fallback)
  }
}
