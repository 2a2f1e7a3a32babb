import { createAddress } from '../../custody/addresses/create-address.ts'
import { listAddresses } from '../../custody/addresses/list-addresses.ts'
import { postValidateAddress } from '../../custody/addresses/validate-address.ts'
import { listFrozen } from '../../custody/aml/list-frozen.ts'
import { readAmlSettings } from '../../custody/aml/read-settings.ts'
import { saveAmlSettings } from '../../custody/aml/save-settings.ts'
import { unfreezeAddress } from '../../custody/aml/unfreeze-address.ts'
import { getAssets } from '../../custody/assets/list-assets.ts'
import { getSupportedAssets } from '../../custody/assets/supported-assets.ts'
import { createRule } from '../../custody/auto-forwarding/create-rule.ts'
import { deleteRule } from '../../custody/auto-forwarding/delete-rule.ts'
import { ruleHistory } from '../../custody/auto-forwarding/history.ts'
import { listRules } from '../../custody/auto-forwarding/list-rules.ts'
import { pauseRule, resumeRule } from '../../custody/auto-forwarding/pause-rule.ts'
import { readRule } from '../../custody/auto-forwarding/read-rule.ts'
import { listEvents } from '../../events/events/list-events.ts'
import { streamEvents } from '../../events/events/stream-events.ts'
import { estimateFeeEndpoint } from '../../custody/fees/estimate-fee.ts'
import { networkFeeRates } from '../../custody/fees/network-fee-rates.ts'
import { listTankEntries } from '../../custody/gas-tanks/list-entries.ts'
import { listGasTanks } from '../../custody/gas-tanks/list-tanks.ts'
import { cancelInvoice } from '../../commerce/invoices/cancel-invoice.ts'
import { checkoutEvents } from '../../commerce/invoices/checkout-events.ts'
import { readCheckout } from '../../commerce/invoices/checkout-state.ts'
import { chooseAsset } from '../../commerce/invoices/choose-asset.ts'
import { createInvoice } from '../../commerce/invoices/create-invoice.ts'
import { listInvoices } from '../../commerce/invoices/list-invoices.ts'
import { markInvoice } from '../../commerce/invoices/mark-invoice.ts'
import { getInvoice } from '../../commerce/invoices/read-invoice.ts'
import { getInvoiceSettings } from '../../commerce/invoices/read-settings.ts'
import { refundInvoice } from '../../commerce/invoices/refund-invoice.ts'
import { saveInvoiceSettings } from '../../commerce/invoices/save-settings.ts'
import { createExchangeWithdrawal } from '../../commerce/exchange-transfers/create-withdrawal.ts'
import { listExchangeTransfers } from '../../commerce/exchange-transfers/list-transfers.ts'
import { readExchangeAddress } from '../../commerce/exchange-transfers/read-address.ts'
import { readExchangeTransfer } from '../../commerce/exchange-transfers/read-transfer.ts'
import { changeAccount } from '../../commerce/exchanges/change-account.ts'
import { createAccount } from '../../commerce/exchanges/create-account.ts'
import { deleteAccount } from '../../commerce/exchanges/delete-account.ts'
import { listAccounts } from '../../commerce/exchanges/list-accounts.ts'
import { listExchanges } from '../../commerce/exchanges/list-exchanges.ts'
import { listMarkets } from '../../commerce/exchanges/list-markets.ts'
import { readAccount } from '../../commerce/exchanges/read-account.ts'
import { readOrderBook } from '../../commerce/exchanges/read-orderbook.ts'
import { readTicker } from '../../commerce/exchanges/read-ticker.ts'
import { testAccount } from '../../commerce/exchanges/test-account.ts'
import { listKeys } from '../../custody/keys/list-keys.ts'
import { listPrepaidEntries } from '../../custody/prepaid-fee/list-entries.ts'
import { readPrepaidFee } from '../../custody/prepaid-fee/read-account.ts'
import { listPrices } from '../../custody/prices/list-prices.ts'
import { listReserves } from '../reserves/list-reserves.ts'
import { readReservesProof } from '../reserves/read-proof.ts'
import { releaseUnstaked } from '../../custody/staking/release-unstaked.ts'
import { stake } from '../../custody/staking/stake.ts'
import { readStaking } from '../../custody/staking/staking.ts'
import { unstake } from '../../custody/staking/unstake.ts'
import { cancelOrder } from '../../commerce/trading/cancel-order.ts'
import { createConversion } from '../../commerce/trading/create-conversion.ts'
import { createOrder } from '../../commerce/trading/create-order.ts'
import { listOrders } from '../../commerce/trading/list-orders.ts'
import { quoteConversion } from '../../commerce/trading/quote-conversion.ts'
import { readConversion } from '../../commerce/trading/read-conversion.ts'
import { readOrder } from '../../commerce/trading/read-order.ts'
import { giveApproval } from '../../custody/approvals/give-approval.ts'
import { listApprovals } from '../../custody/approvals/list-approvals.ts'
import { readApproval } from '../../custody/approvals/read-approval.ts'
import { evaluatePolicy } from '../../custody/policies/evaluate-policy.ts'
import { createPolicyChange } from '../../custody/policies/changes/create-change.ts'
import { listPolicyChanges } from '../../custody/policies/changes/list-changes.ts'
import { provePolicyKey } from '../../custody/policies/changes/prove-possession.ts'
import { readPolicyChange } from '../../custody/policies/changes/read-change.ts'
import { readPolicyStop } from '../../custody/policies/emergency/read-stop.ts'
import { resumePolicy } from '../../custody/policies/emergency/resume-policy.ts'
import { stopPolicy } from '../../custody/policies/emergency/stop-policy.ts'
import { suspendPolicyKey } from '../../custody/policies/emergency/suspend-key.ts'
import { vetoPolicy } from '../../custody/policies/emergency/veto-policy.ts'
import { listPolicyWindows } from '../../custody/policies/list-windows.ts'
import { listPolicyVersions } from '../../custody/policies/list-versions.ts'
import { readPolicy } from '../../custody/policies/read-policy.ts'
import { simulatePolicy } from '../../custody/policies/simulate-policy.ts'
import { cancelTransaction } from '../../custody/transactions/cancel.ts'
import { createTransaction } from '../../custody/transactions/create-transaction.ts'
import { listTransactions } from '../../custody/transactions/list-transactions.ts'
import { readTransaction } from '../../custody/transactions/read-transaction.ts'
import { speedUp } from '../../custody/transactions/speed-up.ts'
import { exportStatement } from '../../custody/statements/export-statement.ts'
import { readStatement } from '../../custody/statements/read-statement.ts'
import { createWallet, createWalletAlias } from '../../custody/wallets/create-wallet.ts'
import { consolidateCoins } from '../../custody/coins/consolidate.ts'
import { listCoins } from '../../custody/coins/list-coins.ts'
import { updateCoin } from '../../custody/coins/update-coin.ts'
import { listBalances } from '../../custody/wallets/list-balances.ts'
import { listCoinsAside } from '../../custody/wallets/list-coins-aside.ts'
import { listWallets } from '../../custody/wallets/list-wallets.ts'
import { changeWebhook } from '../../events/webhooks/change-webhook.ts'
import { createWebhook } from '../../events/webhooks/create-webhook.ts'
import { deleteWebhook } from '../../events/webhooks/delete-webhook.ts'
import { listDeliveries } from '../../events/webhooks/list-deliveries.ts'
import { listWebhooks } from '../../events/webhooks/list-webhooks.ts'
import { webhookKeyJwks, webhookKeyPem } from '../../events/webhooks/public-key.ts'
import { readWebhook } from '../../events/webhooks/read-webhook.ts'
import { resendDelivery, resendDeliveryOf } from '../../events/webhooks/resend.ts'
import { rotateWebhook } from '../../events/webhooks/rotate.ts'
import { testWebhook } from '../../events/webhooks/test-webhook.ts'
import type { Application } from './application.ts'
import type { Endpoint } from '../../core/http/endpoint.ts'

/** All endpoints of the API. A new endpoint is a file in its module's folder and a line here. */
export const endpoints: readonly Endpoint<Application>[] = [
  getAssets,
  getSupportedAssets,
  createWallet,
  createWalletAlias,
  listWallets,
  listBalances,
  listCoins,
  updateCoin,
  consolidateCoins,
  listCoinsAside,
  readStatement,
  exportStatement,
  createAddress,
  listAddresses,
  listKeys,
  postValidateAddress,
  createTransaction,
  readTransaction,
  listTransactions,
  speedUp,
  cancelTransaction,
  listApprovals,
  readApproval,
  giveApproval,
  readPolicy,
  listPolicyVersions,
  listPolicyWindows,
  evaluatePolicy,
  simulatePolicy,
  createPolicyChange,
  listPolicyChanges,
  readPolicyChange,
  provePolicyKey,
  stopPolicy,
  resumePolicy,
  vetoPolicy,
  suspendPolicyKey,
  readPolicyStop,
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
