import { RequestError } from './errors.ts'

const COMMON_MODES = ['heal', 'drop-answer', 'reject', 'lag', 'down'] as const
/**
 * Modes of some families: `no-final`: the node knows no final block yet; `no-estimate`: it has no
 * fee estimate yet; `no-index`: it builds its index of transactions; `price`: its pool requires a
 * higher fee than usual; `no-internal`: it does not store the payments of contracts.
 */
type FamilyMode = 'no-final' | 'no-estimate' | 'no-index' | 'price' | 'no-internal'
export type FaultMode = (typeof COMMON_MODES)[number] | FamilyMode
export const LAG_MS = 15_000

/** Current fault mode of one chain's RPC. It is kept in memory only, so a restart ends it. */
export class Faults {
  mode: FaultMode = 'heal'
  readonly #own: readonly FamilyMode[]

  /** @param modes that only this chain has */
  constructor(...modes: FamilyMode[]) {
    this.#own = modes
  }

  get modes(): readonly FaultMode[] {
    return [...COMMON_MODES, ...this.#own]
  }

  /** Returns the faults of another endpoint of the same chain. */
  another(): Faults {
    return new Faults(...this.#own)
  }

  set(mode: unknown): void {
    const validMode = this.modes.find((candidate) => candidate === mode)
    if (!validMode)
      throw new RequestError(
        `mode ${JSON.stringify(mode)} is unknown; must be one of ${this.modes.join(', ')}`,
      )
    this.mode = validMode
  }
}
