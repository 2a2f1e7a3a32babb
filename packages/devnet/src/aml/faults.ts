import { RequestError } from '../errors.ts'

const AML_FAULT_MODES = [
  'heal',
  'down',
  'drop-answer',
  'lag',
  'reject',
  'malformed',
  'empty',
  'unknown',
  'rate-limited',
  'revoked',
  'nulls',
  'lower-case',
  'dust',
  'forbidden-page',
] as const
/**
 * Well-formed responses that providers document and that are easily misread. `nulls`: fields that
 * may be null are. `lower-case`: addresses are returned in small letters. `dust`: the risk is a
 * small amount from a flagged counterparty, if the provider distinguishes it.
 */
export const ODDITIES = ['nulls', 'lower-case', 'dust'] as const
export type Oddity = (typeof ODDITIES)[number]

export type AmlFaultMode = (typeof AML_FAULT_MODES)[number]

/** Current fault mode of one provider. It is kept in memory only, so a restart ends it. */
export class AmlFaults {
  mode: AmlFaultMode = 'heal'

  set(mode: unknown): void {
    const validMode = AML_FAULT_MODES.find((candidate) => candidate === mode)
    if (!validMode)
      throw new RequestError(
        `mode ${JSON.stringify(mode)} is unknown; must be one of ${AML_FAULT_MODES.join(', ')}`,
      )
    this.mode = validMode
  }
}
