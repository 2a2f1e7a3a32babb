import { createAddress } from '../addresses/create-address.ts'
import { listAddresses } from '../addresses/list-addresses.ts'
import { postValidateAddress } from '../addresses/validate-address.ts'
import { listFrozen } from '../aml/list-frozen.ts'
import { readAmlSettings } from '../aml/read-settings.ts'
import { saveAmlSettings } from '../aml/save-settings.ts'
import { unfreezeAddress } from '../aml/unfreeze-address.ts'
import { getAssets } from '../assets/list-assets.ts'
import { getSupportedAssets } from '../assets/supported-assets.ts'
import { createRule } from '../auto-forwarding/create-rule.ts'
import { deleteRule } from '../auto-forwarding/delete-rule.ts'
import { ruleHistory } from '../auto-forwarding/history.ts'
import { listRules } from '../auto-forwarding/list-rules.ts'
import { pauseRule, resumeRule } from '../auto-forwarding/pause-rule.ts'
import { readRule } from '../auto-forwarding/read-rule.ts'
import { listEvents } from '../events/list-events.ts'
import { streamEvents } from '../events/stream-events.ts'
import { estimateFeeEndpoint } from '../fees/estimate-fee.ts'
import { networkFeeRates } from '../fees/network-fee-rates.ts'
import { listTankEntries } from '../gas-tanks/list-entries.ts'
import { listGasTanks } from '../gas-tanks/list-tanks.ts'
import { cancelInvoice } from '../invoices/cancel-invoice.ts'
import { checkoutEvents } from '../invoices/checkout-events.ts'
import { readCheckout } from '../invoices/checkout-state.ts'
import { chooseAsset } from '../invoices/choose-asset.ts'
import { createInvoice } from '../invoices/create-invoice.ts'
import { listInvoices } from '../invoices/list-invoices.ts'
import { markInvoice } from '../invoices/mark-invoice.ts'
import { getInvoice } from '../invoices/read-invoice.ts'
import { getInvoiceSettings } from '../invoices/read-settings.ts'
import { refundInvoice } from '../invoices/refund-invoice.ts'
import { saveInvoiceSettings } from '../invoices/save-settings.ts'
import { createExchangeWithdrawal } from '../exchange-transfers/create-withdrawal.ts'
import { listExchangeTransfers } from '../exchange-transfers/list-transfers.ts'
import { readExchangeAddress } from '../exchange-transfers/read-address.ts'
import { readExchangeTransfer } from '../exchange-transfers/read-transfer.ts'
import { changeAccount } from '../exchanges/change-account.ts'
import { createAccount } from '../exchanges/create-account.ts'
import { deleteAccount } from '../exchanges/delete-account.ts'
import { listAccounts } from '../exchanges/list-accounts.ts'
import { listExchanges } from '../exchanges/list-exchanges.ts'
import { listMarkets } from '../exchanges/list-markets.ts'
import { readAccount } from '../exchanges/read-account.ts'
import { readOrderBook } from '../exchanges/read-orderbook.ts'
import { readTicker } from '../exchanges/read-ticker.ts'
import { testAccount } from '../exchanges/test-account.ts'
import { listKeys } from '../keys/list-keys.ts'
import { listPrepaidEntries } from '../prepaid-fee/list-entries.ts'
import { readPrepaidFee } from '../prepaid-fee/read-account.ts'
import { listPrices } from '../prices/list-prices.ts'
import { listReserves } from '../reserves/list-reserves.ts'
import { readReservesProof } from '../reserves/read-proof.ts'
import { releaseUnstaked } from '../staking/release-unstaked.ts'
import { stake } from '../staking/stake.ts'
import { readStaking } from '../staking/staking.ts'
import { unstake } from '../staking/unstake.ts'
import { cancelOrder } from '../trading/cancel-order.ts'
import { createConversion } from '../trading/create-conversion.ts'
import { createOrder } from '../trading/create-order.ts'
import { listOrders } from '../trading/list-orders.ts'
import { quoteConversion } from '../trading/quote-conversion.ts'
import { readConversion } from '../trading/read-conversion.ts'
import { readOrder } from '../trading/read-order.ts'
import { cancelTransaction } from '../transactions/cancel.ts'
import { createTransaction } from '../transactions/create-transaction.ts'
import { listTransactions } from '../transactions/list-transactions.ts'
import { readTransaction } from '../transactions/read-transaction.ts'
import { speedUp } from '../transactions/speed-up.ts'
import { createWallet, createWalletAlias } from '../wallets/create-wallet.ts'
import { listBalances } from '../wallets/list-balances.ts'
import { listCoinsAside } from '../wallets/list-coins-aside.ts'
import { listWallets } from '../wallets/list-wallets.ts'
import { changeWebhook } from '../webhooks/change-webhook.ts'
import { createWebhook } from '../webhooks/create-webhook.ts'
import { deleteWebhook } from '../webhooks/delete-webhook.ts'
import { listDeliveries } from '../webhooks/list-deliveries.ts'
import { listWebhooks } from '../webhooks/list-webhooks.ts'
import { webhookKeyJwks, webhookKeyPem } from '../webhooks/public-key.ts'
import { readWebhook } from '../webhooks/read-webhook.ts'
import { resendDelivery, resendDeliveryOf } from '../webhooks/resend.ts'
import { rotateWebhook } from '../webhooks/rotate.ts'
import { testWebhook } from '../webhooks/test-webhook.ts'
import type { Endpoint } from '../http/endpoint.ts'

/** All endpoints of the API. A new endpoint is a file in its module's folder and a line here. */
export const endpoints: readonly Endpoint[] = [
  getAssets,
  getSupportedAssets,
  createWallet,
  createWalletAlias,
  listWallets,
  listBalances,
  listCoinsAside,
  createAddress,
  listAddresses,
  listKeys,
  postValidateAddress,
  createTransaction,
  readTransaction,
  listTransactions,
  speedUp,
  cancelTransaction,
  listGasTanks,
  listTankEntries,
  networkFeeRates,
  estimateFeeEndpoint,
  readPrepaidFee,
  listPrepaidEntries,
  listPrices,
  saveAmlSettings,
  readAmlSettings,
  unfreezeAddress,
  listFrozen,
  createRule,
  listRules,
  readRule,
  pauseRule,
  resumeRule,
  deleteRule,
  ruleHistory,
  createInvoice,
  listInvoices,
  getInvoice,
  cancelInvoice,
  markInvoice,
  refundInvoice,
  getInvoiceSettings,
  saveInvoiceSettings,
  readCheckout,
  chooseAsset,
  checkoutEvents,
  listExchanges,
  createAccount,
  listAccounts,
  readAccount,
  changeAccount,
  deleteAccount,
  testAccount,
  listMarkets,
  readTicker,
  readOrderBook,
  createOrder,
  listOrders,
  readOrder,
  cancelOrder,
  quoteConversion,
  createConversion,
  readConversion,
  readExchangeAddress,
  createExchangeWithdrawal,
  listExchangeTransfers,
  readExchangeTransfer,
  listEvents,
  streamEvents,
  createWebhook,
  listWebhooks,
  readWebhook,
  changeWebhook,
  deleteWebhook,
  rotateWebhook,
  testWebhook,
  listDeliveries,
  resendDelivery,
  resendDeliveryOf,
  webhookKeyPem,
  webhookKeyJwks,
  stake,
  unstake,
  releaseUnstaked,
  readStaking,
  listReserves,
  readReservesProof,
]
