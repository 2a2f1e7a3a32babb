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

/** Time in milliseconds by which a venue's clock is behind in the skew fault mode. */
export const SKEW_MS = 10_000
/** Time in milliseconds for which queries do not return a new order. */
export const HIDDEN_MS = 1000

/** Current fault mode of one venue. It is kept in memory only, so a restart ends it. */
export class VenueFaults {
  mode: VenueFault = 'heal'

  set(mode: unknown): void {
    const validMode = VENUE_FAULT_MODES.find((candidate) => candidate === mode)
    if (!validMode)
      throw new RequestError(
        `mode ${JSON.stringify(mode)} is unknown; must be one of ${VENUE_FAULT_MODES.join(', ')}`,
      )
    this.mode = validMode
  }

  /** Returns how the response of the current operation is lost; this happens once. */
  takeLoss(): 'drop-answer' | 'unknown-answer' | 'stalled-answer' | null {
    const { mode } = this
    if (mode !== 'drop-answer' && mode !== 'unknown-answer' && mode !== 'stalled-answer')
      return null
    this.mode = 'heal'
    return mode
  }
}
