// Every page, by its address; each is loaded when it is first opened.
import type { ComponentType } from 'preact'

// oxlint-disable-next-line typescript/no-explicit-any -- each page has the parameters of its own address
type Load = () => Promise<ComponentType<any>>

/** Pages that need nobody to be signed in: below /console. */
export const open: Record<string, Load> = {
  '/sign-in': () => import('./pages/sign-in.tsx').then(({ SignIn }) => SignIn),
  '/join/:token': () => import('./pages/join.tsx').then(({ Join }) => Join),
}

/** Pages of a sub-account, and of the person. */
export const routes: Record<string, Load> = {
  '': () => import('./pages/overview.tsx').then(({ OverviewPage }) => OverviewPage),
  '/wallets': () => import('./pages/wallets.tsx').then(({ Wallets }) => Wallets),
  '/wallets/:asset': () => import('./pages/wallet.tsx').then(({ WalletPage }) => WalletPage),
  '/transactions': () => import('./pages/transactions.tsx').then(({ Transactions }) => Transactions),
  '/transactions/:id': () => import('./pages/transaction.tsx').then(({ TransactionPage }) => TransactionPage),
  '/send': () => import('./pages/send.tsx').then(({ Send }) => Send),
  '/batch': () => import('./pages/batch.tsx').then(({ Batch }) => Batch),
  '/browser-key': () => import('./pages/browser-key.tsx').then(({ BrowserKeyPage }) => BrowserKeyPage),
  '/account': () => import('./pages/account.tsx').then(({ Account }) => Account),
}
