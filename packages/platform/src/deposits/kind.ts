import type { Kind } from '../engine/services.ts'
import { awaitDepositUnfreezing, screenDeposit } from './screening.ts'

/**
 * Coins that came from outside. The scan finds and confirms them; at their depth they are screened
 * and credited.
 */
export const deposit: Kind<'DEPOSIT'> = {
  steps: { SCREENING: screenDeposit, FROZEN: awaitDepositUnfreezing },
}
