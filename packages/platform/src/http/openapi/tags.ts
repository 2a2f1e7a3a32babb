/** Groups of operations, in the order in which the documentation shows them. */
export const TAGS = {
  Assets: 'What can be transacted.',
  Wallets: 'One for each asset and sub-account.',
  Addresses: 'Where deposits are taken, and what proves that they are yours.',
  Transactions: 'Transfers, deposits and what the chain makes of them.',
  Fees: 'What networks charge.',
  'Gas tanks': 'The workspace’s reserve that pays network fees.',
  'Prepaid fee account': 'The USD account that pays platform fees.',
  Prices: 'What assets are worth in USD.',
  'AML screening': 'Who may be paid and who may pay.',
  'Auto-forwarding': 'Standing orders for what comes in.',
  Invoices: 'Amounts that payers are asked for.',
  Checkout: 'What the payer’s page asks; without a key.',
  'Exchange accounts': 'Accounts at exchanges that the platform trades with.',
  Trading: 'Markets, orders and conversions at linked accounts.',
  'Exchange transfers': 'Coins between own wallets and exchanges.',
  Events: 'What has happened, as a log and as a stream.',
  Webhooks: 'Where events are posted to.',
  Staking: 'TRX for energy and bandwidth.',
  'Proof of reserves': 'What the installation holds and owes, and your part of it.',
  Service: 'How the process is; without a key.',
} as const satisfies Record<string, string>

export type Tag = keyof typeof TAGS
