import { RequestError } from '../errors.ts'

export const EXCHANGES = ['KRAKEN', 'BINANCE'] as const
export type ExchangeName = (typeof EXCHANGES)[number]

const VENUE_FAULT_MODES = [
  'heal',
  'down',
  'lag',
  'malformed',
  'stale',
  'rate-limited',
  'drop-answer',
  'unknown-answer',
  'stalled-answer',
  'duplicate-fill',
  'clock-skew',
  'stuck-withdrawal',
  'hidden-order',
  'changed-address',
] as const
export type VenueFault = (typeof VENUE_FAULT_MODES)[number]

/** By so much the clock of a venue is behind while it is skewed. */
export const SKEW_MS = 10_000
/** So long look-ups do not know a fresh order. */
export const HIDDEN_MS = 1000

/** How one venue misbehaves now. In memory only: a restart heals. */
export class VenueFaults {
  mode: VenueFault = 'heal'

  set(mode: unknown): void {
    const known = VENUE_FAULT_MODES.find((candidate) => candidate === mode)
    if (!known)
      throw new RequestError(
        `mode ${JSON.stringify(mode)} is unknown: one of ${VENUE_FAULT_MODES.join(', ')}`,
      )
    this.mode = known
  }

  /** How the answer to what was just done gets lost; it happens once. */
  takeLoss(): 'drop-answer' | 'unknown-answer' | 'stalled-answer' | null {
    const { mode } = this
    if (mode !== 'drop-answer' && mode !== 'unknown-answer' && mode !== 'stalled-answer')
      return null
    this.mode = 'heal'
    return mode
  }
}
