import { decimals, query } from '../wire.ts'
import type { OnceOptions } from '../transport.ts'
import type { Keys } from '../trust/keys.ts'
import type {
  Address,
  AddressPage,
  AddressValidation,
  Asset,
  BalancePage,
  Coin,
  CoinAsideFilter,
  CoinAsidePage,
  CoinChange,
  CoinFilter,
  CoinPage,
  CursorQuery,
  NewConsolidation,
  Statement,
  StatementExportQuery,
  StatementQuery,
  Transaction,
  Wallet,
  WalletBalance,
} from '../types.ts'
import { ClientBase } from './base.ts'

/** Assets, wallets, balances and addresses. */
export abstract class WalletMethods extends ClientBase {
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
   * @throws CustodyError `WALLET_EXISTS`, `KEY_PENDING` (see README, automatic retries); with `trust`,
   *   VerificationError if the omnibus address is not the sub-account's own
   */
  async createWallet(asset: string): Promise<Wallet> {
    const wallet = await this.request<Wallet>('POST', '/dac/v1/create-wallet', { asset })
    await this.checks?.wallets(asset, [wallet])
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
    await this.checks?.wallets(asset, wallets)
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
   * Lists the unspent coins of a wallet with their states, the largest first. Pass the result's `next` as
   * `after` to continue.
   * @throws CustodyError `INVALID_REQUEST` if wallets of the asset have no coins
   */
  coins(filter: CoinFilter): Promise<CoinPage> {
    return this.request('GET', `/dac/v1/coins${query(filter)}`)
  }

  /** Iterates over the unspent coins of a wallet, the largest first. `limit` is the size of a page. */
  async *eachCoin(filter: Omit<CoinFilter, 'after'>): AsyncGenerator<Coin> {
    for (let after: string | null | undefined; after !== null;) {
      const page: CoinPage = await this.coins(after === undefined ? filter : { ...filter, after })
      yield* page.data
      after = page.next
    }
  }

  /**
   * Sets the label of a coin, or freezes or unfreezes it. A field that is absent stays as it is; a label of
   * null is removed.
   * @param id `id` of the coin
   * @throws CustodyError `COIN_RESERVED` if a pending transfer spends the coin that is to be frozen
   */
  updateCoin(id: string, change: CoinChange): Promise<Coin> {
    return this.request('POST', `/dac/v1/coins/${encodeURIComponent(id)}`, change, {
      repeatable: true,
    })
  }

  /**
   * Merges the smallest confirmed coins of a wallet into one coin, in one transaction of 10 to 200 inputs.
   * Only the network fee leaves the wallet.
   * @param walletId `id` of the wallet
   * @param consolidation `max_fee_rate` in the unit of the network, `min_value` in whole units of the asset
   * @returns the transaction, or that of an earlier request with the same `sequence_id` and payload
   * @throws IdempotencyMismatch if the `sequence_id` was used for another request; CustodyError
   *   `NOTHING_TO_CONSOLIDATE`, `CONSOLIDATION_PENDING` or `FEE_RATE_ABOVE_MAXIMUM`, and nothing is stored
   */
  consolidate(
    walletId: string,
    consolidation: NewConsolidation,
    options: OnceOptions = {},
  ): Promise<Transaction> {
    const body = decimals(consolidation, 'max_fee_rate', 'min_value')
    const path = `/dac/v1/wallets/${encodeURIComponent(walletId)}/consolidate`
    return this.request('POST', path, body, { repeatable: true, ...options })
  }

  /**
   * Lists coins that are in no balance and are never spent, such as those with CashTokens. Newest
   * first; pass the result's `next` as `after` to continue.
   */
  coinsAside(filter: CoinAsideFilter = {}): Promise<CoinAsidePage> {
    return this.request('GET', `/dac/v1/coins-aside${query(filter)}`)
  }

  /**
   * Reads the statement of a wallet or a gas tank for a period: the opening balance, every movement,
   * oldest first, and the closing balance. Pass the result's `next` as `after` to continue.
   */
  statement(of: StatementQuery): Promise<Statement> {
    return this.request('GET', `/dac/v1/statement${query(of)}`)
  }

  /** Exports a statement of any length as CSV, without the byte order mark of a downloaded file. */
  statementCsv(of: StatementExportQuery): Promise<string> {
    return this.request('GET', `/dac/v1/statement/export${query(of)}`, undefined, { as: 'text' })
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
    await this.checks?.addresses(asset, [address])
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
    await this.checks?.addresses(asset, addresses)
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
    await this.checks?.addresses(asset, answer.data)
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
}
