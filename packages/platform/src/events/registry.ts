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
    'A transfer, stake, unstake or release was asked for, or a rule forwards what came in',
  ),
  'transaction.updated': {
    says: 'It has come to another step; its `sub_status` says which',
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
    'It will not be done any more, or was reverted by the chain; what was reserved is back',
  ),
  'deposit.detected': transaction(
    'A block holds a payment to an address of yours; it is not credited yet',
  ),
  'deposit.confirmed': transaction('It is final, has passed screening, and was credited'),
  'deposit.frozen': transaction(
    'Screening holds it: it is in no balance until every address that paid it is unfrozen',
  ),
  'deposit.released': transaction('The operator let a deposit of an unknown sender go on'),
  'deposit.suspended': transaction(
    'It came for an asset without a wallet, or with an unknown tag; creating the wallet credits it',
  ),
  'deposit.reverted': transaction(
    'A reorganisation removed its block; where it was credited, that was taken back',
  ),
  'address.created': {
    says: 'A deposit address was handed out',
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
    says: 'It was taken off the list; what it held goes on',
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
    says: 'The operator set a wallet at rest or to work again',
    object: 'wallet',
    scope: 'sub-account',
    data: z.object({
      id: z.string(),
      asset: z.string(),
      status: z.enum(['active', 'inactive']),
      updated_at: z.string(),
    }),
  },
  'gas_tank.low': tank('A gas tank holds less than its threshold'),
  'gas_tank.empty': tank('A gas tank holds nothing'),
  'prepaid_fee.low': prepaid('A fifth, or a twentieth, of the last top-up is left'),
  'prepaid_fee.empty': prepaid('What is left covers no fee: new transfers are refused'),
  'prepaid_fee.tier_changed': {
    says: 'The volume of the last 30 days gives the workspace another tier',
    object: 'prepaid fee account',
    scope: 'workspace',
    data: z.object({ tier: z.string(), previous_tier: z.string(), volume_30d: z.number() }),
  },
  'staking.staked': staking('TRX was staked'),
  'staking.unstaked': staking('TRX was unstaked, and cools down'),
  'staking.releasable': staking(
    'Unstaked TRX has cooled down and can be released',
    z.object({
      id: z.string(),
      asset: z.string(),
      address: z.string(),
      resource: z.enum(['ENERGY', 'BANDWIDTH']),
      amount: z.number(),
      release_at: z.string(),
    }),
  ),
  'staking.released': staking('Unstaked TRX is back in the wallet'),
  'auto_forwarding.created': {
    says: 'A forwarding rule was made',
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
    says: 'A transaction has waited six hours for its screening; it stays held',
    object: 'transaction',
    scope: 'sub-account',
    data: z.object({
      transaction_id: z.string(),
      provider: z.string(),
      since: z.string(),
      reason: z.string(),
    }),
  },
  'invoice.created': invoice('An invoice was made'),
  'invoice.updated': invoice(
    'Something of an invoice changed that is no change of its status, such as a payment in part',
  ),
  'invoice.processing': invoice('It is paid in full, and not yet confirmed'),
  'invoice.paid': invoice('It is paid, and confirmed'),
  'invoice.expired': invoice(
    'Its time is over, and it is not paid; one that was paid while nobody looked goes on from here',
  ),
  'invoice.invalid': invoice('It is not to be paid any more: cancelled, or marked so'),
  'exchange_account.created': account('An account at an exchange was linked'),
  'exchange_account.updated': account(
    'It was changed, its key may do something else than before, or the exchange takes its key again',
  ),
  'exchange_account.failing': account(
    'The exchange refused its key; what waits for it goes on waiting',
  ),
  'exchange_account.difference': account(
    'The exchange goes on saying another total than the books; or no longer does',
  ),
  'exchange_account.deleted': account('It was unlinked, and its secrets are erased'),
  'order.created': order('An order was asked for'),
  'order.updated': order(
    'It has come to another step, was filled in part, or has ended; `unknown` where its answer was lost',
  ),
  'exchange_transfer.created': exchangeTransfer(
    'Coins are to go to an exchange, or to come from one',
  ),
  'exchange_transfer.updated': exchangeTransfer(
    'It has come to another step, or has ended; `unknown` where an answer was lost',
  ),
  'webhook.test': {
    says: 'Somebody asked for a test of a webhook; sent to that one only',
    object: 'webhook',
    scope: 'sub-account',
    data: z.object({ id: z.string(), url: z.string() }),
  },
  'webhook.disabled': {
    says: 'The platform stopped sending to a webhook: too many tries in a row failed, or it answered 410',
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
    timestamp: z.string().meta({ description: 'When it happened, ISO 8601' }),
    data,
    id: z
      .string()
      .meta({ description: 'The same in `webhook-id`, on every try, and the cursor of the log' }),
    object: z.string().meta({ description: 'What it is about' }),
    version: z.int().meta({
      description:
        'Of the object: 1, 2, 3 …, without gaps in what the platform tells; a lower one is older news',
    }),
  })
