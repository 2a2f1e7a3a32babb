import { ChainError, formatAmount, parseAmount, type Asset } from '@custody/chains'
import { parseUsd, showUsd, USD_DECIMALS } from '../decimals.ts'
import { ApiError } from '../errors.ts'
import type { Services } from '../engine/services.ts'
import { coinOf } from '../prices/coins.ts'
import { PRICE_DECIMALS } from '../prices/decimals.ts'

/** Currencies that prices are known in. */
export const FIATS = ['USD'] as const

/** Rounding an amount up to fewer digits costs its payer less than one part in this many. */
const ROUNDING_PARTS = 10_000n

/**
 * A value in USD, as numerator and denominator of a number with {@link PRICE_DECIMALS} decimals.
 */
export interface Value {
  numerator: bigint
  denominator: bigint
}

/**
 * USD of one coin with {@link PRICE_DECIMALS} decimals, and when its sources told it, milliseconds
 * since the Unix Epoch.
 */
export interface Rate {
  price: bigint
  at: number
}

/** @param fiat millionths of a USD */
export const valueOfFiat = (fiat: bigint): Value => ({
  numerator: fiat * 10n ** BigInt(PRICE_DECIMALS - USD_DECIMALS),
  denominator: 1n,
})

/** @param amount smallest unit */
export const valueOfCoin = (amount: bigint, asset: Asset, rate: Rate): Value => ({
  numerator: amount * rate.price,
  denominator: 10n ** BigInt(asset.decimals),
})

/** A value in millionths of a USD, rounded down. */
export const microOf = ({ numerator, denominator }: Value): bigint =>
  numerator / (denominator * 10n ** BigInt(PRICE_DECIMALS - USD_DECIMALS))

const dividedUp = (numerator: bigint, denominator: bigint): bigint =>
  (numerator + denominator - 1n) / denominator

/**
 * The coarsest power of ten to which an amount can be rounded up for less than one part in {@link
 * ROUNDING_PARTS}.
 */
export function stepOf(amount: bigint): bigint {
  let step = 1n
  while (step * 10n * ROUNDING_PARTS <= amount) step *= 10n
  return step
}

/**
 * The least amount of an asset that is worth a value: rounded up to what a wallet can send, and to
 * as many digits as matter.
 * @param price USD of one coin with {@link PRICE_DECIMALS} decimals
 * @param decimals of the asset
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

/** An amount of a currency in millionths. @throws ApiError `INVALID_AMOUNT` */
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
 * The price of an asset now; null where it is not known or stale, for nothing is asked by such a
 * one.
 */
export function currentRate({ prices }: Services, asset: Asset): Rate | null {
  const price = prices.price(coinOf(asset))
  return price && !price.stale ? { price: price.price, at: price.at } : null
}

/** The least that is asked of an asset, smallest unit. */
export const leastOf = (asset: Asset): bigint => parseAmount(asset.min_withdrawal, asset.decimals)

export const showRate = (price: bigint): string => formatAmount(price, PRICE_DECIMALS)
