/**
 * Every event that the platform tells of. A name that is not here does not compile, and the table refuses it where a statement
 * of the database writes it; what each means stands in `events/registry.ts`.
 */
export const EVENT_TYPES = [
  'transaction.created', 'transaction.updated', 'transaction.confirmed', 'transaction.failed',
  'deposit.detected', 'deposit.confirmed', 'deposit.frozen', 'deposit.released', 'deposit.suspended', 'deposit.reverted',
  'address.created', 'address.frozen', 'address.unfrozen', 'wallet.created', 'wallet.updated',
  'gas_tank.low', 'gas_tank.empty', 'prepaid_fee.low', 'prepaid_fee.empty', 'prepaid_fee.tier_changed',
  'staking.staked', 'staking.unstaked', 'staking.releasable', 'staking.released',
  'auto_forwarding.created', 'auto_forwarding.deleted', 'aml.screening_overdue',
  'invoice.created', 'invoice.updated', 'invoice.processing', 'invoice.paid', 'invoice.expired', 'invoice.invalid',
  'exchange_account.created', 'exchange_account.updated', 'exchange_account.failing', 'exchange_account.difference',
  'exchange_account.deleted',
  'order.created', 'order.updated', 'exchange_transfer.created', 'exchange_transfer.updated',
  'webhook.test', 'webhook.disabled',
] as const

export type EventType = (typeof EVENT_TYPES)[number]
