import { createPrivateKey, type KeyObject } from 'node:crypto'
import { JsonNumber, parseJson, requestHeaders, signRequest, stringifyJson } from '@custody/request-auth'
import { CustodyError } from './errors.ts'
import { backoff, rateLimitWait, type RetryOptions } from './retry.ts'
import type {
  Address, AddressValidation, AmlSettings, Asset, Decimal, FeeEstimate, FeeRates, ForwardRule, FrozenAddress, GasTank, GasTankEntry, NewAmlSettings, NewForwardRule, NewStake, NewTransaction, Page, PageQuery,
  PrepaidEntry, PrepaidFee, Price, SpeedUp, Stake, Staking, Transaction, TransactionFilter, TransactionPage, UnfrozenAddress, Wallet, WalletBalance,
} from './types.ts'

export interface CustodyClientOptions {
  /** E.g. `https://custody.example.com`. */
  baseUrl: string
  /** UUID of the API user. */
  apiKey: string
  /** RSA, at least 4096 bits: PEM or a KeyObject. It signs here and is never sent. */
  privateKey: string | KeyObject
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
}

export interface WaitOptions { timeout_ms?: number; interval_ms?: number }

const REPEAT_STATUS = new Set([500, 502, 503, 504])
/** A window lasts a minute: whoever is refused this often in a row shares the key with too many. */
const RATE_LIMIT_WAITS_MAX = 5
const DECIMAL = /^(?:0|[1-9]\d*)(?:\.\d+)?$/
/** Numbers that count things; all others are amounts and rates, which come as decimal strings. */
const COUNTS = new Set(['decimals', 'confirmations', 'page', 'limit', 'total', 'status', 'held', 'basis_points'])

/** Client of the custody API. Each request carries a token of its own; retries too. */
export class CustodyClient {
  readonly baseUrl: string
  readonly apiKey: string
  readonly #privateKey: KeyObject
  readonly #fetch: typeof globalThis.fetch
  readonly #timeout_ms: number
  readonly #retry: RetryOptions
  readonly #waitOnRateLimit: boolean
  readonly #now: () => number
  readonly #sleep: (ms: number) => Promise<void>
  readonly #random: () => number

  constructor(options: CustodyClientOptions) {
    const url = new URL(options.baseUrl)
    if (url.search !== '' || url.hash !== '' || url.username !== '') throw new TypeError('baseUrl must be a plain origin, with a path prefix at most')
    this.baseUrl = `${url.origin}${url.pathname.replace(/\/+$/, '')}`
    this.apiKey = options.apiKey
    this.#privateKey = typeof options.privateKey === 'string' ? createPrivateKey(options.privateKey) : options.privateKey
    this.#fetch = options.fetch ?? globalThis.fetch
    this.#timeout_ms = options.timeout_ms ?? 30_000
    this.#retry = { attemptsMax: 5, backoff_ms: 1000, backoffMax_ms: 60_000, ...options.retry }
    this.#waitOnRateLimit = options.waitOnRateLimit ?? true
    this.#now = options.now ?? Date.now
    this.#sleep = options.sleep ?? ((ms) => new Promise((resolve) => { setTimeout(resolve, ms) }))
    this.#random = options.random ?? Math.random
  }

  /** Assets that can be transacted. Needs no key. */
  assets(): Promise<Asset[]> {
    return this.request('GET', '/assets', undefined, { public: true })
  }

  supportedAssets(): Promise<Asset[]> {
    return this.request('GET', '/dac/v1/supported-assets')
  }

  /** At most one wallet per asset and sub-account. Throws `WALLET_EXISTS`. */
  createWallet(asset: string): Promise<Wallet> {
    return this.request('POST', '/dac/v1/create-wallet', { asset })
  }

  wallets(asset: string): Promise<WalletBalance[]> {
    return this.request('GET', `/dac/v1/wallets${query({ asset })}`)
  }

  createAddress(asset: string, label?: string): Promise<Address> {
    return this.request('POST', '/dac/v1/address', { asset, label })
  }

  addresses(asset: string): Promise<Address[]> {
    return this.request('GET', `/dac/v1/addresses${query({ asset })}`)
  }

  validateAddress(asset: string, address: string, addressTag?: string): Promise<AddressValidation> {
    return this.request('POST', '/dac/v1/validate-address', { asset, address, address_tag: addressTag }, { repeatable: true })
  }

  /**
   * Creates an outgoing transfer. Give a `sequence_id`: then an answer that was lost is asked for again, and
   * the transfer is made once. Without it nothing is repeated, and an error of status 0 or 5xx means *unknown*.
   */
  async createTransaction(transaction: NewTransaction): Promise<Transaction> {
    const { amount, fee_rate: feeRate, ...rest } = transaction
    const body = {
      source_type: 'INTERNAL', destination_type: 'EXTERNAL', ...rest,
      amount: number('amount', amount), ...(feeRate === undefined ? {} : { fee_rate: number('fee_rate', feeRate) }),
    }
    return this.request('POST', '/dac/v1/transaction', body, { repeatable: transaction.sequence_id !== undefined })
  }

  transaction(id: string): Promise<Transaction> {
    return this.request('GET', `/dac/v1/transaction/${encodeURIComponent(id)}`)
  }

  /** Newest first. */
  transactions(filter: TransactionFilter = {}): Promise<TransactionPage> {
    return this.request('GET', `/dac/v1/transactions${query(filter)}`)
  }

  gasTanks(): Promise<GasTank[]> {
    return this.request('GET', '/dac/v1/gas-tanks')
  }

  /** Every movement of the workspace's tank on a network, newest first. */
  gasTankEntries(network: string, page: PageQuery = {}): Promise<Page<GasTankEntry>> {
    return this.request('GET', `/dac/v1/gas-tanks/${encodeURIComponent(network)}/entries${query(page)}`)
  }

  /** Pays more for a waiting transfer, with a fee rate or level of its own. Throws `NOT_REPLACEABLE` where the chain has no way to. */
  async speedUp(id: string, options: SpeedUp = {}): Promise<Transaction> {
    const { fee_rate: feeRate, ...rest } = options
    return this.request('POST', `/dac/v1/transaction/${encodeURIComponent(id)}/speed-up`, { ...rest, ...(feeRate === undefined ? {} : { fee_rate: number('fee_rate', feeRate) }) })
  }

  /** Takes a transfer back: at no cost before it is signed, by a competing payment to yourself after that. Twice is once. */
  cancel(id: string): Promise<Transaction> {
    return this.request('POST', `/dac/v1/transaction/${encodeURIComponent(id)}/cancel`, {}, { repeatable: true })
  }

  networkFeeRates(asset: string): Promise<FeeRates> {
    return this.request('GET', `/dac/v1/network-fee-rates/${encodeURIComponent(asset)}`)
  }

  /** Without an amount a UTXO estimate is that of a typical transfer. */
  async estimateFee(asset: string, feeRate: Decimal, options: { amount?: Decimal; destination_address?: string } = {}): Promise<FeeEstimate> {
    const { amount, ...rest } = options
    return this.request('POST', '/dac/v1/estimate-fee', { asset, fee_rate: number('fee_rate', feeRate), ...rest, ...(amount === undefined ? {} : { amount: number('amount', amount) }) }, { repeatable: true })
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
    return this.request('POST', '/dav/v1/release-unstaked', { asset: 'TRX', address, sequence_id: sequenceId }, { repeatable: sequenceId !== undefined })
  }

  staking(address: string): Promise<Staking> {
    return this.request('GET', `/dav/v1/staking${query({ address })}`)
  }

  /** A standing rule: what comes in is forwarded, within a daily cap and until it expires. */
  async createForwardRule(rule: NewForwardRule): Promise<ForwardRule> {
    return this.request('POST', '/dac/v1/auto-forwarding', { ...rule, min_amount: number('min_amount', rule.min_amount), daily_cap: number('daily_cap', rule.daily_cap) })
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
    return this.request('DELETE', `/dac/v1/auto-forwarding/${encodeURIComponent(id)}`, undefined, { repeatable: true })
  }

  /** The transfers that a rule has made, newest first. */
  forwards(id: string, page: PageQuery = {}): Promise<TransactionPage> {
    return this.request('GET', `/dac/v1/auto-forwarding/${encodeURIComponent(id)}/history${query(page)}`)
  }

  async #stake(action: 'stake' | 'unstake', { amount, ...rest }: NewStake): Promise<Stake> {
    return this.request('POST', `/dav/v1/${action}`, { asset: 'TRX', ...rest, amount: number('amount', amount) }, { repeatable: rest.sequence_id !== undefined })
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
        const response = await this.#send(verb, uri, text, options.public ?? false)
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

  async #send(method: string, uri: string, body: string, open: boolean): Promise<Response> {
    // The path below the base is what the service sees and what is signed: a proxy's prefix ends at the proxy.
    const headers = open ? {} : requestHeaders(
      await signRequest({ apiKey: this.apiKey, privateKey: this.#privateKey, method, uri, body, now: Math.floor(this.#now() / 1000) }), this.apiKey)
    try {
      const response = await this.#fetch(`${this.baseUrl}${uri}`, {
        method, headers, redirect: 'error', signal: AbortSignal.timeout(this.#timeout_ms), ...(body === '' ? {} : { body }),
      })
      // Read here, so that a connection that breaks in the middle of an answer counts as no answer.
      return new Response(await response.arrayBuffer().then((bytes) => (bytes.byteLength > 0 ? bytes : null)), { status: response.status, headers: response.headers })
    } catch (error) {
      const reason = error instanceof Error && error.name === 'TimeoutError' ? `no answer within ${this.#timeout_ms} ms` : 'no answer'
      throw new CustodyError(`${method} ${uri.split('?', 1)[0]}: ${reason}`, { status: 0, code: 'NETWORK', cause: error })
    }
  }
}

/** Path and query exactly as fetch will send them, so that they are signed in that spelling. */
function target(path: string): string {
  const url = path.startsWith('/') && !path.startsWith('//') ? new URL(path, 'http://base') : null
  if (!url || url.host !== 'base') throw new TypeError('path must begin with one slash')
  return `${url.pathname}${url.search}`
}

function query(values: object): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) if (value !== undefined) parameters.set(name, String(value))
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

function number(field: string, text: Decimal): JsonNumber {
  if (typeof text !== 'string' || !DECIMAL.test(text)) throw new TypeError(`${field} must be a decimal string like "0.5": a double cannot hold 18 decimals`)
  return new JsonNumber(text)
}

function plain(value: unknown, key: string): unknown {
  if (value instanceof JsonNumber) return COUNTS.has(key) ? Number(value.text) : value.text
  if (Array.isArray(value)) return value.map((inner) => plain(inner, key))
  if (typeof value === 'object' && value !== null) return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner, name)]))
  return value
}

async function read<T>(response: Response): Promise<T> {
  try {
    return plain(parseJson(await response.text()), '') as T
  } catch (error) {
    // Not repeated: the service did what was asked.
    throw new CustodyError('the answer is not JSON: is baseUrl the custody service?', { status: response.status, code: 'PROTOCOL', cause: error })
  }
}

async function refusal(response: Response): Promise<CustodyError> {
  let problem: Record<string, unknown> = {}
  try {
    const value: unknown = plain(parseJson(await response.text()), '')
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) problem = value as Record<string, unknown>
  } catch {
    // A proxy's page: the status says enough.
  }
  const word = (name: string) => (typeof problem[name] === 'string' ? problem[name] : undefined)
  return new CustodyError(word('message') ?? `the service answered ${response.status}`, {
    status: response.status, code: word('code') ?? 'HTTP', field: word('field'), requestId: word('request_id') ?? response.headers.get('x-request-id') ?? undefined,
  })
}
