// Names of what the API takes and answers. The shapes themselves are made from the OpenAPI document
// (api.d.ts).
import type * as api from './api.d.ts'
import type { FailureProof } from './trust/proof.ts'

export type { Decimal, Problem } from './api.d.ts'

/** ISO 8601. */
export type Timestamp = string
/** Where an address is below the workspace's key: `[sub-account, chain, index]`, not hardened. */
export type DerivationPath = number[]

type Operations = api.operations
/** Parameters of an operation's query. */
type Query<Id extends keyof Operations> = Operations[Id]['parameters'] extends { query?: infer Q }
  ? NonNullable<Q>
  : never
/** What an operation answers. */
type Answer<Id extends keyof Operations> = Operations[Id]['responses'][200]['content'] extends {
  'application/json': infer A
}
  ? A
  : never
/** A body, of which the client fills in some fields. */
type Without<T, Filled extends keyof T> = Omit<T, Filled> & Partial<Pick<T, Filled>>

export interface Page<T> {
  data: T[]
  page: number
  limit: number
  total: number
}
export interface PageQuery {
  page?: number
  limit?: number
}

export type Asset = api.Asset
export type Wallet = api.Wallet
/**
 * `balance` is what can be sent; `omnibus_balance` all that the wallet's addresses hold on chain.
 */
export type WalletBalance = api.WalletBalance
export type CoinAside = api.CoinAside
export type CoinAsideFilter = Query<'listCoinsAside'>
export type CoinAsidePage = Answer<'listCoinsAside'>
export type Address = api.Address
export type AddressPage = api.AddressPage
export type Balance = api.Balance
export type BalancePage = Answer<'listBalances'>
/** `after`: `next` of an earlier answer. */
export interface CursorQuery {
  after?: string
  limit?: number
}
export type AddressValidation = api.ValidateAddressResponse

/**
 * `source_type` is INTERNAL and `destination_type` EXTERNAL unless given. With a `sequence_id`, and
 * only with it, a lost answer is asked for again.
 */
export type NewTransaction = Without<
  Omit<api.CreateTransactionRequest, 'type' | 'ts'>,
  'source_type' | 'destination_type'
>
export type Transaction = Omit<api.TransactionWithReplacements, 'voids'> & {
  /**
   * Of a transfer that failed before it was paid: what the signer nodes sign of it. Believe
   * `verifyFailed`, not this list.
   */
  voids?: api.Void[]
  /**
   * With `trust`, of one that failed: whether the nodes prove it. Made by this client, never by the
   * service.
   */
  failure_proof?: FailureProof | undefined
}
export type Replacement = api.Replacement
export type TransactionFilter = Query<'listTransactions'>
export type TransactionPage = Page<Transaction>
export type SpeedUp = api.SpeedUpTransactionRequest

export type GasTank = api.GasTank
export type GasTankEntry = Answer<'listGasTankEntries'>['data'][number]
export type FeeRates = api.ReadNetworkFeeRatesResponse
export type FeeEstimate = api.EstimateFeeResponse
export type Price = api.Price
/** Amounts in USD. */
export type PrepaidFee = api.ReadPrepaidFeeResponse
export type ReservesStatement = api.ReservesStatement
export type ReservesProof = api.ReservesProof
export type ReservesPage = Page<ReservesStatement>
export type PrepaidEntry = Answer<'listPrepaidFeeEntries'>['data'][number]

export type NewAmlSettings = api.SaveAmlSettingsRequest
/** The token is masked. */
export type AmlSettings = api.AmlSettings
export type FrozenAddress = api.FrozenAddress
export type UnfrozenAddress = api.UnfreezeAddressResponse

export type NewStake = Without<api.StakeRequest, 'asset'>
export type Stake = api.StakingAnswer
export type Staking = api.ReadStakingResponse

export type NewForwardRule = api.CreateForwardingRuleRequest
export type ForwardRule = api.ForwardingRule
export type ForwardRuleFilter = Query<'listForwardingRules'>

/** Either `fiat` and `fiat_amount`, or `asset` and `amount`. */
export type NewInvoice = api.CreateInvoiceRequest
export type Invoice = api.Invoice
export type InvoiceStatus = Invoice['inv_status']
export type InvoicePayment = api.InvoicePayment
/** `from` and `to` in Unix seconds. */
export type InvoiceFilter = Query<'listInvoices'>
export type InvoiceSettings = api.InvoiceSettings
export type NewInvoiceSettings = api.SaveInvoiceSettingsRequest
/** What the payer's page shows; amounts are texts in it. */
export type Checkout = api.Checkout

export type ExchangeInfo = Answer<'listExchanges'>['data'][number]
export type NewExchangeAccount = api.CreateExchangeAccountRequest
export type ExchangeAccountChange = api.ChangeExchangeAccountRequest
/** `null` in `permissions`: the exchange does not tell. */
export type ExchangeAccount = api.ExchangeAccount
export type ExchangeAccountWithBalances = api.ExchangeAccountWithBalances
export type ExchangeAccountTest = api.ExchangeAccountTest
export type ExchangeAccountFilter = Query<'listExchangeAccounts'>
export type Market = Answer<'listMarkets'>['data'][number]
export type Ticker = api.ReadTickerResponse
export type OrderBook = api.ReadOrderBookResponse
/**
 * A limit order has a `price`; a market order may have `max_slippage_bps`. Either `amount` or
 * `quote_amount`.
 */
export type NewOrder = api.CreateOrderRequest
export type Order = api.Order
export type OrderStatus = Order['status']
export type OrderWithFills = api.OrderWithFills
export type OrderFilter = Query<'listOrders'>
export type ExchangeAddress = api.ExchangeDepositAddress
/** `sub_status` MOVING: on the chain, or about to be. */
export type ExchangeTransfer = api.ExchangeTransfer
export type ExchangeTransferFilter = Query<'listExchangeTransfers'>
/** To an address of the wallet's own: its first, unless one is named. */
export type NewExchangeWithdrawal = api.CreateExchangeWithdrawalRequest
/** `amount` of `from_asset`; of all linked accounts, unless some are named. */
export type ConversionRequest = api.QuoteConversionRequest
export type Conversion = api.Conversion

/** An event of the log, as {@link WebhookEvent} is sent. */
export type LogEvent = Answer<'listEvents'>['data'][number]
export type EventPage = api.ListEventsResponse
export type EventFilter = Query<'listEvents'>
export type NewWebhook = api.CreateWebhookRequest
export type WebhookChange = api.ChangeWebhookRequest
export type Webhook = api.Webhook
/** With the secret, which is shown once. */
export type WebhookWithSecret = api.WebhookWithSecret
export type Delivery = api.Delivery
export type DeliveryFilter = Query<'listDeliveries'>
