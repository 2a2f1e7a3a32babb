import type { Asset, TronParameters } from '@custody/chains'

/** Returns the cost of activating a recipient in sun, which replaces the bandwidth cost. */
export const activationOf = ({ createAccountSun, createAccountFeeSun }: TronParameters): bigint =>
  createAccountSun + createAccountFeeSun

/**
 * Returns the chain's price in sun of the resource that a transfer uses: bandwidth (TRX) or energy
 * (tokens). It is the same for all users.
 */
export const priceOf = (asset: Asset, { bandwidthSun, energySun }: TronParameters): bigint =>
  asset.type === 'native' ? bandwidthSun : energySun
