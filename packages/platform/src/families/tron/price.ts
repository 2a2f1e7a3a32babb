import type { Asset, TronParameters } from '@custody/chains'

/** What creating a receiver costs, in Sun: it takes the place of bandwidth. */
export const activationOf = ({ createAccountSun, createAccountFeeSun }: TronParameters): bigint =>
  createAccountSun + createAccountFeeSun

/**
 * The chain's price of what a transfer is charged by, in Sun: bandwidth (TRX) or energy (tokens).
 * It is the same for everybody.
 */
export const priceOf = (asset: Asset, { bandwidthSun, energySun }: TronParameters): bigint =>
  asset.type === 'native' ? bandwidthSun : energySun
