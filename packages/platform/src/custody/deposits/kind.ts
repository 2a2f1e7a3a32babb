import type { Kind } from '../../core/engine/services.ts'
import { awaitDepositUnfreezing, screenDeposit } from './screening.ts'

/**
 * A deposit of coins from outside. The scanner finds and confirms it; at its depth it is screened
 * and credited.
 */
export const deposit: Kind<'DEPOSIT'> = {
  steps: { SCREENING: screenDeposit, FROZEN: awaitDepositUnfreezing },
}
