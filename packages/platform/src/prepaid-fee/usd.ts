import { formatAmount, parseAmount } from '@custody/chains'
import type { JsonNumber } from '@custody/request-auth'
import { exact } from '../http/schemas.ts'

/** USD is kept in millionths. */
export const USD_DECIMALS = 6

export const parseUsd = (text: string): bigint => parseAmount(text, USD_DECIMALS)
export const showUsd = (micro: bigint): string => formatAmount(micro, USD_DECIMALS)
export const exactUsd = (micro: bigint): JsonNumber => exact(showUsd(micro))
