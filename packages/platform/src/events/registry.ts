import { z } from 'zod'
import { addressShape } from '../addresses/present.ts'
import { ruleShape } from '../auto-forwarding/rule.ts'
import { EVENT_TYPES, type EventType } from '../database/event-types.ts'
import { accountShape } from '../exchanges/account.ts'
import { transactionShape } from '../engine/present.ts'
import { invoiceShape } from '../invoices/present.ts'
import { tankShape } from '../gas-tanks/list-tanks.ts'
import { exchangeTransferShape } from '../exchange-transfers/transfer.ts'
import { orderShape } from '../trading/order.ts'
import { walletShape } from '../wallets/present.ts'

interface EventOf {
  /** When it is told, in a sentence without its point. */
  says: string
  /** What its versions count. */
  object:
    | 'transaction'
    | 'address'
    | 'wallet'
    | 'gas tank'
    | 'prepaid fee account'
    | 'rule'
    | 'invoice'
    | 'exchange account'
    | 'order'
    | 'exchange transfer'
    | 'webhook'
  /**
   * To whom: to the keys of one sub-account, or to all of the workspace. `owner`: of a gas tank's
   * own, which has none, to all.
   */
  scope: 'sub-account' | 'workspace' | 'owner'
  /** What `data` holds. */
  data: z.ZodType
}

const transaction = (says: string): EventOf => ({
  says,
  object: 'transaction',
  scope: 'owner',
  data: transactionShape,
})

/** Of an address that screening stopped. */
const frozen = z.object({
  asset: z.string(),
  network: z.string(),
  address: z.string(),
  address_tag: z.string().nullable(),
  source: z.string(),
  risk_level: z.string(),
  transaction_id: z.string(),
  frozen_at: z.string(),
})

const staked = z.object({
  id: z.string(),
  asset: z.string(),
  address: z.string(),
  resource: z.enum(['ENERGY', 'BANDWIDTH']).optional(),
  amount: z.number(),
  hash: z.string().nullable(),
})
const staking = (says: string, data: z.ZodType = staked): EventOf => ({
  says,
  object: 'transaction',
  scope: 'owner',
  data,
})

const tank = (says: string): EventOf => ({
  says,
  object: 'gas tank',
  scope: 'workspace',
  data: tankShape,
})

const prepaid = (says: string): EventOf => ({
  says,
  object: 'prepaid fee account',
  scope: 'workspace',
  data: z.object({
    balance: z.number(),
    currency: z.literal('USD'),
    percent: z.union([z.literal(20), z.literal(5), z.literal(0)]),
    topped_up_to: z.number(),
  }),
})

const invoice = (says: string): EventOf => ({
  says,
  object: 'invoice',
  scope: 'sub-account',
  data: invoiceShape,
})

const account = (says: string): EventOf => ({
  says,
  object: 'exchange account',
  scope: 'sub-account',
  data: accountShape,
})
const exchangeTransfer = (says: string): EventOf => ({
  says,
  object: 'exchange transfer',
  scope: 'sub-account',
  data: exchangeTransferShape,
})
const order = (says: string): EventOf => ({
  says,
  object: 'order',
  scope: 'sub-account',
  data: orderShape,
})

/**
 * Every event: what it tells, of what, to whom, in which shape. The OpenAPI document and
 * docs/events.md are made of it.
 */
export const EVENTS: Readonly<Record<EventType, EventOf>> = {
  'transaction.created': transaction(
    'A transfer, stake, unstake or release was requested, or a rule forwards incoming funds',
  ),
  'transaction.updated': {
    says: 'It reached another step; see `sub_status`',
    object: 'transaction',
    scope: 'owner',
    data: z.object({
      id: z.string(),
      status: z.literal('pending'),
      sub_status: z.string(),
      hash: z.string().nullable(),
      confirmations: z.int(),
    }),
  },
  'transaction.confirmed': transaction('It is final on the chain'),
  'transaction.failed': transaction(
    'It ended without effect, or was reverted by the chain; the reserved amount was released',
  ),
  'deposit.detected': transaction(
    'A payment to one of your addresses is in a block; it is not credited yet',
  ),
  'deposit.confirmed': transaction('It is final, has passed screening, and was credited'),
  'deposit.frozen': transaction(
    'Screening put the deposit on hold: it is not part of any balance until every address that paid it is unfrozen',
  ),
  'deposit.released': transaction('The operator released a deposit of an unknown sender'),
  'deposit.suspended': transaction(
    'A deposit arrived for an asset without a wallet, or with an unknown tag; creating the wallet credits it',
  ),
  'deposit.reverted': transaction(
    'A reorganisation removed its block; if the deposit was credited, the credit was reversed',
  ),
  'address.created': {
    says: 'A deposit address was created',
    object: 'address',
    scope: 'sub-account',
    data: addressShape,
  },
  'address.frozen': {
    says: 'Screening put an address on the frozen list',
    object: 'address',
    scope: 'sub-account',
    data: frozen,
  },
  'address.unfrozen': {
    says: 'It was removed from the frozen list; transactions that were on hold because of it continue',
    object: 'address',
    scope: 'sub-account',
    data: frozen.extend({ unfrozen_at: z.string() }),
  },
  'wallet.created': {
    says: 'A wallet was created',
    object: 'wallet',
    scope: 'sub-account',
    data: walletShape,
  },
  'wallet.updated': {
    says: 'The operator deactivated or reactivated a wallet',
    object: 'wallet',
    scope: 'sub-account',
    data: z.object({
      id: z.string(),
      asset: z.string(),
      status: z.enum(['active', 'inactive']),
      updated_at: z.string(),
    }),
  },
  'gas_tank.low': tank('A gas tank’s balance is below its threshold'),
  'gas_tank.empty': tank('A gas tank is empty'),
  'prepaid_fee.low': prepaid('The balance fell to a fifth, or a twentieth, of the last top-up'),
  'prepaid_fee.empty': prepaid(
    'The balance does not cover any platform fee: new transfers are rejected',
  ),
  'prepaid_fee.tier_changed': {
    says: 'The volume of the last 30 days moved the workspace to another tier',
    object: 'prepaid fee account',
    scope: 'workspace',
    data: z.object({ tier: z.string(), previous_tier: z.string(), volume_30d: z.number() }),
  },
  'staking.staked': staking('TRX was staked'),
  'staking.unstaked': staking('TRX was unstaked; its cooldown has started'),
  'staking.releasable': staking(
    'The cooldown of unstaked TRX has ended; it can be released',
    z.object({
      id: z.string(),
      asset: z.string(),
      address: z.string(),
      resource: z.enum(['ENERGY', 'BANDWIDTH']),
      amount: z.number(),
      release_at: z.string(),
    }),
  ),
  'staking.released': staking('Unstaked TRX was returned to the wallet'),
  'auto_forwarding.created': {
    says: 'A forwarding rule was created',
    object: 'rule',
    scope: 'sub-account',
    data: ruleShape,
  },
  'auto_forwarding.deleted': {
    says: 'A forwarding rule was deleted',
    object: 'rule',
    scope: 'sub-account',
    data: ruleShape,
  },
  'aml.screening_overdue': {
    says: 'A transaction has waited six hours for its screening; it stays on hold',
    object: 'transaction',
    scope: 'sub-account',
    data: z.object({
      transaction_id: z.string(),
      provider: z.string(),
      since: z.string(),
      reason: z.string(),
    }),
  },
  'invoice.created': invoice('An invoice was created'),
  'invoice.updated': invoice(
    'A part of the invoice other than its status changed, for example by a partial payment',
  ),
  'invoice.processing': invoice('It is paid in full, and not confirmed yet'),
  'invoice.paid': invoice('It is paid and confirmed'),
  'invoice.expired': invoice(
    'It expired unpaid; if a payment was made while the platform was not running, the invoice continues from this status',
  ),
  'invoice.invalid': invoice('It can no longer be paid: cancelled, or marked as invalid'),
  'exchange_account.created': account('An exchange account was linked'),
  'exchange_account.updated': account(
    'It was changed, the permissions of its key changed, or the exchange accepts its key again',
  ),
  'exchange_account.failing': account(
    'The exchange rejected the key; operations that depend on it keep waiting',
  ),
  'exchange_account.difference': account(
    'The total at the exchange persistently differs from the ledger, or no longer differs',
  ),
  'exchange_account.deleted': account('It was unlinked, and its secrets are erased'),
  'order.created': order('An order was requested'),
  'order.updated': order(
    'It reached another step, was partially filled, or has ended; `unknown` if the response was lost',
  ),
  'exchange_transfer.created': exchangeTransfer('A transfer to or from an exchange was requested'),
  'exchange_transfer.updated': exchangeTransfer(
    'It reached another step, or has ended; `unknown` if the response was lost',
  ),
  'webhook.test': {
    says: 'A test of a webhook was requested; sent to that webhook only',
    object: 'webhook',
    scope: 'sub-account',
    data: z.object({ id: z.string(), url: z.string() }),
  },
  'webhook.disabled': {
    says: 'The platform disabled the webhook: too many consecutive attempts failed, or the receiver responded with 410',
    object: 'webhook',
    scope: 'sub-account',
    data: z.object({
      id: z.string(),
      url: z.string(),
      reason: z.string(),
      failures: z.int(),
      disabled_at: z.string(),
    }),
  },
}

/** Fields of an event's `data`. */
const DATA_MAX = 100

/** An event as it is sent and listed. `data`: see {@link EVENTS}. */
export const eventShape = (
  data: z.ZodType = z.looseObject({}).meta({ maxProperties: DATA_MAX }),
  type: z.ZodType = z.enum(EVENT_TYPES),
) =>
  z.object({
    type,
    timestamp: z.string().meta({ description: 'Time of the event, ISO 8601' }),
    data,
    id: z.string().meta({
      description:
        'Identifies the event: the same in `webhook-id` and on every attempt. Also the cursor of the event log',
    }),
    object: z.string().meta({ description: 'The object that the event concerns' }),
    version: z.int().meta({
      description:
        'Version of the object: 1, 2, 3 …, without gaps in the events; a lower version is older',
    }),
  })
