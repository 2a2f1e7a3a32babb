// Names of the API's request and response types. The shapes themselves are generated from the
// OpenAPI document (api.d.ts).
import type * as api from './api.d.ts'
import type { FailureProof } from './trust/proof.ts'

export type { Decimal, Problem } from './api.d.ts'

/** Time in ISO 8601. */
export type Timestamp = string
/**
 * Derivation path of an address, relative to the workspace's key: `[sub-account, chain, index]`,
 * not hardened.
 */
export type DerivationPath = number[]

type Operations = api.operations
/** Query parameters of an operation. */
type Query<Id extends keyof Operations> = Operations[Id]['parameters'] extends { query?: infer Q }
  ? NonNullable<Q>
  : never
/** Response of an operation. */
type Answer<Id extends keyof Operations> = Operations[Id]['responses'][200]['content'] extends {
  'application/json': infer A
}
  ? A
  : never
/** A request body of which the client fills in some fields. */
type Without<T, Filled extends keyof T> = Omit<T, Filled> & Partial<Pick<T, Filled>>

/** One numbered page of a list. */
export interface Page<T> {
  data: T[]
  page: number
  limit: number
  total: number
}
/** Page number, from 1, and entries per page. */
export interface PageQuery {
  page?: number
  limit?: number
}

export type Asset = api.Asset
export type Wallet = api.Wallet
/**
 * `balance` can be spent; `omnibus_balance` is the total of the wallet's addresses on the chain.
 */
export type WalletBalance = api.WalletBalance
/** An unspent output of a wallet. */
export type Coin = api.Coin
export type CoinFilter = Query<'listCoins'>
export type CoinPage = Answer<'listCoins'>
export type CoinChange = api.UpdateCoinRequest
export type CoinAside = api.CoinAside
export type CoinAsideFilter = Query<'listCoinsAside'>
export type CoinAsidePage = Answer<'listCoinsAside'>
export type Statement = api.Statement
export type StatementMovement = api.StatementMovement
export type StatementQuery = Query<'readStatement'>
export type StatementExportQuery = Query<'exportStatement'>
export type Approval = api.Approval
export type ApprovalDetail = api.ApprovalDetail
export type ApprovalDecision = api.ApprovalDecision
export type ApprovalFilter = Query<'listApprovals'>
export type ApprovalPage = Answer<'listApprovals'>
export type ApprovalResult = Answer<'giveApproval'>
export type PolicyInForce = Answer<'readPolicy'>
export type PolicyVersionFilter = Query<'listPolicyVersions'>
export type PolicyVersionPage = Answer<'listPolicyVersions'>
export type PolicyWindows = Answer<'listPolicyWindows'>
export type PolicyEvaluationRequest = api.EvaluatePolicyRequest
export type PolicyEvaluation = Answer<'evaluatePolicy'>
export type PolicySimulationRequest = api.SimulatePolicyRequest
export type PolicySimulation = Answer<'simulatePolicy'>
export type PolicyProposalRequest = api.CreatePolicyChangeRequest
export type PolicyChange = api.PolicyChange
export type PolicyChangeDetail = api.PolicyChangeDetail
export type PolicyChangeFilter = Query<'listPolicyChanges'>
export type PolicyChangePage = Answer<'listPolicyChanges'>
export type PolicyPossession = api.ProvePolicyKeyRequest
export type PolicyStop = Answer<'readPolicyStop'>
export type PolicyStopRequest = api.StopPolicyRequest
export type PolicyStopResult = Answer<'stopPolicy'>
export type PolicyResumeRequest = api.ResumePolicyRequest
export type PolicyResumeResult = Answer<'resumePolicy'>
export type PolicyVetoRequest = api.VetoPolicyRequest
export type PolicyVetoResult = Answer<'vetoPolicy'>
export type PolicySuspendRequest = api.SuspendPolicyKeyRequest
export type PolicySuspendResult = Answer<'suspendPolicyKey'>
export type Address = api.Address
export type AddressPage = api.AddressPage
export type Balance = api.Balance
export type BalancePage = Answer<'listBalances'>
/** Cursor of a list. `after`: `next` of an earlier response. */
export interface CursorQuery {
  after?: string
  limit?: number
}
export type AddressValidation = api.AddressValidation

/**
 * `source_type` is INTERNAL and `destination_type` EXTERNAL by default. A request is repeated after
 * a lost response only if it has a `sequence_id`.
 */
export type NewTransaction = Without<
  Omit<api.CreateTransactionRequest, 'type' | 'ts'>,
  'source_type' | 'destination_type'
>
export type Transaction = Omit<api.TransactionWithReplacements, 'voids'> & {
  /**
   * Signed statements of the signer nodes about a transfer that failed before it was paid. Rely on
   * `verifyFailed` and not on this list.
   */
  voids?: api.Void[]
  /**
   * With `trust`, whether the nodes prove the failure of a failed transaction. It is computed by
   * this client and never sent by the service.
   */
  failure_proof?: FailureProof | undefined
}
export type Replacement = api.Replacement
export type TransactionFilter = Query<'listTransactions'>
export type TransactionPage = Page<Transaction>
export type SpeedUp = api.SpeedUpTransactionRequest

export type GasTank = api.GasTank
export type GasTankEntry = Answer<'listGasTankEntries'>['data'][number]
export type FeeRates = api.NetworkFeeRates
export type FeeEstimate = api.FeeEstimate
export type Price = api.Price
/** Prepaid account of the workspace. Amounts are in USD. */
export type PrepaidFee = api.PrepaidFee
export type ReservesStatement = api.ReservesStatement
export type ReservesProof = api.ReservesProof
export type ReservesPage = Page<ReservesStatement>
export type PrepaidEntry = Answer<'listPrepaidFeeEntries'>['data'][number]

export type NewAmlSettings = api.SaveAmlSettingsRequest
/** Settings of address screening. The token is masked. */
export type AmlSettings = api.AmlSettings
export type FrozenAddress = api.FrozenAddress
export type UnfrozenAddress = api.AddressRelease

/** A request to merge coins. Decimals are strings. */
export type NewConsolidation = api.ConsolidateCoinsRequest
export type NewStake = Without<api.StakeRequest, 'asset'>
export type Stake = api.StakingAnswer
export type Staking = api.Staking

export type NewForwardRule = api.CreateForwardingRuleRequest
export type ForwardRule = api.ForwardingRule
export type ForwardRuleFilter = Query<'listForwardingRules'>

/** A new invoice. Set either `fiat` and `fiat_amount`, or `asset` and `amount`. */
export type NewInvoice = api.CreateInvoiceRequest
export type Invoice = api.Invoice
export type InvoiceStatus = Invoice['inv_status']
export type InvoicePayment = api.InvoicePayment
/** `from` and `to` are Unix seconds. */
export type InvoiceFilter = Query<'listInvoices'>
export type InvoiceSettings = api.InvoiceSettings
export type NewInvoiceSettings = api.SaveInvoiceSettingsRequest
/** Content of the payer's page. Amounts in it are texts. */
export type Checkout = api.Checkout

export type ExchangeInfo = Answer<'listExchanges'>['data'][number]
export type NewExchangeAccount = api.CreateExchangeAccountRequest
export type ExchangeAccountChange = api.ChangeExchangeAccountRequest
/** `null` in `permissions`: the exchange does not report it. */
export type ExchangeAccount = api.ExchangeAccount
export type ExchangeAccountWithBalances = api.ExchangeAccountWithBalances
export type ExchangeAccountTest = api.ExchangeAccountTest
export type ExchangeAccountFilter = Query<'listExchangeAccounts'>
export type Market = Answer<'listMarkets'>['data'][number]
export type Ticker = api.Ticker
export type OrderBook = api.OrderBook
/**
 * A limit order has a `price`; a market order may have `max_slippage_bps`. Set either `amount` or
 * `quote_amount`.
 */
export type NewOrder = api.CreateOrderRequest
export type Order = api.Order
export type OrderStatus = Order['status']
export type OrderWithFills = api.OrderWithFills
export type OrderFilter = Query<'listOrders'>
export type ExchangeAddress = api.ExchangeDepositAddress
/** `sub_status` MOVING: the transaction is on the chain, or will be shortly. */
export type ExchangeTransfer = api.ExchangeTransfer
export type ExchangeTransferFilter = Query<'listExchangeTransfers'>
/** The destination is an address of the own wallet: its first, unless one is given. */
export type NewExchangeWithdrawal = api.CreateExchangeWithdrawalRequest
/** `amount` is in `from_asset`. All linked accounts are used, unless some are given. */
export type ConversionRequest = api.QuoteConversionRequest
export type Conversion = api.Conversion

/** An event of the log, in the form in which a {@link WebhookEvent} is sent. */
export type LogEvent = Answer<'listEvents'>['data'][number]
export type EventPage = api.EventPage
export type EventFilter = Query<'listEvents'>
export type NewWebhook = api.CreateWebhookRequest
export type WebhookChange = api.ChangeWebhookRequest
export type Webhook = api.Webhook
/** A webhook with its secret, which is returned only once. */
export type WebhookWithSecret = api.WebhookWithSecret
export type Delivery = api.Delivery
export type DeliveryFilter = Query<'listDeliveries'>
