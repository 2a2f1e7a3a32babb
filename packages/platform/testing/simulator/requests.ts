import { createAddress } from '../../src/custody/addresses/create-address.ts'
import { giveApproval } from '../../src/custody/approvals/give-approval.ts'
import { listApprovals } from '../../src/custody/approvals/list-approvals.ts'
import { readApproval } from '../../src/custody/approvals/read-approval.ts'
import { saveAmlSettings } from '../../src/custody/aml/save-settings.ts'
import { unfreezeAddress } from '../../src/custody/aml/unfreeze-address.ts'
import { createRule } from '../../src/custody/auto-forwarding/create-rule.ts'
import { createAccount } from '../../src/commerce/exchanges/create-account.ts'
import { createInvoice } from '../../src/commerce/invoices/create-invoice.ts'
import { stake } from '../../src/custody/staking/stake.ts'
import { unstake } from '../../src/custody/staking/unstake.ts'
import { cancelOrder } from '../../src/commerce/trading/cancel-order.ts'
import { createOrder } from '../../src/commerce/trading/create-order.ts'
import type { Application } from '../../src/server/app/application.ts'
import type { Endpoint } from '../../src/core/http/endpoint.ts'
import { cancelTransaction } from '../../src/custody/transactions/cancel.ts'
import { createTransaction } from '../../src/custody/transactions/create-transaction.ts'
import { speedUp } from '../../src/custody/transactions/speed-up.ts'
import { createWallet } from '../../src/custody/wallets/create-wallet.ts'
import { createWebhook } from '../../src/events/webhooks/create-webhook.ts'

/**
 * Endpoints that callers of the simulation use. An instance's server has only these, because
 * setting up all endpoints takes a tenth of a second.
 */
export const ENDPOINTS: readonly Endpoint<Application>[] = [
  createWallet,
  createAddress,
  createTransaction,
  cancelTransaction,
  speedUp,
  listApprovals,
  readApproval,
  giveApproval,
  saveAmlSettings,
  unfreezeAddress,
  createRule,
  createInvoice,
  stake,
  unstake,
  createWebhook,
  createAccount,
  createOrder,
  cancelOrder,
]
