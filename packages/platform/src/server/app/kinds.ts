import { depositKind } from '../../custody/deposits/kind.ts'
import { consolidationKind } from '../../custody/coins/consolidation-kind.ts'
import { sweepKind } from '../../custody/deposits/sweep-kind.ts'
import type { Kind, Kinds } from '../../core/engine/interfaces/kind.ts'
import type { Application } from './application.ts'
import type { TransactionKind } from '../../core/engine/transaction.ts'
import { drainKind, fuelKind, tankDepositKind } from '../../custody/gas-tanks/kinds.ts'
import { loanKind, loanReturnKind } from '../../custody/gas-tanks/energy-loan.ts'
import { stakingKind } from '../../custody/staking/kind.ts'
import { withdrawalKind } from '../../custody/transactions/kind.ts'

/**
 * Creates all kinds of transactions. A new kind is a function in its product's folder and a line
 * here.
 */
export function createKinds(services: Omit<Application, 'kinds' | 'tanks'>): Kinds {
  const staking = stakingKind(services)
  return {
    WITHDRAWAL: withdrawalKind(services),
    DEPOSIT: depositKind(services),
    SWEEP: sweepKind(services),
    FUEL: fuelKind(services),
    DRAIN: drainKind(services),
    TANK_DEPOSIT: tankDepositKind,
    STAKE: staking,
    UNSTAKE: staking,
    RELEASE: staking,
    CONSOLIDATION: consolidationKind(services),
    LEND: loanKind(services),
    LEND_BACK: loanReturnKind(services),
  } satisfies { [K in TransactionKind]: Kind<K> }
}
