import type { Transaction } from '../api/types.ts'

/** Returns whether the transaction sends coins. */
export const isOutgoing = ({ type }: Pick<Transaction, 'type'>): boolean =>
  type !== 'Deposit' && type !== 'GasTankDeposit'
