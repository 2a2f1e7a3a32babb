import { createAddress } from '../../src/addresses/create-address.ts'
import { saveAmlSettings } from '../../src/aml/save-settings.ts'
import { unfreezeAddress } from '../../src/aml/unfreeze-address.ts'
import { createRule } from '../../src/auto-forwarding/create-rule.ts'
import { createAccount } from '../../src/exchanges/create-account.ts'
import { createInvoice } from '../../src/invoices/create-invoice.ts'
import { stake } from '../../src/staking/stake.ts'
import { unstake } from '../../src/staking/unstake.ts'
import { cancelOrder } from '../../src/trading/cancel-order.ts'
import { createOrder } from '../../src/trading/create-order.ts'
import type { Endpoint } from '../../src/http/endpoint.ts'
import { cancelTransaction } from '../../src/transactions/cancel.ts'
import { createTransaction } from '../../src/transactions/create-transaction.ts'
import { speedUp } from '../../src/transactions/speed-up.ts'
import { createWallet } from '../../src/wallets/create-wallet.ts'
import { createWebhook } from '../../src/webhooks/create-webhook.ts'

/**
 * Endpoints that callers of the simulation use. An instance's server has only these, because
 * setting up all endpoints takes a tenth of a second.
 */
export const ENDPOINTS: readonly Endpoint[] = [
  createWallet,
  createAddress,
  createTransaction,
  cancelTransaction,
  speedUp,
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
