// Every page by its URL. Each is loaded when it is first opened.
import type { ComponentType } from 'preact'

// oxlint-disable-next-line typescript/no-explicit-any -- each page has the parameters of its own address
type Load = () => Promise<ComponentType<any>>

/** Pages below /console that require no sign-in. */
export const open: Record<string, Load> = {
  '/sign-in': () => import('./pages/sign-in.tsx').then(({ SignIn }) => SignIn),
  '/join': () => import('./pages/join.tsx').then(({ Join }) => Join),
}

/** Those pages that also exist for a workspace without sub-accounts. */
export const OF_WORKSPACE: ReadonlySet<string> = new Set([
  '/browser-key',
  '/api-users',
  '/people',
  '/audit-log',
  '/health',
  '/settings',
  '/check',
])

/** Pages of a sub-account, and of the person. */
export const routes: Record<string, Load> = {
  '': () => import('./pages/overview.tsx').then(({ OverviewPage }) => OverviewPage),
  '/wallets': () => import('./pages/wallets.tsx').then(({ Wallets }) => Wallets),
  '/wallets/:asset': () => import('./pages/wallet.tsx').then(({ WalletPage }) => WalletPage),
  '/transactions': () =>
    import('./pages/transactions.tsx').then(({ Transactions }) => Transactions),
  '/transactions/:id': () =>
    import('./pages/transaction.tsx').then(({ TransactionPage }) => TransactionPage),
  '/approvals': () => import('./pages/approvals.tsx').then(({ Approvals }) => Approvals),
  '/approvals/:id': () => import('./pages/approval.tsx').then(({ ApprovalPage }) => ApprovalPage),
  '/receive': () => import('./pages/receive.tsx').then(({ ReceivePage }) => ReceivePage),
  '/send': () => import('./pages/send.tsx').then(({ Send }) => Send),
  '/batch': () => import('./pages/batch.tsx').then(({ Batch }) => Batch),
  '/invoices': () => import('./pages/invoices.tsx').then(({ Invoices }) => Invoices),
  '/invoices/:id': () => import('./pages/invoice.tsx').then(({ InvoicePage }) => InvoicePage),
  '/exchanges': () => import('./pages/exchanges.tsx').then(({ Exchanges }) => Exchanges),
  '/exchanges/:id': () => import('./pages/exchange.tsx').then(({ ExchangePage }) => ExchangePage),
  '/orders': () => import('./pages/orders.tsx').then(({ Orders }) => Orders),
  '/orders/:id': () => import('./pages/order.tsx').then(({ OrderPage }) => OrderPage),
  '/forwarding': () => import('./pages/forwarding.tsx').then(({ Forwarding }) => Forwarding),
  '/forwarding/:id': () =>
    import('./pages/forward-rule.tsx').then(({ ForwardRulePage }) => ForwardRulePage),
  '/staking': () => import('./pages/staking.tsx').then(({ Staking }) => Staking),
  '/aml': () => import('./pages/aml.tsx').then(({ Aml }) => Aml),
  '/tanks': () => import('./pages/tanks.tsx').then(({ Tanks }) => Tanks),
  '/tanks/:network': () => import('./pages/tank.tsx').then(({ TankPage }) => TankPage),
  '/prepaid': () => import('./pages/prepaid.tsx').then(({ Prepaid }) => Prepaid),
  '/policy': () => import('./pages/policy.tsx').then(({ PolicyPage }) => PolicyPage),
  '/prices': () => import('./pages/prices.tsx').then(({ Prices }) => Prices),
  '/webhooks': () => import('./pages/webhooks.tsx').then(({ Webhooks }) => Webhooks),
  '/webhooks/:id': () => import('./pages/webhook.tsx').then(({ WebhookPage }) => WebhookPage),
  '/browser-key': () =>
    import('./pages/browser-key.tsx').then(({ BrowserKeyPage }) => BrowserKeyPage),
  '/api-users': () => import('./pages/api-users.tsx').then(({ ApiUsers }) => ApiUsers),
  '/people': () => import('./pages/people.tsx').then(({ People }) => People),
  '/audit-log': () => import('./pages/audit-log.tsx').then(({ AuditLog }) => AuditLog),
  '/health': () => import('./pages/health.tsx').then(({ HealthPage }) => HealthPage),
  '/settings': () => import('./pages/settings.tsx').then(({ SettingsPage }) => SettingsPage),
  '/check': () => import('./pages/check.tsx').then(({ CheckRequest }) => CheckRequest),
  '/account': () => import('./pages/account.tsx').then(({ Account }) => Account),
}
