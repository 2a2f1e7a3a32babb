import { RequestError } from './errors.ts'

const FAULT_MODES = ['heal', 'drop-answer', 'reject', 'lag', 'down'] as const
export type FaultMode = (typeof FAULT_MODES)[number]
export const LAG_MS = 15_000

/** Current fault mode of one chain's RPC. It is kept in memory only, so a restart ends it. */
export class Faults {
  mode: FaultMode = 'heal'

  set(mode: unknown): void {
    const validMode = FAULT_MODES.find((candidate) => candidate === mode)
    if (!validMode)
      throw new RequestError(
        `mode ${JSON.stringify(mode)} is unknown; must be one of ${FAULT_MODES.join(', ')}`,
      )
    this.mode = validMode
  }
}
