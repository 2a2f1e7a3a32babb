import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { RequestError } from '../errors.ts'
import type { HttpAnswer } from '../http-server.ts'
import type { LocalChain } from '../local-chain.ts'
import { Engine } from './engine/engine.ts'
import type { VenueRules } from './engine/markets.ts'
import { readDecimal } from './engine/numbers.ts'
import type { Account, Order, Trade } from './engine/types.ts'
import { HIDDEN_MS, SKEW_MS, VenueFaults, type ExchangeName } from './faults.ts'
import { Funding, type FundingEntry } from './funding/funding.ts'
import { routesOf } from './funding/routes.ts'
import type { KnownAddress } from './funding/types.ts'
import { Store } from './store.ts'

/** Permissions of a key. */
export const PERMISSIONS = ['query', 'trade', 'deposit', 'withdraw'] as const
export type Permission = (typeof PERMISSIONS)[number]

export interface ApiKey {
  key: string
  secret: string
  account: string
  permissions: Permission[]
  isRevoked: boolean
  /** Highest nonce that was received. */
  nonce: string
  /** Distance below the highest nonce within which an unused nonce is still accepted. */
  nonceWindow: number
  /** The key's calls are not limited. */
  isUnlimited: boolean
  createdMs: number
}

/** Parameters of a new key. */
export interface KeyParams {
  permissions: readonly Permission[]
  /** Initial balances in whole coins; null for the usual play money. */
  balances: Readonly<Record<string, string>> | null
  /** An existing key whose account the new key is for; null for a new account. */
  accountOf: string | null
  nonceWindow: number
  isUnlimited: boolean
}

/** One record of the journal with all changes of an operation. */
interface Entry extends FundingEntry {
  seed?: string
  accounts?: Account[]
  orders?: Order[]
  trades?: Trade[]
  keys?: ApiKey[]
}

/**
 * `isDeed`: the operation has a permanent effect, which the caller learns only from this response.
 */
export type FaceAnswer = HttpAnswer & { isDeed?: boolean }

/** Differences between exchanges apart from their protocols. */
export interface VenueKind {
  exchange: ExchangeName
  rules: VenueRules
  /** Balances of a new account in whole coins. */
  playMoney: Readonly<Record<string, string>>
  newKey: () => { key: string; secret: string }
  nameOf: (kind: 'order' | 'trade', number: number, seed: string) => string
  /**
   * The exchange's own ID of an account, which is the same for all its keys. It depends on the
   * venue's seed, so accounts of venues with different data have different IDs.
   */
  accountIdOf: (number: number, seed: string) => string
}

/**
 * One local exchange: its customers, books and money. It opens its journal for its first key, or if
 * one exists.
 */
export class Venue {
  readonly kind: VenueKind
  readonly faults = new VenueFaults()
  readonly engine: Engine
  readonly funding: Funding
  readonly keys = new Map<string, ApiKey>()
  /** Returns the USD price with PRICE_DECIMALS. */
  readonly priceOf: (coin: string) => bigint | undefined
  readonly #path: string
  #store: Store<Entry> | undefined
  #seed = ''
  readonly #dirtyKeys = new Set<ApiKey>()
  /** A key has changed in another way than by use. */
  #hasNewKeys = false

  constructor(
    kind: VenueKind,
    path: string,
    priceOf: (coin: string) => bigint | undefined,
    chains: readonly LocalChain[],
  ) {
    this.kind = kind
    this.#path = path
    this.priceOf = priceOf
    const now = () => Date.now()
    this.engine = new Engine({
      rules: kind.rules,
      priceOf,
      now,
      name: (what, number) => kind.nameOf(what, number, this.#seed),
    })
    this.funding = new Funding({
      engine: this.engine,
      coins: kind.rules.coins,
      routes: routesOf(kind.rules.coins, chains),
      chains,
      seed: () => this.#seed,
      now,
      isStuck: () => this.faults.mode === 'stuck-withdrawal',
      commit: (entry) => this.commit(entry),
    })
    if (existsSync(path)) this.#open()
  }

  /** Returns the time of the venue's clock. */
  now(): number {
    return Date.now() - (this.faults.mode === 'clock-skew' ? SKEW_MS : 0)
  }

  /** Returns whether queries return an order yet. */
  shows(order: Order): boolean {
    return this.faults.mode !== 'hidden-order' || Date.now() - order.openedMs >= HIDDEN_MS
  }

  close(): void {
    this.funding.close()
    this.#store?.close()
    this.#store = undefined
  }

  /** Creates an account with play money, or another key of an existing one. */
  createKey(o: KeyParams): ApiKey {
    const sister = o.accountOf === null ? null : this.keys.get(o.accountOf)
    if (sister === undefined)
      throw new RequestError(
        `api_key ${JSON.stringify(o.accountOf)} is not a key of ${this.kind.exchange}`,
      )
    const account = sister
      ? this.engine.accounts.get(sister.account)!
      : this.#createAccount(o.balances ?? this.kind.playMoney)
    if (!this.#store) this.#open()
    const made: ApiKey = {
      ...this.kind.newKey(),
      account: account.id,
      permissions: [...o.permissions],
      isRevoked: false,
      nonce: '0',
      nonceWindow: o.nonceWindow,
      isUnlimited: o.isUnlimited,
      createdMs: Date.now(),
    }
    this.keys.set(made.key, made)
    this.#dirtyKeys.add(made)
    this.#hasNewKeys = true
    this.commit()
    return made
  }

  /**
   * Returns a key.
   * @throws RequestError if it does not exist
   */
  keyOf(key: unknown): ApiKey {
    const apiKey = typeof key === 'string' ? this.keys.get(key) : undefined
    if (!apiKey)
      throw new RequestError(`api_key ${JSON.stringify(key)} is not a key of ${this.kind.exchange}`)
    return apiKey
  }

  /** Returns the exchange's own ID of the account that a key belongs to. */
  accountIdOf({ account }: ApiKey): string {
    return this.kind.accountIdOf(this.engine.accounts.get(account)!.number, this.#seed)
  }

  revoke(key: ApiKey): void {
    key.isRevoked = true
    this.#dirtyKeys.add(key)
    this.#hasNewKeys = true
    this.commit()
  }

  /**
   * Records a used nonce. It is stored with the next change, so a nonce that changed nothing can be
   * used again after a restart.
   */
  used(key: ApiKey, nonce: bigint): void {
    key.nonce = String(nonce)
    this.#dirtyKeys.add(key)
  }

  /**
   * Registers an address. Repeating it has no effect.
   * @throws RequestError if another address has the name
   */
  register(whitelisted: KnownAddress): void {
    const same = this.funding.knownAddresses.find(
      (each) => each.account === whitelisted.account && each.name === whitelisted.name,
    )
    if (same && JSON.stringify(same) === JSON.stringify(whitelisted)) return
    if (same)
      throw new RequestError(
        `name ${JSON.stringify(whitelisted.name)} is already used: the addresses of an account must have different names`,
      )
    this.funding.knownAddresses.push(whitelisted)
    this.commit({ known: [whitelisted] })
  }

  /** Stores all changes since the last call. */
  commit(entry: FundingEntry = {}): void {
    const { accounts, orders, trades } = this.engine.changes
    const whole: Entry = {
      ...entry,
      ...(accounts.size > 0 ? { accounts: [...accounts] } : {}),
      ...(orders.size > 0 ? { orders: [...orders] } : {}),
      ...(trades.size > 0 ? { trades: [...trades] } : {}),
      ...(this.#dirtyKeys.size > 0 ? { keys: [...this.#dirtyKeys] } : {}),
    }
    const isNonceAlone = Object.keys(whole).every((name) => name === 'keys') && !this.#hasNewKeys
    if (isNonceAlone || !this.#store) return
    this.#hasNewKeys = false
    this.#store.append(whole)
    this.engine.changes = { accounts: new Set(), orders: new Set(), trades: new Set() }
    this.#dirtyKeys.clear()
  }

  #createAccount(balances: Readonly<Record<string, string>>): Account {
    const number = this.engine.accounts.size + 1
    const account: Account = { id: `A${number}`, number, balances: {}, createdMs: Date.now() }
    for (const [ticker, text] of Object.entries(balances)) {
      const coin = this.kind.rules.coins.get(ticker)
      if (!coin)
        throw new RequestError(`coin ${JSON.stringify(ticker)} is not on ${this.kind.exchange}`)
      const total = readDecimal(text, coin.decimals)
      if (total === null)
        throw new RequestError(
          `balance of ${ticker}: ${JSON.stringify(text)} has more than ${coin.decimals} decimals`,
        )
      account.balances[ticker] = { total, held: 0n }
    }
    this.engine.accounts.set(account.id, account)
    this.engine.changes.accounts.add(account)
    return account
  }

  #open(): void {
    const { store, entries } = Store.open<Entry>(this.#path)
    this.#store = store
    const latest = <Each>(
      of: (entry: Entry) => Each[] | undefined,
      key: (each: Each) => string,
    ): Each[] => [
      ...new Map(
        entries.flatMap((entry) => of(entry) ?? []).map((each) => [key(each), each]),
      ).values(),
    ]
    this.#seed = entries[0]?.seed ?? randomBytes(32).toString('hex')
    if (entries.length === 0) store.append({ seed: this.#seed })
    for (const key of latest(
      ({ keys }) => keys,
      ({ key }) => key,
    ))
      this.keys.set(key.key, key)
    this.engine.restore({
      accounts: latest(
        ({ accounts }) => accounts,
        ({ id }) => id,
      ),
      orders: latest(
        ({ orders }) => orders,
        ({ id }) => id,
      ),
      trades: latest(
        ({ trades }) => trades,
        ({ id }) => id,
      ),
    })
    this.funding.restore({
      addresses: entries.flatMap(({ addresses = [] }) => addresses),
      deposits: latest(
        ({ deposits }) => deposits,
        ({ id }) => id,
      ),
      withdrawals: latest(
        ({ withdrawals }) => withdrawals,
        ({ id }) => id,
      ),
      cursors: latest(
        ({ cursors }) => cursors,
        ({ network }) => network,
      ),
      known: entries.flatMap(({ known = [] }) => known),
    })
  }
}

/** Derives bytes from a seed and words. */
export const digest = (...words: string[]): Buffer =>
  createHash('sha256').update(words.join(' ')).digest()
