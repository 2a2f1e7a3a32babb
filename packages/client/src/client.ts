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
import { Approvals } from './approvals.ts'
import { Policy } from './policy.ts'
import { decimals, isGiven, query } from './wire.ts'

/** Options of a {@link CustodyClient}. */
export interface CustodyClientOptions extends TransportOptions {
  /**
   * Trust object from the operator. If it is set, the client derives addresses locally from the
   * keys that the pinned signer nodes certified, and rejects all others.
   */
  trust?: Trust
}

/** Options of {@link CustodyClient.waitForTransaction}; times in milliseconds. */
export interface WaitOptions {
  timeout_ms?: number
  interval_ms?: number
  signal?: AbortSignal
}

/**
 * Client of the custody API. Every request, including each retry, is signed with its own token.
 *
 * Methods throw {@link CustodyError} if a request fails. Amounts are decimal strings in whole units
 * of the asset. Lists of type `Page` are numbered pages (`page`, `limit`); lists with `next`
 * continue with `after: next`.
 */
export class CustodyClient implements RequestSender {
  readonly baseUrl: string
  readonly apiKey: string
  readonly invoices: Invoices
  readonly trading: Trading = new Trading(this)
  readonly events: Events = new Events(this)
  readonly webhooks: Webhooks = new Webhooks(this)
  readonly checkout: CheckoutFace = new CheckoutFace(this)
  readonly reserves: Reserves
  readonly approvals: Approvals
  readonly policy: Policy
  readonly service: Service = new Service(this)
  readonly #transport: Transport
  readonly #checks: Checks | null

  /**
   * @throws AuthError if the private key cannot sign requests; VerificationError `TRUST` if the
   *   trust object is invalid; TypeError if `baseUrl` is not a plain origin
   */
  constructor(options: CustodyClientOptions) {
    this.#transport = new Transport(options, (id) => this.#checks?.signed(id))
    this.baseUrl = this.#transport.baseUrl
    this.apiKey = this.#transport.apiKey
    this.#checks =
      options.trust === undefined ? null : new Checks(readTrust(options.trust), () => this.keys())
    this.invoices = new Invoices(this, this.#checks)
    this.reserves = new Reserves(this, options.trust)
    this.approvals = new Approvals(this, options.trust)
    this.policy = new Policy(this, options.trust)
  }

  /** Lists the assets that can be transacted. Needs no API key. */
  assets(): Promise<Asset[]> {
    return this.request('GET', '/assets', undefined, { public: true })
  }

  /** Lists the same assets as {@link assets}, in a signed request. */
  supportedAssets(): Promise<Asset[]> {
    return this.request('GET', '/dac/v1/supported-assets')
  }

  /**
   * Creates a wallet. A sub-account has at most one wallet per asset.
   * @param asset ticker
   * @throws CustodyError `WALLET_EXISTS`; with `trust`, VerificationError if the omnibus address is
   *   not the sub-account's own
   */
  async createWallet(asset: string): Promise<Wallet> {
    const wallet = await this.request<Wallet>('POST', '/dac/v1/create-wallet', { asset })
    await this.#checks?.wallets(asset, [wallet])
    return wallet
  }

  /**
   * Lists the sub-account's wallet of an asset with its balances; the list is empty if it has none.
   * @param asset ticker
   * @throws CustodyError; with `trust`, {@link VerificationError} if the omnibus address is not the
   *   sub-account's own
   */
  async wallets(asset: string): Promise<WalletBalance[]> {
    const wallets = await this.request<WalletBalance[]>('GET', `/dac/v1/wallets${query({ asset })}`)
    await this.#checks?.wallets(asset, wallets)
    return wallets
  }

  /**
   * Lists the balances of every wallet of the sub-account, ordered by asset name. Pass the result's
   * `next` as `after` to continue.
   */
  balances(page: CursorQuery = {}): Promise<BalancePage> {
    return this.request('GET', `/dac/v1/balances${query(page)}`)
  }

  /**
   * Lists coins that are in no balance and are never spent, such as those with CashTokens. Newest
   * first; pass the result's `next` as `after` to continue.
   */
  coinsAside(filter: CoinAsideFilter = {}): Promise<CoinAsidePage> {
    return this.request('GET', `/dac/v1/coins-aside${query(filter)}`)
  }

  /**
   * Creates a deposit address.
   * @param asset ticker
   * @param label text of your own, which is stored with the address
   * @throws CustodyError; with `trust`, {@link VerificationError} if the address is not the
   *   sub-account's own
   */
  async createAddress(asset: string, label?: string): Promise<Address> {
    const address = await this.request<Address>('POST', '/dac/v1/address', { asset, label })
    await this.#checks?.addresses(asset, [address])
    return address
  }

  /**
   * Lists the deposit addresses of an asset, the omnibus address first, at most 10,000. Use {@link
   * addressPage} for more.
   * @param asset ticker
   * @throws CustodyError; with `trust`, {@link VerificationError} for an address that is not the
   *   sub-account's own
   */
  async addresses(asset: string): Promise<Address[]> {
    const addresses = await this.request<Address[]>('GET', `/dac/v1/addresses${query({ asset })}`)
    await this.#checks?.addresses(asset, addresses)
    return addresses
  }

  /**
   * Lists deposit addresses, oldest first, 100 or `limit` at a time. Pass the result's `next` as
   * `after` to continue.
   * @param asset ticker
   * @throws CustodyError; with `trust`, {@link VerificationError} for an address that is not the
   *   sub-account's own
   */
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
   * Returns the workspace's public keys with the signer nodes' certificates, with which addresses
   * can be verified without the service.
   */
  keys(): Promise<Keys> {
    return this.request('GET', '/dac/v1/keys')
  }

  /**
   * Checks whether an address, with its tag, can be paid on the asset's network; `reason` says why
   * not.
   * @param asset ticker
   * @param addressTag destination tag or memo, if the address has one
   */
  validateAddress(asset: string, address: string, addressTag?: string): Promise<AddressValidation> {
    return this.request(
      'POST',
      '/dac/v1/validate-address',
      { asset, address, address_tag: addressTag },
      { repeatable: true },
    )
  }

  /**
   * Creates an outgoing transfer. Set `sequence_id`: then the client repeats a request whose
   * response was lost, and the transfer is created only once. Without it nothing is repeated, and
   * after an error of status 0 or 5xx the outcome is *unknown*.
   * @param transaction transfer; `amount` in whole units of the asset
   * @param options.onSigned is called with the request's nonce and the transaction's id before the
   *   request is sent
   * @returns the created transaction, or that of an earlier request with the same `sequence_id` and
   *   payload (see {@link isReplayed})
   * @throws IdempotencyMismatch if the `sequence_id` was used for another transfer (all methods
   *   that accept {@link OnceOptions} throw it); CustodyError for other failures
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

  /**
   * Reads a transaction. With `trust`, a failed one has `failure_proof`, also in the results of
   * {@link transactions}.
   * @param id UUID of the transaction
   * @throws CustodyError `NOT_FOUND`
   */
  async transaction(id: string): Promise<Transaction> {
    const transaction = await this.request<Transaction>(
      'GET',
      `/dac/v1/transaction/${encodeURIComponent(id)}`,
    )
    return this.#checks?.proven(transaction, this.apiKey, id) ?? transaction
  }

  /** Lists transactions, newest first. */
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

  /** Iterates over all matching transactions, newest first, and reads pages as needed. */
  eachTransaction(filter: Omit<TransactionFilter, 'page'> = {}): AsyncGenerator<Transaction> {
    return paginate((page) => this.transactions({ ...filter, ...page }), filter.limit)
  }

  /**
   * Checks whether the pinned signer nodes prove that a failed transaction was not paid and never
   * will be. If `proven` is false, it may have been paid: `reason` says why, and `signed` lists the
   * hashes to look up on the chain. Works offline.
   *
   * @param own what the caller knows of the transfer independently: the nonce of their request, the
   *   id that `onSigned` reported, or their forward rule that created it
   * @throws TypeError without `trust`
   */
  async verifyFailed(transaction: Transaction, own: OwnRequest): Promise<FailureProof> {
    if (!this.#checks) throw new TypeError('verifyFailed requires the option trust')
    return this.#checks.failure(transaction, own, this.apiKey)
  }

  /**
   * Lists the workspace's gas tanks: one per network, with its balance of native coin and its
   * address.
   * @throws CustodyError; with `trust`, {@link VerificationError} if an address is not that of the
   *   workspace's tank
   */
  async gasTanks(): Promise<GasTank[]> {
    const tanks = await this.request<GasTank[]>('GET', '/dac/v1/gas-tanks')
    await this.#checks?.tanks(tanks)
    return tanks
  }

  /** Lists the movements of the workspace's gas tank on a network (its code), newest first. */
  gasTankEntries(network: string, page: PageQuery = {}): Promise<Page<GasTankEntry>> {
    return this.request(
      'GET',
      `/dac/v1/gas-tanks/${encodeURIComponent(network)}/entries${query(page)}`,
    )
  }

  /**
   * Raises the fee of a transfer that waits on the chain, to a given fee rate or level.
   * @param id UUID of the transaction
   * @param options.fee_rate in the asset's fee rate unit
   * @throws CustodyError `NOT_REPLACEABLE` if the chain does not support it
   */
  async speedUp(id: string, options: SpeedUp = {}): Promise<Transaction> {
    return this.request(
      'POST',
      `/dac/v1/transaction/${encodeURIComponent(id)}/speed-up`,
      decimals(options, 'fee_rate'),
    )
  }

  /**
   * Cancels a transfer. Before it is signed this is free; afterwards a competing payment to the own
   * wallet replaces it. Cancelling twice has no further effect.
   * @param id UUID of the transaction
   */
  cancel(id: string): Promise<Transaction> {
    return this.request(
      'POST',
      `/dac/v1/transaction/${encodeURIComponent(id)}/cancel`,
      {},
      { repeatable: true },
    )
  }

  /**
   * Returns the current network fee rates of three levels, in the unit `fee_rate_unit`.
   * @param asset ticker
   * @throws CustodyError 503 if no estimate is available
   */
  networkFeeRates(asset: string): Promise<FeeRates> {
    return this.request('GET', `/dac/v1/network-fee-rates/${encodeURIComponent(asset)}`)
  }

  /**
   * Estimates the network fee of a transfer. Without an amount, a UTXO estimate is that of a
   * typical transfer.
   * @param asset ticker
   * @param feeRate in the asset's fee rate unit
   * @param options.amount in whole units of the asset
   */
  async estimateFee(
    asset: string,
    feeRate: Decimal,
    options: { amount?: Decimal; destination_address?: string } = {},
  ): Promise<FeeEstimate> {
    const body = decimals({ asset, fee_rate: feeRate, ...options }, 'fee_rate', 'amount')
    return this.request('POST', '/dac/v1/estimate-fee', body, { repeatable: true })
  }

  /**
   * Returns prices in USD.
   * @param assets tickers; by default every asset that has a price
   */
  prices(assets?: readonly string[]): Promise<Price[]> {
    return this.request('GET', `/dac/v1/prices${query({ assets: assets?.join(',') })}`)
  }

  /** Returns balance, tier and fees of the workspace's prepaid account, in USD. */
  prepaidFee(): Promise<PrepaidFee> {
    return this.request('POST', '/dac/v1/prepaid-fee', {}, { repeatable: true })
  }

  /** Lists the movements of the prepaid account, newest first; amounts in USD. */
  prepaidFeeEntries(page: PageQuery = {}): Promise<Page<PrepaidEntry>> {
    return this.request('GET', `/dac/v1/prepaid-fee/entries${query(page)}`)
  }

  /**
   * Reads the settings of address screening.
   * @throws CustodyError `NOT_FOUND` if screening is not configured
   */
  amlSettings(): Promise<AmlSettings> {
    return this.request('GET', '/dac/v1/aml')
  }

  /**
   * Saves provider, token and held risk levels of address screening. The service tests the token
   * first.
   */
  saveAmlSettings(settings: NewAmlSettings): Promise<AmlSettings> {
    return this.request('POST', '/dac/v1/aml', settings, { repeatable: true })
  }

  /** Lists the addresses that screening has frozen, with the reason, by default of all assets. */
  frozenAddresses(asset?: string): Promise<FrozenAddress[]> {
    return this.request('GET', `/dac/v1/frozen-addresses${query({ asset })}`)
  }

  /**
   * Releases the payments that are frozen for an address, once.
   * @param asset ticker
   * @param addressTag destination tag or memo, if the address has one
   * @throws CustodyError `NOT_FROZEN`
   */
  unfreezeAddress(asset: string, address: string, addressTag?: string): Promise<UnfrozenAddress> {
    return this.request('POST', '/dac/v1/unfreeze-address', {
      asset,
      address,
      address_tag: addressTag,
    })
  }

  /**
   * Locks TRX for a resource. Set `sequence_id`, as for transfers.
   * @param stake `amount` in TRX
   */
  stake(stake: NewStake, options: OnceOptions = {}): Promise<Stake> {
    return this.#stake('stake', stake, options)
  }

  /**
   * Unlocks staked TRX. The resource is released immediately; the TRX can be withdrawn after a
   * cooldown of about 14 days.
   * @param stake `amount` in TRX
   */
  unstake(stake: NewStake, options: OnceOptions = {}): Promise<Stake> {
    return this.#stake('unstake', stake, options)
  }

  /**
   * Withdraws unstaked TRX whose cooldown has ended.
   * @param address that unstaked
   * @param sequenceId makes the request safe to repeat
   */
  releaseUnstaked(address: string, sequenceId?: string, options: OnceOptions = {}): Promise<Stake> {
    const body = { asset: 'TRX', address, sequence_id: sequenceId }
    return this.request('POST', '/dav/v1/release-unstaked', body, {
      repeatable: sequenceId !== undefined,
      ...options,
    })
  }

  /**
   * Returns the TRX that an address has staked, that cool down, and that can be withdrawn.
   * @param address one of the sub-account's own addresses
   */
  staking(address: string): Promise<Staking> {
    return this.request('GET', `/dav/v1/staking${query({ address })}`)
  }

  /**
   * Creates a standing rule that forwards incoming payments, within a daily cap and until it
   * expires.
   * @param rule `min_amount` and `daily_cap` in whole units of the asset
   */
  async createForwardRule(rule: NewForwardRule): Promise<ForwardRule> {
    return this.request(
      'POST',
      '/dac/v1/auto-forwarding',
      decimals(rule, 'min_amount', 'daily_cap'),
    )
  }

  /** Lists the forward rules of the sub-account, newest first. */
  forwardRules(filter: ForwardRuleFilter = {}): Promise<Page<ForwardRule>> {
    return this.request('GET', `/dac/v1/auto-forwarding${query(filter)}`)
  }

  /** Reads a forward rule by its UUID, with the amount that waits to be forwarded. */
  forwardRule(id: string): Promise<ForwardRule> {
    return this.request('GET', `/dac/v1/auto-forwarding/${encodeURIComponent(id)}`)
  }

  /** Pauses a forward rule by its UUID. Incoming payments wait until it is resumed. */
  pauseForwardRule(id: string): Promise<ForwardRule> {
    return this.request(
      'POST',
      `/dac/v1/auto-forwarding/${encodeURIComponent(id)}/pause`,
      undefined,
      { repeatable: true },
    )
  }

  /**
   * Resumes a paused forward rule. Payments that arrived during the pause are forwarded as well.
   * @param id UUID of the rule
   */
  resumeForwardRule(id: string): Promise<ForwardRule> {
    return this.request(
      'POST',
      `/dac/v1/auto-forwarding/${encodeURIComponent(id)}/resume`,
      undefined,
      { repeatable: true },
    )
  }

  /**
   * Deletes a forward rule permanently. The signer nodes record its end, so it cannot be resumed.
   * @param id UUID of the rule
   */
  deleteForwardRule(id: string): Promise<ForwardRule> {
    return this.request(
      'DELETE',
      `/dac/v1/auto-forwarding/${encodeURIComponent(id)}`,
      {},
      { repeatable: true },
    )
  }

  /** Lists the transfers that a rule, given its UUID, has created, newest first. */
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
   * Polls until the transaction is `confirmed` or `failed`, and returns it; check its `status`.
   * @param id UUID of the transaction
   * @param options.timeout_ms maximum wait in milliseconds, one hour by default
   * @param options.interval_ms time between two requests in milliseconds, 2000 by default
   * @throws CustodyError `TIMEOUT`, although the transfer continues; the reason of `signal` if it
   *   aborts
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
   * Sends any request of the API. `body` may contain {@link JsonNumber} values, which are sent with
   * exactly their digits. Amounts and rates in the response are decimal strings.
   *
   * @param method HTTP method
   * @param path with its query
   * @throws CustodyError; the reason of `signal` if it aborts
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
   * Reads server-sent events. Reconnects automatically and continues after the last received event.
   * Ends when the signal aborts.
   * @param path with its query
   * @throws CustodyError if the service rejects the request
   */
  stream<T = unknown>(path: string, options: StreamOptions = {}): AsyncGenerator<StreamEvent<T>> {
    return this.#transport.stream(path, options)
  }
}
