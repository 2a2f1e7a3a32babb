/** Types of movements in a statement. */
export const MOVEMENT_TYPES = [
  'deposit',
  'deposit_frozen',
  'deposit_released',
  'deposit_assigned',
  'deposit_reverted',
  'withdrawal',
  'forward',
  'refund',
  'exchange_deposit',
  'network_fee',
  'sweep',
  'stake',
  'unstake',
  'stake_release',
  'fuel',
  'fee_correction',
  'drain',
  'energy_loan',
  'reverted',
  'written_off',
  'other',
] as const
export type MovementType = (typeof MOVEMENT_TYPES)[number]

/** What determines the type of a movement. */
export interface Entry {
  /** Kind of the ledger entry. */
  kind: string
  /** Kind of its transaction; null: it has none. */
  transaction: string | null
  /** Whether the transaction was executed; otherwise only its fee was paid. */
  isConfirmed: boolean
  /** Whether the transaction belongs to the wallet of the statement. */
  isOwn: boolean
  isForward: boolean
  isRefund: boolean
  isToExchange: boolean
  /** Change of the balance in the smallest unit. */
  change: bigint
}

interface Typed {
  name: MovementType
  /**
   * What the change of the balance consists of. `incoming`: an amount without a fee. `payment`: the
   * amount of the outgoing transaction, and the rest is its fee. `fee`: only a fee.
   */
  consistsOf: 'incoming' | 'payment' | 'fee'
}

const incoming = (name: MovementType): Typed => ({ name, consistsOf: 'incoming' })
const payment = (name: MovementType): Typed => ({ name, consistsOf: 'payment' })
const onlyFee = (name: MovementType): Typed => ({ name, consistsOf: 'fee' })

/**
 * Types of the entries whose kind alone determines them. Kinds that only reserve an amount, or
 * release it, change no part of a balance and occur in no statement; they are in `RESERVING`.
 */
const BY_KIND: Readonly<Record<string, Typed>> = {
  'deposit-frozen': incoming('deposit_frozen'),
  'deposit-assigned': incoming('deposit_assigned'),
  'deposit-reverted': incoming('deposit_reverted'),
  'deposit-frozen-reverted': incoming('deposit_reverted'),
  'written-off': incoming('written_off'),
  'written-off-repaid': incoming('written_off'),
  fuel: onlyFee('fuel'),
  'fuel-fee': onlyFee('fee_correction'),
  'staking-freeze': onlyFee('stake'),
  'staking-delegate': onlyFee('stake'),
  'staking-undelegate': onlyFee('unstake'),
  'staking-unfreeze': onlyFee('unstake'),
  'staking-withdraw': onlyFee('stake_release'),
  'staking-release': onlyFee('stake_release'),
  loan: onlyFee('energy_loan'),
  'loan-return': onlyFee('energy_loan'),
}

/** Kinds of entries that only reserve an amount within a part of a balance, or release it. */
export const RESERVING: ReadonlySet<string> = new Set([
  'reserve',
  'reserve-adjust',
  'release',
  'fee-release',
  'fuel-reserve',
  'fuel-bump',
  'float-reserve',
  'float-release',
  'fuel-unused',
  'fuel-unused-reverted',
  'drain-reserve',
  'loan-reserve',
  'loan-release',
  'tank-stake-reserve',
  'tank-unstake-reserve',
  'tank-fee-release',
  'unstake-reserve',
])

/** End of the kind of an entry that takes another one back, because its block has left the chain. */
const REVERTED = /-reverted$/

/** Returns whether entries of a kind have a type of their own. */
export const isTyped = (kind: string): boolean =>
  kind in BY_KIND ||
  kind === 'deposit' ||
  kind === 'settle' ||
  (REVERTED.test(kind) && !RESERVING.has(kind))

/**
 * Returns the type of a movement.
 * @param isTank whether the statement is that of a gas tank
 */
export function typeOf(entry: Entry, isTank: boolean): Typed {
  if (entry.kind === 'deposit')
    return incoming(entry.change === 0n ? 'deposit_released' : 'deposit')
  if (entry.kind === 'settle') return isTank ? tankSettled(entry) : walletSettled(entry)
  return BY_KIND[entry.kind] ?? incoming(REVERTED.test(entry.kind) ? 'reverted' : 'other')
}

function walletSettled(entry: Entry): Typed {
  if (!entry.isOwn) return onlyFee('network_fee')
  if (entry.transaction === 'SWEEP') return onlyFee('sweep')
  if (entry.transaction !== 'WITHDRAWAL' || !entry.isConfirmed) return onlyFee('network_fee')
  if (entry.isForward) return payment('forward')
  if (entry.isRefund) return payment('refund')
  return payment(entry.isToExchange ? 'exchange_deposit' : 'withdrawal')
}

/** A gas tank is debited when fuel pays a fee, and for a drain. */
const tankSettled = (entry: Entry): Typed =>
  entry.transaction === 'DRAIN' && entry.isConfirmed ? payment('drain') : onlyFee('network_fee')
