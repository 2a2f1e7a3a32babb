import { ChainError, formatAmount, parseAmount, type Asset } from '@custody/chains'
import { parseUsd, showUsd, USD_DECIMALS } from '../../core/decimals.ts'
import { ApiError } from '../../core/errors.ts'
import type { Prices } from '../../custody/prices/prices.ts'
import { coinOf } from '../../custody/prices/coins.ts'
import { PRICE_DECIMALS } from '../../custody/prices/decimals.ts'

interface Services {
  prices: Prices
}

/** Currencies in which prices are known. */
export const FIATS = ['USD'] as const

/** Rounding an amount up to fewer digits costs the payer less than one part in this number. */
const ROUNDING_PARTS = 10_000n

/**
 * A value in USD, as numerator and denominator of a number with {@link PRICE_DECIMALS} decimals.
 */
export interface Value {
  numerator: bigint
  denominator: bigint
}

/**
 * USD per coin with {@link PRICE_DECIMALS} decimals, and the time of its sources in milliseconds
 * since the Unix Epoch.
 */
export interface Rate {
  price: bigint
  at: number
}

/**
 * Returns the value of an amount of fiat.
 * @param fiat millionths of a USD
 */
export const valueOfFiat = (fiat: bigint): Value => ({
  numerator: fiat * 10n ** BigInt(PRICE_DECIMALS - USD_DECIMALS),
  denominator: 1n,
})

/**
 * Returns the value of an amount of an asset.
 * @param amount smallest unit
 */
export const valueOfCoin = (amount: bigint, asset: Asset, rate: Rate): Value => ({
  numerator: amount * rate.price,
  denominator: 10n ** BigInt(asset.decimals),
})

/** Returns a value in millionths of a USD, rounded down. */
export const microOf = ({ numerator, denominator }: Value): bigint =>
  numerator / (denominator * 10n ** BigInt(PRICE_DECIMALS - USD_DECIMALS))

const dividedUp = (numerator: bigint, denominator: bigint): bigint =>
  (numerator + denominator - 1n) / denominator

/**
 * Returns the largest power of ten to which an amount can be rounded up at a cost of less than one
 * part in {@link ROUNDING_PARTS}.
 */
export function stepOf(amount: bigint): bigint {
  let step = 1n
  while (step * 10n * ROUNDING_PARTS <= amount) step *= 10n
  return step
}

/**
 * Returns the smallest amount of an asset that is worth a value, rounded up to a precision that
 * wallets can send and to the significant digits.
 * @param price USD per coin with {@link PRICE_DECIMALS} decimals
 * @param decimals decimals of the asset
 * @returns smallest unit
 */
export function amountFor(
  { numerator, denominator }: Value,
  price: bigint,
  decimals: number,
): bigint {
  const exact = dividedUp(numerator * 10n ** BigInt(decimals), denominator * price)
  const step = stepOf(exact)
  return dividedUp(exact, step) * step
}

const FIAT_MAX = 10n ** 15n * 10n ** BigInt(USD_DECIMALS)

/**
 * Parses an amount of a currency; returns millionths.
 * @throws ApiError `INVALID_AMOUNT`
 */
export function readFiat(text: string): bigint {
  const refused = (reason: string) =>
    new ApiError('INVALID_AMOUNT', `fiat_amount: ${reason}`, { field: 'fiat_amount' })
  let amount: bigint
  try {
    amount = parseUsd(text)
  } catch (error) {
    throw error instanceof ChainError ? refused(error.message) : error
  }
  if (amount === 0n) throw refused('must be greater than zero')
  if (amount > FIAT_MAX) throw refused(`must be at most ${showUsd(FIAT_MAX)}`)
  return amount
}

/**
 * Returns the current price of an asset; null if it is unknown or outdated, because no amount may
 * be requested at such a price.
 */
export function currentRate({ prices }: Services, asset: Asset): Rate | null {
  const price = prices.price(coinOf(asset))
  return price && !price.stale ? { price: price.price, at: price.at } : null
}

/** Returns the smallest amount of an asset that can be requested, in the smallest unit. */
export const leastOf = (asset: Asset): bigint => parseAmount(asset.min_withdrawal, asset.decimals)

export const showRate = (price: bigint): string => formatAmount(price, PRICE_DECIMALS)
