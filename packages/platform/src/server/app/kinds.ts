import { deposit } from '../../custody/deposits/kind.ts'
import { sweep } from '../../custody/deposits/sweep-kind.ts'
import type { Kind, Kinds } from '../../core/engine/services.ts'
import type { TransactionKind } from '../../core/engine/transaction.ts'
import { drain, fuel, tankDeposit } from '../../custody/gas-tanks/kinds.ts'
import { lend, returnLoan } from '../../custody/gas-tanks/energy-loan.ts'
import { staking } from '../../custody/staking/kind.ts'
import { withdrawal } from '../../custody/transactions/kind.ts'

const kinds = {
  WITHDRAWAL: withdrawal,
  DEPOSIT: deposit,
  SWEEP: sweep,
  FUEL: fuel,
  DRAIN: drain,
  TANK_DEPOSIT: tankDeposit,
  STAKE: staking,
  UNSTAKE: staking,
  RELEASE: staking,
  LEND: lend,
  LEND_BACK: returnLoan,
} satisfies { [K in TransactionKind]: Kind<K> }

/** All kinds of transactions. A new kind is an object in its product's folder and a line here. */
export const KINDS: Kinds = kinds
