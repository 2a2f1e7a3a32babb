import { networkOf } from './client-network.ts'

const CALLERS_MAX = 10_000

/**
 * Remembers which keys and sessions were used from which client networks. When a network has used up
 * its limit of failed authentications, only these callers are still authenticated, so that further
 * failures cost neither a query nor the verification of a signature.
 */
export class RecentCallers {
  /** In the order of their last use. */
  readonly #callers = new Set<string>()

  /** Notes that a caller was authenticated. */
  note(ip: string, name: string): void {
    const key = `${networkOf(ip)} ${name}`
    this.#callers.delete(key)
    this.#callers.add(key)
    if (this.#callers.size > CALLERS_MAX)
      this.#callers.delete(this.#callers.values().next().value as string)
  }

  has(ip: string, name: string): boolean {
    return this.#callers.has(`${networkOf(ip)} ${name}`)
  }
}
