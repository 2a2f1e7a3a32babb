import { z } from 'zod'
import {
  ADDRESS_MAX,
  HASH_MAX,
  ID_MAX,
  INT_MAX,
  MESSAGE_MAX,
  NAME_MAX,
  TIME_MAX,
  URL_MAX,
  WORD_MAX,
} from '../../core/bounds.ts'
import { addressShape } from '../../custody/addresses/present.ts'
import { approvalShape } from '../../custody/approvals/present.ts'
import { stopEventShape } from '../../custody/policies/emergency/stops.ts'
import { changeShape } from '../../custody/policies/changes/shapes.ts'
import { ruleShape } from '../../custody/auto-forwarding/rule.ts'
import { EVENT_TYPES, type EventType } from '../../core/database/event-types.ts'
import { accountShape } from '../../commerce/exchanges/account.ts'
import { transactionShape } from '../../core/engine/present.ts'
import { invoiceShape } from '../../commerce/invoices/present.ts'
import { tankShape } from '../../custody/gas-tanks/list-tanks.ts'
import { exchangeTransferShape } from '../../commerce/exchange-transfers/transfer.ts'
import { orderShape } from '../../commerce/trading/order.ts'
import { walletShape } from '../../custody/wallets/present.ts'

interface EventOf {
  /** Trigger of the event, as a sentence without a full stop. */
  says: string
  /** Kind of object whose changes `version` counts. */
  object:
    | 'transaction'
    | 'approval'
    | 'policy change'
    | 'policy stop'
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
   * Recipients: the keys of one sub-account, or all keys of the workspace. `owner`: the keys of the
   * sub-account, or all keys for a transaction of a gas tank, which has no sub-account.
   */
  scope: 'sub-account' | 'workspace' | 'owner'
  /** Schema of `data`. */
  data: z.ZodType
}

const transaction = (says: string): EventOf => ({
  says,
  object: 'transaction',
  scope: 'owner',
  data: transactionShape,
})

/** Data of an event about an address on the frozen list. */
const frozen = z.object({
  asset: z.string().max(WORD_MAX),
  network: z.string().max(WORD_MAX),
  address: z.string().max(ADDRESS_MAX),
  address_tag: z.string().max(NAME_MAX).nullable(),
  source: z.string().max(WORD_MAX),
  risk_level: z.string().max(WORD_MAX),
  transaction_id: z.string().max(ID_MAX),
  frozen_at: z.string(),
})

const approval = (says: string): EventOf => ({
  says,
  object: 'approval',
  scope: 'sub-account',
  data: approvalShape,
})

const policyChange = (says: string): EventOf => ({
  says,
  object: 'policy change',
  scope: 'workspace',
  data: changeShape,
})

const policyStop = (says: string): EventOf => ({
  says,
  object: 'policy stop',
  scope: 'workspace',
  data: stopEventShape,
})

const staked = z.object({
  id: z.string().max(ID_MAX),
  asset: z.string().max(WORD_MAX),
  address: z.string().max(ADDRESS_MAX),
  resource: z.enum(['ENERGY', 'BANDWIDTH']).optional(),
  amount: z.number(),
  hash: z.string().max(HASH_MAX).nullable(),
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
 * Every event type with its trigger, object, recipients and schema. Source of the OpenAPI document
 * and of docs/events.md.
 */
export const EVENTS: Readonly<Record<EventType, EventOf>> = {
  'transaction.created': transaction(
    'A transfer, stake, unstake or release was requested, or a rule forwards a deposit',
  ),
  'transaction.updated': {
    says: 'The transaction reached another step, which is in `sub_status`',
    object: 'transaction',
    scope: 'owner',
    data: z.object({
      id: z.string().max(ID_MAX),
      status: z.literal('pending'),
      sub_status: z.string().max(WORD_MAX),
      hash: z.string().max(HASH_MAX).nullable(),
      confirmations: z.int().min(0).max(INT_MAX),
      generation: z.int().min(0).max(INT_MAX).optional(),
    }),
  },
  'transaction.confirmed': transaction('The transaction is final on the chain'),
  'transaction.failed': transaction(
    'The transaction failed permanently, or the chain reverted it; the reserved amount is available again',
  ),
  'transaction.reverted': transaction(
    'A reorganisation of the chain removed the block in which the transaction was confirmed or had failed. It is pending again, and the same signed transaction is sent again; `transaction.confirmed` or `transaction.failed` follows with a higher `generation`',
  ),
  'approval.requested': approval(
    'A transfer, a stake or a forwarding rule waits for approvals that the policy requires',
  ),
  'approval.updated': approval('A person approved or rejected what waits'),
  'approval.closed': approval(
    'A transfer, a stake or a forwarding rule no longer waits for approvals: it was approved or rejected, it expired, or it ended for another reason',
  ),
  'policy.proposed': policyChange('A policy change was proposed, and waits for its approvals'),
  'policy.vetoed': policyChange(
    'A person vetoed a policy change: `rejected` before the signer nodes held it, or `vetoed`',
  ),
  'policy.in_force': policyChange('A proposed policy document came into force'),
  'policy.stopped': policyStop('A stop that was sent over the API is in force at a signer node'),
  'policy.resumed': policyStop('A stop that was sent over the API was ended over the API'),
  'deposit.detected': transaction(
    'A block contains a payment to one of your addresses, which is not credited yet',
  ),
  'deposit.confirmed': transaction('The deposit is final, passed screening, and was credited'),
  'deposit.frozen': transaction(
    'Screening holds the deposit: it is not in a balance until every sender address is unfrozen',
  ),
  'deposit.released': transaction('The operator released a deposit of an unknown sender'),
  'deposit.suspended': transaction(
    'The deposit is of an asset without a wallet, or has an unknown tag; creating the wallet credits it',
  ),
  'deposit.reverted': transaction(
    'A reorganisation removed the block of the deposit; if it was credited, the credit was reversed',
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
    says: 'An address was removed from the frozen list; its held transactions continue',
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
      id: z.string().max(ID_MAX),
      asset: z.string().max(WORD_MAX),
      status: z.enum(['active', 'inactive']),
      updated_at: z.string(),
    }),
  },
  'gas_tank.low': tank('The balance of a gas tank is below its threshold'),
  'gas_tank.empty': tank('A gas tank is empty'),
  'prepaid_fee.low': prepaid('Only 20 %, or 5 %, of the last top-up is left'),
  'prepaid_fee.empty': prepaid('The balance is too low for any fee, so new transfers are refused'),
  'prepaid_fee.tier_changed': {
    says: 'The tier of the workspace changed because of its volume of the last 30 days',
    object: 'prepaid fee account',
    scope: 'workspace',
    data: z.object({
      tier: z.string().max(WORD_MAX),
      previous_tier: z.string().max(WORD_MAX),
      volume_30d: z.number(),
    }),
  },
  'staking.staked': staking('TRX was staked'),
  'staking.unstaked': staking('TRX was unstaked and is cooling down'),
  'staking.releasable': staking(
    'The cooldown of unstaked TRX has ended; it can be released',
    z.object({
      id: z.string().max(ID_MAX),
      asset: z.string().max(WORD_MAX),
      address: z.string().max(ADDRESS_MAX),
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
    says: 'A transaction has waited six hours for its screening and stays held',
    object: 'transaction',
    scope: 'sub-account',
    data: z.object({
      transaction_id: z.string().max(ID_MAX),
      provider: z.string().max(WORD_MAX),
      since: z.string().max(TIME_MAX),
      reason: z.string().max(MESSAGE_MAX),
    }),
  },
  'invoice.created': invoice('An invoice was created'),
  'invoice.updated': invoice(
    'An invoice changed without a change of its status, for example by a partial payment',
  ),
  'invoice.processing': invoice(
    'The invoice is paid in full, but the payment is not confirmed yet',
  ),
  'invoice.paid': invoice('The invoice is paid and the payment is confirmed'),
  'invoice.reverted': invoice(
    'A reorganisation of the chain removed a payment of a paid invoice, which is no longer `Paid`; `invoice.paid` follows if the payment is included again',
  ),
  'invoice.expired': invoice(
    'The invoice expired without full payment; payments found later continue from this state',
  ),
  'invoice.invalid': invoice(
    'The invoice must not be paid any more: it was cancelled or marked invalid',
  ),
  'exchange_account.created': account('An account at an exchange was linked'),
  'exchange_account.updated': account(
    'The account or the permissions of its key changed, or the exchange accepts its key again',
  ),
  'exchange_account.failing': account(
    'The exchange refused the key of the account; work that needs it continues to wait',
  ),
  'exchange_account.difference': account(
    'The total at the exchange persistently differs from the ledger, or agrees with it again',
  ),
  'exchange_account.deleted': account('The account was unlinked and its secrets were erased'),
  'order.created': order('An order was requested'),
  'order.updated': order(
    'The order reached another step, was partially filled, or ended; `unknown` if the response was lost',
  ),
  'exchange_transfer.created': exchangeTransfer('A transfer to or from an exchange was requested'),
  'exchange_transfer.updated': exchangeTransfer(
    'The transfer reached another step or ended; `unknown` if a response was lost',
  ),
  'webhook.test': {
    says: 'A test of a webhook was requested; the event is sent only to that webhook',
    object: 'webhook',
    scope: 'sub-account',
    data: z.object({ id: z.string().max(ID_MAX), url: z.string().max(URL_MAX) }),
  },
  'webhook.disabled': {
    says: 'The platform disabled a webhook: too many consecutive attempts failed, or it returned 410',
    object: 'webhook',
    scope: 'sub-account',
    data: z.object({
      id: z.string().max(ID_MAX),
      url: z.string().max(URL_MAX),
      reason: z.string().max(MESSAGE_MAX),
      failures: z.int().min(0).max(INT_MAX),
      disabled_at: z.string(),
    }),
  },
}

/** Maximum number of fields of an event's `data`. */
const DATA_MAX = 100

/** Schema of an event as it is sent and listed. `data`: see {@link EVENTS}. */
export const eventShape = (
  data: z.ZodType = z.looseObject({}).meta({ maxProperties: DATA_MAX }),
  type: z.ZodType = z.enum(EVENT_TYPES),
) =>
  z.object({
    type,
    timestamp: z.string().max(TIME_MAX).meta({ description: 'Time of the change, ISO 8601' }),
    data,
    id: z.string().max(ID_MAX).meta({
      description:
        'Equal to `webhook-id` in every delivery attempt, and the cursor of the event log',
    }),
    object: z.string().max(ID_MAX).meta({ description: 'Id of the object that changed' }),
    version: z.int().min(0).meta({
      description:
        'Number of the event for its object: 1, 2, 3 …, without gaps. A lower number is an older event',
    }),
  })
