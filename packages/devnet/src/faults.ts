import { RequestError } from './errors.ts'

const COMMON_MODES = ['heal', 'drop-answer', 'reject', 'lag', 'down'] as const
/**
 * Modes of some families: `no-final`: the node knows no final block yet; `no-estimate`: it has no
 * fee estimate yet.
 */
type FamilyMode = 'no-final' | 'no-estimate'
export type FaultMode = (typeof COMMON_MODES)[number] | FamilyMode
export const LAG_MS = 15_000

/** Current fault mode of one chain's RPC. It is kept in memory only, so a restart ends it. */
export class Faults {
  mode: FaultMode = 'heal'
  readonly #modes: readonly FaultMode[]

  /** @param modes that only this chain has */
  constructor(...modes: FamilyMode[]) {
    this.#modes = [...COMMON_MODES, ...modes]
  }

  set(mode: unknown): void {
    const validMode = this.#modes.find((candidate) => candidate === mode)
    if (!validMode)
      throw new RequestError(
        `mode ${JSON.stringify(mode)} is unknown; must be one of ${this.#modes.join(', ')}`,
      )
    this.mode = validMode
  }
}
