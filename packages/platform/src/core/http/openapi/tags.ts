/** Groups of operations, in the order in which the documentation shows them. */
export const TAGS = {
  Assets: 'Assets that the installation supports.',
  Wallets: 'One for each asset and sub-account.',
  Addresses: 'Deposit addresses, and the certificates that prove their ownership.',
  Transactions: 'Transfers, deposits and their state on the chain.',
  Approvals: 'Transfers that require approvals of people by the policy of the workspace.',
  Policy: 'The policy of the workspace: documents, evaluation and simulation.',
  Fees: 'Network fee rates and estimates.',
  'Gas tanks': 'Reserves of the workspace that pay network fees.',
  'Prepaid fee account': 'The USD account that pays platform fees.',
  Prices: 'Asset prices in USD.',
  'AML screening': 'Screening of senders and recipients.',
  'Auto-forwarding': 'Standing rules that forward incoming funds.',
  Invoices: 'Payment requests in fiat or assets, with their payments.',
  Checkout: 'Operations of the payment page. They require no API key.',
  'Exchange accounts': 'Exchange accounts that are linked for trading.',
  Trading: 'Markets, orders and conversions at linked accounts.',
  'Exchange transfers': 'Transfers between your wallets and exchanges.',
  Events: 'Events as a log and as a stream.',
  Webhooks: 'Endpoints that receive events by HTTP POST.',
  Staking: 'Staking of TRX for energy and bandwidth.',
  'Proof of reserves': 'Assets and liabilities of the installation, and the proof of your share.',
  Service: 'Status of the process. Requires no API key.',
} as const satisfies Record<string, string>

export type Tag = keyof typeof TAGS
