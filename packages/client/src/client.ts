import { CheckoutFace } from './checkout.ts'
import { paginate } from './paginate.ts'
import { CustodyError } from './errors.ts'
import { Events } from './events.ts'
import { Invoices } from './invoices.ts'
import { Reserves } from './reserves.ts'
import { Service } from './service.ts'
import { Trading } from './trading.ts'
import {
  Transport,
  type OnceOptions,
  type RequestOptions,
  type RequestSender,
  type StreamEvent,
  type StreamOptions,
  type TransportOptions,
} from './transport.ts'
import { Checks } from './trust/checks.ts'
import type { Keys } from './trust/keys.ts'
import { readTrust, type Trust } from './trust/trust.ts'
import type { FailureProof, OwnRequest } from './trust/proof.ts'
import type {
  Address,
  AddressPage,
  AddressValidation,
  AmlSettings,
  Asset,
  BalancePage,
  CoinAsideFilter,
  CoinAsidePage,
  CursorQuery,
  Decimal,
  FeeEstimate,
  FeeRates,
  ForwardRule,
  ForwardRuleFilter,
  FrozenAddress,
  GasTank,
  GasTankEntry,
  NewAmlSettings,
  NewForwardRule,
  NewStake,
  NewTransaction,
  Page,
  PageQuery,
  PrepaidEntry,
  PrepaidFee,
  Price,
  SpeedUp,
  Stake,
  Staking,
  Transaction,
  TransactionFilter,
  TransactionPage,
  UnfrozenAddress,
  Wallet,
  WalletBalance,
} from './types.ts'
import { Webhooks } from './webhooks.ts'
import { decimals, isGiven, query } from './wire.ts'

export interface CustodyClientOptions extends TransportOptions {
  /**
   * Whom to believe, from the operator: addresses are then derived here from what these nodes
   * certified, and others refused.
   */
  trust?: Trust
}

export interface WaitOptions {
  timeout_ms?: number
  interval_ms?: number
  signal?: AbortSignal
}

/** Client of the custody API. Each request carries a token of its own; retries too. */
export class CustodyClient implements RequestSender {
  readonly baseUrl: string
  readonly apiKey: string
  readonly invoices: Invoices
  readonly trading: Trading
  readonly events: Events
  readonly webhooks: Webhooks
  readonly checkout: CheckoutFace
  readonly reserves: Reserves
  readonly service: Service
  readonly #transport: Transport
  readonly #checks: Checks | null

  /**
   * @throws AuthError for a private key that signs no requests; VerificationError `TRUST` where
   *   the trust object is not one
   */
  constructor(options: CustodyClientOptions) {
    this.#transport = new Transport(options, (id) => this.#checks?.signed(id))
    this.baseUrl = this.#transport.baseUrl
    this.apiKey = this.#transport.apiKey
    this.#checks =
      options.trust === undefined ? null : new Checks(readTrust(options.trust), () => this.keys())
    this.invoices = new Invoices(this, this.#checks)
    this.trading = new Trading(this)
    this.events = new Events(this)
    this.webhooks = new Webhooks(this)
    this.checkout = new CheckoutFace(this)
    this.reserves = new Reserves(this, options.trust)
    this.service = new Service(this)
  }

  /** Assets that can be transacted. Needs no key. */
  assets(): Promise<Asset[]> {
    return this.request('GET', '/assets', undefined, { public: true })
  }

  supportedAssets(): Promise<Asset[]> {
    return this.request('GET', '/dac/v1/supported-assets')
  }

  /** At most one wallet per asset and sub-account. Throws `WALLET_EXISTS`. */
  async createWallet(asset: string): Promise<Wallet> {
    const wallet = await this.request<Wallet>('POST', '/dac/v1/create-wallet', { asset })
    await this.#checks?.wallets(asset, [wallet])
    return wallet
  }

  async wallets(asset: string): Promise<WalletBalance[]> {
    const wallets = await this.request<WalletBalance[]>('GET', `/dac/v1/wallets${query({ asset })}`)
    await this.#checks?.wallets(asset, wallets)
    return wallets
  }

  /**
   * Balances of every wallet of the sub-account, by the name of their asset; go on with `after:
   * next`.
   */
  balances(page: CursorQuery = {}): Promise<BalancePage> {
    return this.request('GET', `/dac/v1/balances${query(page)}`)
  }

  /**
   * Coins that are in no balance and are never spent, such as those with CashTokens. Newest first;
   * go on with `after: next`.
   */
  coinsAside(filter: CoinAsideFilter = {}): Promise<CoinAsidePage> {
    return this.request('GET', `/dac/v1/coins-aside${query(filter)}`)
  }

  /**
   * With `trust`, throws {@link VerificationError} for an address that is not the sub-account's
   * own; so does {@link addresses}.
   */
  async createAddress(asset: string, label?: string): Promise<Address> {
    const address = await this.request<Address>('POST', '/dac/v1/address', { asset, label })
    await this.#checks?.addresses(asset, [address])
    return address
  }

  async addresses(asset: string): Promise<Address[]> {
    const addresses = await this.request<Address[]>('GET', `/dac/v1/addresses${query({ asset })}`)
    await this.#checks?.addresses(asset, addresses)
    return addresses
  }

  /** As {@link addresses}, 100 or `limit` at a time, oldest first; go on with `after: next`. */
  async addressPage(asset: string, page: CursorQuery = {}): Promise<AddressPage> {
    const { after, limit = 100 } = page
    const answer = await this.request<AddressPage>(
      'GET',
      `/dac/v1/addresses${query({ asset, after, limit })}`,
    )
    await this.#checks?.addresses(asset, answer.data)
    return answer
  }

  /**
   * The workspace's keys with the signer nodes' certificates; what verifies addresses without the
   * service.
   */
  keys(): Promise<Keys> {
    return this.request('GET', '/dac/v1/keys')
  }

  validateAddress(asset: string, address: string, addressTag?: string): Promise<AddressValidation> {
    return this.request(
      'POST',
      '/dac/v1/validate-address',
      { asset, address, address_tag: addressTag },
      { repeatable: true },
    )
  }

  /**
   * Creates an outgoing transfer. Give a `sequence_id`: then an answer that was lost is asked for
   * again, and the transfer is made once. Without it nothing is repeated, and an error of status 0
   * or 5xx means *unknown*.
   * @throws IdempotencyMismatch where the `sequence_id` is that of another transfer; so do all
   *   methods that take {@link OnceOptions}
   */
  async createTransaction(
    transaction: NewTransaction,
    options: OnceOptions & Pick<RequestOptions, 'onSigned'> = {},
  ): Promise<Transaction> {
    const body = {
      source_type: 'INTERNAL',
      destination_type: 'EXTERNAL',
      ...decimals(transaction, 'amount', 'fee_rate'),
    }
    return this.request('POST', '/dac/v1/transaction', body, {
      repeatable: isGiven(transaction.sequence_id),
      ...options,
    })
  }

  /** With `trust`, a failed one carries `failure_proof`; so do those of {@link transactions}. */
  async transaction(id: string): Promise<Transaction> {
    const transaction = await this.request<Transaction>(
      'GET',
      `/dac/v1/transaction/${encodeURIComponent(id)}`,
    )
    return this.#checks?.proven(transaction, this.apiKey, id) ?? transaction
  }

  /** Newest first. */
  async transactions(filter: TransactionFilter = {}): Promise<TransactionPage> {
    const page = await this.request<TransactionPage>('GET', `/dac/v1/transactions${query(filter)}`)
    const checks = this.#checks
    return checks
      ? {
          ...page,
          data: await Promise.all(page.data.map((each) => checks.proven(each, this.apiKey))),
        }
      : page
  }

  /** Each of them, newest first, over as many pages as there are. */
  eachTransaction(filter: Omit<TransactionFilter, 'page'> = {}): AsyncGenerator<Transaction> {
    return paginate((page) => this.transactions({ ...filter, ...page }), filter.limit)
  }

  /**
   * Whether the pinned signer nodes prove that a failed transaction was not paid and never will be.
   * Unproven is not paid: `reason` says why, `signed` what to look up on the chain. Pure: asks
   * nobody.
   *
   * @param own what the caller knows of it by himself: its nonce, the id of `onSigned`, or his
   *   rule that made it
   * @throws TypeError without `trust`
   */
  async verifyFailed(transaction: Transaction, own: OwnRequest): Promise<FailureProof> {
    if (!this.#checks) throw new TypeError('verifyFailed requires the option trust')
    return this.#checks.failure(transaction, own, this.apiKey)
  }

  async gasTanks(): Promise<GasTank[]> {
    const tanks = await this.request<GasTank[]>('GET', '/dac/v1/gas-tanks')
    await this.#checks?.tanks(tanks)
    return tanks
  }

  /** Every movement of the workspace's tank on a network, newest first. */
  gasTankEntries(network: string, page: PageQuery = {}): Promise<Page<GasTankEntry>> {
    return this.request(
      'GET',
      `/dac/v1/gas-tanks/${encodeURIComponent(network)}/entries${query(page)}`,
    )
  }

  /**
   * Pays more for a waiting transfer, with a fee rate or level of its own. Throws `NOT_REPLACEABLE`
   * where the chain has no way to.
   */
  async speedUp(id: string, options: SpeedUp = {}): Promise<Transaction> {
    return this.request(
      'POST',
      `/dac/v1/transaction/${encodeURIComponent(id)}/speed-up`,
      decimals(options, 'fee_rate'),
    )
  }

  /**
   * Takes a transfer back: at no cost before it is signed, by a competing payment to yourself after
   * that. Twice is once.
   */
  cancel(id: string): Promise<Transaction> {
    return this.request(
      'POST',
      `/dac/v1/transaction/${encodeURIComponent(id)}/cancel`,
      {},
      { repeatable: true },
    )
  }

  networkFeeRates(asset: string): Promise<FeeRates> {
    return this.request('GET', `/dac/v1/network-fee-rates/${encodeURIComponent(asset)}`)
  }

  /** Without an amount a UTXO estimate is that of a typical transfer. */
  async estimateFee(
    asset: string,
    feeRate: Decimal,
    options: { amount?: Decimal; destination_address?: string } = {},
  ): Promise<FeeEstimate> {
    const body = decimals({ asset, fee_rate: feeRate, ...options }, 'fee_rate', 'amount')
    return this.request('POST', '/dac/v1/estimate-fee', body, { repeatable: true })
  }

  /** In USD. Every asset that has a price where none is named. */
  prices(assets?: readonly string[]): Promise<Price[]> {
    return this.request('GET', `/dac/v1/prices${query({ assets: assets?.join(',') })}`)
  }

  prepaidFee(): Promise<PrepaidFee> {
    return this.request('POST', '/dac/v1/prepaid-fee', {}, { repeatable: true })
  }

  prepaidFeeEntries(page: PageQuery = {}): Promise<Page<PrepaidEntry>> {
    return this.request('GET', `/dac/v1/prepaid-fee/entries${query(page)}`)
  }

  /** Throws `NOT_FOUND` where screening is not set up. */
  amlSettings(): Promise<AmlSettings> {
    return this.request('GET', '/dac/v1/aml')
  }

  saveAmlSettings(settings: NewAmlSettings): Promise<AmlSettings> {
    return this.request('POST', '/dac/v1/aml', settings, { repeatable: true })
  }

  frozenAddresses(asset?: string): Promise<FrozenAddress[]> {
    return this.request('GET', `/dac/v1/frozen-addresses${query({ asset })}`)
  }

  /** Lets what waits for this address proceed, once. Throws `NOT_FROZEN`. */
  unfreezeAddress(asset: string, address: string, addressTag?: string): Promise<UnfrozenAddress> {
    return this.request('POST', '/dac/v1/unfreeze-address', {
      asset,
      address,
      address_tag: addressTag,
    })
  }

  /** Locks TRX for a resource. Give a `sequence_id`, as with transfers. */
  stake(stake: NewStake, options: OnceOptions = {}): Promise<Stake> {
    return this.#stake('stake', stake, options)
  }

  /** Frees the resource at once; the TRX cools down for about 14 days. */
  unstake(stake: NewStake, options: OnceOptions = {}): Promise<Stake> {
    return this.#stake('unstake', stake, options)
  }

  /** Brings TRX back whose cooldown is over. */
  releaseUnstaked(address: string, sequenceId?: string, options: OnceOptions = {}): Promise<Stake> {
    const body = { asset: 'TRX', address, sequence_id: sequenceId }
    return this.request('POST', '/dav/v1/release-unstaked', body, {
      repeatable: sequenceId !== undefined,
      ...options,
    })
  }

  staking(address: string): Promise<Staking> {
    return this.request('GET', `/dav/v1/staking${query({ address })}`)
  }

  /** A standing rule: what comes in is forwarded, within a daily cap and until it expires. */
  async createForwardRule(rule: NewForwardRule): Promise<ForwardRule> {
    return this.request(
      'POST',
      '/dac/v1/auto-forwarding',
      decimals(rule, 'min_amount', 'daily_cap'),
    )
  }

  forwardRules(filter: ForwardRuleFilter = {}): Promise<Page<ForwardRule>> {
    return this.request('GET', `/dac/v1/auto-forwarding${query(filter)}`)
  }

  forwardRule(id: string): Promise<ForwardRule> {
    return this.request('GET', `/dac/v1/auto-forwarding/${encodeURIComponent(id)}`)
  }

  pauseForwardRule(id: string): Promise<ForwardRule> {
    return this.request(
      'POST',
      `/dac/v1/auto-forwarding/${encodeURIComponent(id)}/pause`,
      undefined,
      { repeatable: true },
    )
  }

  resumeForwardRule(id: string): Promise<ForwardRule> {
    return this.request(
      'POST',
      `/dac/v1/auto-forwarding/${encodeURIComponent(id)}/resume`,
      undefined,
      { repeatable: true },
    )
  }

  /** For good: the signer nodes hold the end of a rule. */
  deleteForwardRule(id: string): Promise<ForwardRule> {
    return this.request(
      'DELETE',
      `/dac/v1/auto-forwarding/${encodeURIComponent(id)}`,
      {},
      { repeatable: true },
    )
  }

  /** The transfers that a rule has made, newest first. */
  forwards(id: string, page: PageQuery = {}): Promise<TransactionPage> {
    return this.request(
      'GET',
      `/dac/v1/auto-forwarding/${encodeURIComponent(id)}/history${query(page)}`,
    )
  }

  async #stake(action: 'stake' | 'unstake', stake: NewStake, options: OnceOptions): Promise<Stake> {
    const body = { asset: 'TRX', ...decimals(stake, 'amount') }
    return this.request('POST', `/dav/v1/${action}`, body, {
      repeatable: isGiven(stake.sequence_id),
      ...options,
    })
  }

  /**
   * Polls until the transaction is `confirmed` or `failed` and answers it: look at its `status`.
   * @throws CustodyError `TIMEOUT`; the transfer goes on all the same
   */
  async waitForTransaction(id: string, options: WaitOptions = {}): Promise<Transaction> {
    const deadline = this.#transport.now() + (options.timeout_ms ?? 3_600_000)
    const interval = options.interval_ms ?? 2000
    for (;;) {
      const transaction = await this.transaction(id)
      if (transaction.status !== 'pending') return transaction
      if (this.#transport.now() + interval > deadline) {
        throw new CustodyError(`transaction ${id} is still ${transaction.sub_status}`, {
          status: 0,
          code: 'TIMEOUT',
        })
      }
      options.signal?.throwIfAborted()
      await this.#transport.sleep(interval)
    }
  }

  /**
   * Any request of the API. `body` may hold {@link JsonNumber} values, which are sent with exactly
   * their digits. In the answer amounts and rates are decimal strings.
   *
   * @param path with its query
   * @throws CustodyError; what `signal` gives as its reason, where it aborts
   */
  request<T = unknown>(
    method: string,
    path: string,
    body?: unknown,
    options: RequestOptions = {},
  ): Promise<T> {
    return this.#transport.request(method, path, body, options)
  }

  /**
   * Server-sent events, over as many connections as it takes; goes on after the last one that was
   * seen. Ends with the signal.
   */
  stream<T = unknown>(path: string, options: StreamOptions = {}): AsyncGenerator<StreamEvent<T>> {
    return this.#transport.stream(path, options)
  }
}
