import { query } from '../wire.ts'
import type {
  AmlSettings,
  FrozenAddress,
  GasTank,
  GasTankEntry,
  NewAmlSettings,
  Page,
  PageQuery,
  PrepaidEntry,
  PrepaidFee,
  Price,
  UnfrozenAddress,
} from '../types.ts'
import { TransferMethods } from './transfers.ts'

/** Gas tanks, prices, the prepaid account, and the screening of addresses. */
export abstract class AccountMethods extends TransferMethods {
  /**
   * Lists the workspace's gas tanks: one per network, with its balance of native coin and its
   * address.
   * @throws CustodyError; with `trust`, {@link VerificationError} if an address is not that of the
   *   workspace's tank
   */
  async gasTanks(): Promise<GasTank[]> {
    const tanks = await this.request<GasTank[]>('GET', '/dac/v1/gas-tanks')
    await this.checks?.tanks(tanks)
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
}
