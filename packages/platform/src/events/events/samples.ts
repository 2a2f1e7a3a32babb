import { randomUUID } from 'node:crypto'
import { z } from 'zod'
import type { EventType } from '../../core/database/event-types.ts'
import { Components } from '../../core/http/openapi/components.ts'
import { EXAMPLE_ID, EXAMPLE_TIME, exampleOf } from '../../core/http/openapi/examples.ts'
import { EVENTS, eventShape } from './registry.ts'

type Data = Record<string, unknown>

const DEPOSIT: Data = {
  type: 'Deposit',
  source_type: 'EXTERNAL',
  destination_type: 'INTERNAL',
  fee: 0,
  platform_fee: null,
  memo: '',
  sequence_id: null,
}
const CONFIRMED: Data = {
  status: 'confirmed',
  sub_status: 'CONFIRMED',
  confirmations: 3,
  confirmed_at: EXAMPLE_TIME,
}
const HELD: Data = {
  ...DEPOSIT,
  sub_status: 'AML_HELD',
  confirmations: 3,
  failure_reason: 'the sender is on the frozen list',
}
const REASON = 'EAPI:Invalid key'
const STAKED: Data = {
  asset: 'TRX',
  address: 'TD3AWYqUF6hcGN5N9Ggg9yGpemnZ6vUYfH',
  amount: 100,
  resource: 'ENERGY',
}
const UNPAID: Data = {
  exception: null,
  payments: [],
  refunds: [],
  refundable: [],
  excess: [],
  cancelled_at: null,
  marked: null,
  paid_amount: 0,
  payer: { email: 'payer@example.org', name: 'A. Payer' },
}
const WORKING: Data = { failures: 0, difference: [], warnings: [], reason: null, status: 'active' }

/** Data of each event type that differs from the usual example of its schema. */
const SAYS: Readonly<Record<EventType, (usual: Data) => Data>> = {
  'transaction.created': () => ({ sub_status: 'CREATED', hash: null, confirmations: 0 }),
  'transaction.updated': () => ({ sub_status: 'CONFIRMING', generation: 0 }),
  'transaction.confirmed': () => CONFIRMED,
  'transaction.failed': () => ({
    status: 'failed',
    sub_status: 'FAILED',
    hash: null,
    confirmations: 0,
    fee: 0,
    failure_reason: 'the chain refused the transfer',
  }),
  'transaction.reverted': () => ({ sub_status: 'REORGANISED', confirmations: 0, generation: 1 }),
  'approval.requested': () => ({ state: 'open', have: [] }),
  'approval.updated': () => ({ state: 'open' }),
  'approval.closed': () => ({ state: 'approved' }),
  'policy.proposed': () => ({ state: 'open', held: [], reason: null }),
  'policy.vetoed': () => ({ state: 'rejected', held: [], reason: 'bob has vetoed it' }),
  'policy.in_force': () => ({ state: 'in_force', missing: [], reason: null }),
  'policy.stopped': () => ({ sub_account: null, reason: 'A laptop was stolen' }),
  'policy.resumed': () => ({ sub_account: null, reason: 'A laptop was stolen' }),
  'deposit.detected': () => ({ ...DEPOSIT, confirmations: 1 }),
  'deposit.confirmed': () => ({ ...DEPOSIT, ...CONFIRMED }),
  'deposit.frozen': () => HELD,
  'deposit.released': () => ({ ...DEPOSIT, sub_status: 'SCREENING', confirmations: 3 }),
  'deposit.suspended': () => ({
    ...DEPOSIT,
    confirmations: 3,
    failure_reason: 'there is no wallet of the asset',
  }),
  'deposit.reverted': () => ({
    ...DEPOSIT,
    status: 'failed',
    sub_status: 'REVERTED',
    confirmations: 0,
    failure_reason: 'a reorganisation removed its block',
  }),
  'address.created': () => ({}),
  'address.frozen': () => ({}),
  'address.unfrozen': () => ({}),
  'wallet.created': () => ({}),
  'wallet.updated': () => ({ status: 'inactive' }),
  'gas_tank.low': ({ threshold }) => ({ status: 'low', balance: Number(threshold) / 2 }),
  'gas_tank.empty': () => ({ status: 'empty', balance: 0 }),
  'prepaid_fee.low': () => ({ balance: 20, percent: 20, topped_up_to: 100 }),
  'prepaid_fee.empty': () => ({ balance: 0, percent: 0, topped_up_to: 100 }),
  'prepaid_fee.tier_changed': () => ({ tier: 'LITE', previous_tier: 'FREE' }),
  'staking.staked': () => STAKED,
  'staking.unstaked': () => STAKED,
  'staking.releasable': () => ({ ...STAKED, release_at: EXAMPLE_TIME }),
  'staking.released': () => STAKED,
  'auto_forwarding.created': () => ({ status: 'active', waiting: 0, outstanding: [] }),
  'auto_forwarding.deleted': () => ({ status: 'deleted', waiting: 0, outstanding: [] }),
  'aml.screening_overdue': () => ({ since: EXAMPLE_TIME, reason: 'the provider does not respond' }),
  'invoice.created': () => UNPAID,
  'invoice.updated': (usual) => ({
    ...UNPAID,
    ...paidWith(usual, 'seen', 0),
    due_amount: usual['crypto_amount'],
    paid_amount: 0,
  }),
  'invoice.processing': (usual) => ({
    ...UNPAID,
    inv_status: 'Processing',
    ...paidWith(usual, 'detected', 1),
  }),
  'invoice.paid': (usual) => ({
    ...UNPAID,
    inv_status: 'Paid',
    ...paidWith(usual, 'confirmed', 3),
    refundable: [{ asset: usual['asset'], amount: usual['crypto_amount'] }],
  }),
  'invoice.reverted': (usual) => ({
    ...UNPAID,
    inv_status: 'Processing',
    ...paidWith(usual, 'detected', 1),
  }),
  'invoice.expired': () => ({ ...UNPAID, inv_status: 'Expired' }),
  'invoice.invalid': () => ({ ...UNPAID, inv_status: 'Invalid', cancelled_at: EXAMPLE_TIME }),
  'exchange_account.created': () => WORKING,
  'exchange_account.updated': () => WORKING,
  'exchange_account.failing': () => ({ ...WORKING, status: 'failing', reason: REASON }),
  'exchange_account.difference': () => ({
    ...WORKING,
    difference: [{ asset: 'BTC', ledger: 1.5, venue: 1.25, difference: -0.25 }],
  }),
  'exchange_account.deleted': () => WORKING,
  'order.created': () => ({ ...orderOf(0), sub_status: 'NEW', exchange_order_id: null }),
  'order.updated': () => ({ ...orderOf(0.015), status: 'filled', sub_status: 'ENDED' }),
  'exchange_transfer.created': () => ({
    credited: null,
    fee: null,
    hash: null,
    exchange_transfer_id: null,
    sub_status: 'NEW',
  }),
  'exchange_transfer.updated': ({ amount }) => ({
    credited: amount,
    fee: null,
    status: 'completed',
    sub_status: 'DONE',
  }),
  'webhook.test': () => ({}),
  'webhook.disabled': () => ({
    failures: 50,
    reason: '50 consecutive attempts failed; the last one returned 500',
  }),
}

/** Returns an invoice with one payment of the whole amount. */
const paidWith = (usual: Data, status: string, confirmations: number): Data => ({
  paid_amount: usual['crypto_amount'],
  due_amount: 0,
  payments: [
    {
      ...(usual['payments'] as Data[])[0],
      amount: usual['crypto_amount'],
      status,
      confirmations,
      note: null,
    },
  ],
})

const orderOf = (filled: number): Data => ({
  type: 'limit',
  quote_amount: null,
  protection_price: null,
  max_slippage_bps: null,
  post_only: false,
  filled,
  remaining: filled === 0 ? 0.015 : 0,
  average_price: filled === 0 ? null : 87500.5,
  cost: filled * 87500.5,
  fees: filled === 0 ? [] : [{ asset: 'USD', amount: 2.1 }],
})

/** Returns the usual example of a type's data, which is also in the OpenAPI document. */
function usualData(type: EventType): Data {
  const components = new Components()
  return (
    exampleOf(components, components.shown(eventShape(EVENTS[type].data, z.literal(type)))) as {
      data: Data
    }
  ).data
}

/** Returns the data with current times and new IDs, the same ones within a field's name. */
function fresh(
  value: unknown,
  field: string,
  now: string,
  idOf: (field: string) => string,
): unknown {
  if (value === EXAMPLE_TIME) return now
  if (value === EXAMPLE_ID) return idOf(field)
  if (Array.isArray(value)) return value.map((each) => fresh(each, field, now, idOf))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, fresh(each, name, now, idOf)]),
  )
}

/**
 * Returns invented data of an event, for tests of receivers. It is consistent with the event type.
 */
export function sampleData(type: EventType, nowMs: number, uuid: () => string = randomUUID): Data {
  const usual = usualData(type)
  const ids = new Map<string, string>()
  const idOf = (field: string): string => {
    const id = ids.get(field) ?? uuid()
    ids.set(field, id)
    return id
  }
  const says = Object.entries(SAYS[type](usual)).filter(
    ([name]) => name in usual || name === 'resource',
  )
  return fresh(
    { ...usual, ...Object.fromEntries(says) },
    '',
    new Date(nowMs).toISOString(),
    idOf,
  ) as Data
}
