import { requestHeaders, requestSigner, stringifyJson, transactionId, type PrivateKey, type RequestSigner } from '@custody/request-auth/web'
import { CustodyError } from './errors.ts'
import { Invoices } from './invoices.ts'
import { Trading } from './trading.ts'
import { backoff, rateLimitWait, type RetryOptions } from './retry.ts'
import { Checks } from './trust/checks.ts'
import type { Keys } from './trust/keys.ts'
import { readTrust, type Trust } from './trust/trust.ts'
import type { FailureProof, OwnRequest } from './trust/proof.ts'
import type {
  Address, AddressValidation, AmlSettings, Asset, Decimal, FeeEstimate, FeeRates, ForwardRule, FrozenAddress, GasTank,
  GasTankEntry, NewAmlSettings, NewForwardRule, NewStake, NewTransaction, Page, PageQuery, PrepaidEntry, PrepaidFee, Price,
  SpeedUp, Stake, Staking, Transaction, TransactionFilter, TransactionPage, UnfrozenAddress, Wallet, WalletBalance,
} from './types.ts'
import { number, query, read, refusal, target } from './wire.ts'

export interface CustodyClientOptions {
  /** E.g. `https://custody.example.com`. */
  baseUrl: string
  /** UUID of the API user. */
  apiKey: string
  /** RSA, at least 4096 bits: PEM, Node's KeyObject, or a CryptoKey, which need not be extractable. It signs here and is never sent. */
  privateKey: PrivateKey
  /** Whom to believe, from the operator: addresses are then derived here from what these nodes certified, and others refused. */
  trust?: Trust
  fetch?: typeof globalThis.fetch
  /** Per attempt. 30 s by default. */
  timeout_ms?: number
  /** Default: 5 attempts, 1 s doubled up to 60 s. `attemptsMax: 1` turns retries off. */
  retry?: Partial<RetryOptions>
  /** On 429 wait until the window ends and go on (default), or throw. */
  waitOnRateLimit?: boolean
  /** Clock, waiting and chance, for tests. */
  now?: () => number
  sleep?: (ms: number) => Promise<void>
  random?: () => number
}

export interface RequestOptions {
  /** Repeating it cannot do it twice. Default: GET only. */
  repeatable?: boolean
  /** Sent without a signature. */
  public?: boolean
  /** Told of each signed request before it leaves: `id` is what follows for the transaction it makes. Keep it to verify a failure later. */
  onSigned?: (request: { nonce: string; id: string }) => void
}

export interface WaitOptions { timeout_ms?: number; interval_ms?: number }

const REPEAT_STATUS = new Set([500, 502, 503, 504])
/** A window lasts a minute: whoever is refused this often in a row shares the key with too many. */
const RATE_LIMIT_WAITS_MAX = 5

/** Client of the custody API. Each request carries a token of its own; retries too. */
export class CustodyClient {
  readonly baseUrl: string
  readonly apiKey: string
  readonly invoices: Invoices
  readonly trading: Trading
  readonly #sign: RequestSigner
  readonly #fetch: typeof globalThis.fetch
  readonly #timeout_ms: number
  readonly #retry: RetryOptions
  readonly #waitOnRateLimit: boolean
  readonly #now: () => number
  readonly #sleep: (ms: number) => Promise<void>
  readonly #random: () => number
  readonly #checks: Checks | null

  /** @throws AuthError for a private key that signs no requests; VerificationError `TRUST` where the trust object is not one */
  constructor(options: CustodyClientOptions) {
    const url = new URL(options.baseUrl)
    if (url.search !== '' || url.hash !== '' || url.username !== '') {
      throw new TypeError('baseUrl must be a plain origin, with a path prefix at most')
    }
    this.baseUrl = `${url.origin}${url.pathname.replace(/\/+$/, '')}`
    this.apiKey = options.apiKey
    this.#sign = requestSigner(options.privateKey)
    // A browser's own fetch refuses to be called as anyone's method.
    const fetch = options.fetch ?? globalThis.fetch
    this.#fetch = (input, init) => fetch(input, init)
    this.#timeout_ms = options.timeout_ms ?? 30_000
    this.#retry = { attemptsMax: 5, backoff_ms: 1000, backoffMax_ms: 60_000, ...options.retry }
    this.#waitOnRateLimit = options.waitOnRateLimit ?? true
    this.#now = options.now ?? Date.now
    this.#sleep = options.sleep ?? ((ms) => new Promise((resolve) => { setTimeout(resolve, ms) }))
    this.#random = options.random ?? Math.random
    this.#checks = options.trust === undefined ? null : new Checks(readTrust(options.trust), () => this.keys())
    this.invoices = new Invoices(this, this.#checks)
    this.trading = new Trading(this)
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

  /** With `trust`, throws {@link VerificationError} for an address that is not the sub-account's own; so does {@link addresses}. */
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

  /** The workspace's keys with the signer nodes' certificates; what verifies addresses without the service. */
  keys(): Promise<Keys> {
    return this.request('GET', '/dac/v1/keys')
  }

  validateAddress(asset: string, address: string, addressTag?: string): Promise<AddressValidation> {
    return this.request('POST', '/dac/v1/validate-address', { asset, address, address_tag: addressTag }, { repeatable: true })
  }

  /**
   * Creates an outgoing transfer. Give a `sequence_id`: then an answer that was lost is asked for again, and
   * the transfer is made once. Without it nothing is repeated, and an error of status 0 or 5xx means *unknown*.
   */
  async createTransaction(transaction: NewTransaction, options: Pick<RequestOptions, 'onSigned'> = {}): Promise<Transaction> {
    const { amount, fee_rate: feeRate, ...rest } = transaction
    const body = {
      source_type: 'INTERNAL', destination_type: 'EXTERNAL', ...rest,
      amount: number('amount', amount), ...(feeRate === undefined ? {} : { fee_rate: number('fee_rate', feeRate) }),
    }
    return this.request('POST', '/dac/v1/transaction', body, { repeatable: transaction.sequence_id !== undefined, ...options })
  }

  /** With `trust`, a failed one carries `failure_proof`; so do those of {@link transactions}. */
  async transaction(id: string): Promise<Transaction> {
    const transaction = await this.request<Transaction>('GET', `/dac/v1/transaction/${encodeURIComponent(id)}`)
    return this.#checks?.proven(transaction, this.apiKey, id) ?? transaction
  }

  /** Newest first. */
  async transactions(filter: TransactionFilter = {}): Promise<TransactionPage> {
    const page = await this.request<TransactionPage>('GET', `/dac/v1/transactions${query(filter)}`)
    const checks = this.#checks
    return checks ? { ...page, data: await Promise.all(page.data.map((each) => checks.proven(each, this.apiKey))) } : page
  }

  /**
   * Whether the pinned signer nodes prove that a failed transaction was not paid and never will be. Unproven is not
   * paid: `reason` says why, `signed` what to look up on the chain. Pure: asks nobody.
   *
   * @param own what the caller knows of it by himself: its nonce, the id of `onSigned`, or his rule that made it
   * @throws TypeError without `trust`
   */
  async verifyFailed(transaction: Transaction, own: OwnRequest): Promise<FailureProof> {
    if (!this.#checks) throw new TypeError('verifyFailed needs the option trust')
    return this.#checks.failure(transaction, own, this.apiKey)
  }

  async gasTanks(): Promise<GasTank[]> {
    const tanks = await this.request<GasTank[]>('GET', '/dac/v1/gas-tanks')
    await this.#checks?.tanks(tanks)
    return tanks
  }

  /** Every movement of the workspace's tank on a network, newest first. */
  gasTankEntries(network: string, page: PageQuery = {}): Promise<Page<GasTankEntry>> {
    return this.request('GET', `/dac/v1/gas-tanks/${encodeURIComponent(network)}/entries${query(page)}`)
  }

  /** Pays more for a waiting transfer, with a fee rate or level of its own. Throws `NOT_REPLACEABLE` where the chain has no way to. */
  async speedUp(id: string, options: SpeedUp = {}): Promise<Transaction> {
    const { fee_rate: feeRate, ...rest } = options
    return this.request('POST', `/dac/v1/transaction/${encodeURIComponent(id)}/speed-up`, {
      ...rest, ...(feeRate === undefined ? {} : { fee_rate: number('fee_rate', feeRate) })
    })
  }

  /** Takes a transfer back: at no cost before it is signed, by a competing payment to yourself after that. Twice is once. */
  cancel(id: string): Promise<Transaction> {
    return this.request('POST', `/dac/v1/transaction/${encodeURIComponent(id)}/cancel`, {}, { repeatable: true })
  }

  networkFeeRates(asset: string): Promise<FeeRates> {
    return this.request('GET', `/dac/v1/network-fee-rates/${encodeURIComponent(asset)}`)
  }

  /** Without an amount a UTXO estimate is that of a typical transfer. */
  async estimateFee(
    asset: string, feeRate: Decimal, options: { amount?: Decimal; destination_address?: string } = {}
  ): Promise<FeeEstimate> {
    const { amount, ...rest } = options
    return this.request(
      'POST', '/dac/v1/estimate-fee',
      { asset, fee_rate: number('fee_rate', feeRate), ...rest, ...(amount === undefined ? {} : { amount: number('amount', amount) }) },
      { repeatable: true }
    )
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
    return this.request('POST', '/dac/v1/unfreeze-address', { asset, address, address_tag: addressTag })
  }

  /** Locks TRX for a resource. Give a `sequence_id`, as with transfers. */
  stake(stake: NewStake): Promise<Stake> {
    return this.#stake('stake', stake)
  }

  /** Frees the resource at once; the TRX cools down for about 14 days. */
  unstake(stake: NewStake): Promise<Stake> {
    return this.#stake('unstake', stake)
  }

  /** Brings TRX back whose cooldown is over. */
  releaseUnstaked(address: string, sequenceId?: string): Promise<Stake> {
    return this.request(
      'POST', '/dav/v1/release-unstaked', { asset: 'TRX', address, sequence_id: sequenceId }, { repeatable: sequenceId !== undefined }
    )
  }

  staking(address: string): Promise<Staking> {
    return this.request('GET', `/dav/v1/staking${query({ address })}`)
  }

  /** A standing rule: what comes in is forwarded, within a daily cap and until it expires. */
  async createForwardRule(rule: NewForwardRule): Promise<ForwardRule> {
    return this.request('POST', '/dac/v1/auto-forwarding', {
      ...rule, min_amount: number('min_amount', rule.min_amount), daily_cap: number('daily_cap', rule.daily_cap),
    })
  }

  forwardRules(filter: PageQuery & { asset?: string; status?: string } = {}): Promise<Page<ForwardRule>> {
    return this.request('GET', `/dac/v1/auto-forwarding${query(filter)}`)
  }

  forwardRule(id: string): Promise<ForwardRule> {
    return this.request('GET', `/dac/v1/auto-forwarding/${encodeURIComponent(id)}`)
  }

  pauseForwardRule(id: string): Promise<ForwardRule> {
    return this.request('POST', `/dac/v1/auto-forwarding/${encodeURIComponent(id)}/pause`, undefined, { repeatable: true })
  }

  resumeForwardRule(id: string): Promise<ForwardRule> {
    return this.request('POST', `/dac/v1/auto-forwarding/${encodeURIComponent(id)}/resume`, undefined, { repeatable: true })
  }

  /** For good: the signer nodes hold the end of a rule. */
  deleteForwardRule(id: string): Promise<ForwardRule> {
    return this.request('DELETE', `/dac/v1/auto-forwarding/${encodeURIComponent(id)}`, {}, { repeatable: true })
  }

  /** The transfers that a rule has made, newest first. */
  forwards(id: string, page: PageQuery = {}): Promise<TransactionPage> {
    return this.request('GET', `/dac/v1/auto-forwarding/${encodeURIComponent(id)}/history${query(page)}`)
  }

  async #stake(action: 'stake' | 'unstake', { amount, ...rest }: NewStake): Promise<Stake> {
    return this.request(
      'POST', `/dav/v1/${action}`, { asset: 'TRX', ...rest, amount: number('amount', amount) },
      { repeatable: rest.sequence_id !== undefined }
    )
  }

  /**
   * Polls until the transaction is `confirmed` or `failed` and answers it: look at its `status`.
   * @throws CustodyError `TIMEOUT`; the transfer goes on all the same
   */
  async waitForTransaction(id: string, options: WaitOptions = {}): Promise<Transaction> {
    const deadline = this.#now() + (options.timeout_ms ?? 3_600_000)
    const interval = options.interval_ms ?? 2000
    for (;;) {
      const transaction = await this.transaction(id)
      if (transaction.status !== 'pending') return transaction
      if (this.#now() + interval > deadline) {
        throw new CustodyError(`transaction ${id} is still ${transaction.sub_status}`, { status: 0, code: 'TIMEOUT' })
      }
      await this.#sleep(interval)
    }
  }

  /**
   * Any request of the API. `body` may hold {@link JsonNumber} values, which are sent with exactly their digits.
   * In the answer amounts and rates are decimal strings.
   *
   * @param path with its query
   * @throws CustodyError
   */
  async request<T = unknown>(method: string, path: string, body?: unknown, options: RequestOptions = {}): Promise<T> {
    const verb = method.toUpperCase()
    const text = body === undefined ? '' : stringifyJson(body)
    const repeatable = options.repeatable ?? verb === 'GET'
    const uri = target(path)
    let waits = 0
    for (let attempt = 1; ;) {
      let failure: CustodyError
      let wait: number | null = null
      try {
        const response = await this.#send(verb, uri, text, options)
        if (response.ok) return await read<T>(response)
        failure = await refusal(response)
        if (response.status === 429 && this.#waitOnRateLimit && waits < RATE_LIMIT_WAITS_MAX) {
          // Refused before anything was done: repeating is safe whatever the method.
          waits++
          wait = rateLimitWait(response.headers, this.#now(), this.#random)
        } else if (REPEAT_STATUS.has(response.status) && repeatable) wait = this.#backoff(attempt++)
      } catch (error) {
        if (!(error instanceof CustodyError) || error.code !== 'NETWORK') throw error
        failure = error
        if (repeatable) wait = this.#backoff(attempt++)
      }
      if (wait === null) throw failure
      await this.#sleep(wait)
    }
  }

  #backoff(attempt: number): number | null {
    return attempt < this.#retry.attemptsMax ? backoff(this.#retry, attempt, this.#random) : null
  }

  async #send(method: string, uri: string, body: string, options: RequestOptions): Promise<Response> {
    // The path below the base is what the service sees and what is signed: a proxy's prefix ends at the proxy.
    const nonce = globalThis.crypto.randomUUID()
    const signed = options.public ? null
      : await this.#sign({ apiKey: this.apiKey, method, uri, body, nonce, now: Math.floor(this.#now() / 1000) })
    const headers = signed ? requestHeaders(signed, this.apiKey) : {}
    if (signed) {
      const id = transactionId(this.apiKey, nonce)
      if (method !== 'GET') this.#checks?.signed(id)
      options.onSigned?.({ nonce, id })
    }
    try {
      const response = await this.#fetch(`${this.baseUrl}${uri}`, {
        method, headers, redirect: 'error', signal: AbortSignal.timeout(this.#timeout_ms), ...(body === '' ? {} : { body }),
      })
      // Read here, so that a connection that breaks in the middle of an answer counts as no answer.
      return new Response(
        await response.arrayBuffer().then((bytes) => (bytes.byteLength > 0 ? bytes : null)),
        { status: response.status, headers: response.headers }
      )
    } catch (error) {
      const reason = error instanceof Error && error.name === 'TimeoutError' ? `no answer within ${this.#timeout_ms} ms` : 'no answer'
      throw new CustodyError(`${method} ${uri.split('?', 1)[0]}: ${reason}`, { status: 0, code: 'NETWORK', cause: error })
    }
  }
}
