import { deposit } from '../deposits/kind.ts'
import { sweep } from '../deposits/sweep-kind.ts'
import type { Kind, Kinds } from '../engine/services.ts'
import type { TransactionKind } from '../engine/transaction.ts'
import { drain, fuel, tankDeposit } from '../gas-tanks/kinds.ts'
import { lend, returnLoan } from '../gas-tanks/energy-loan.ts'
import { staking } from '../staking/kind.ts'
import { withdrawal } from '../transactions/kind.ts'

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
