import { padded } from '../engine/numbers.ts'
import { DECIMALS } from './names.ts'

/** An error in Binance's words. */
export class BinanceError extends Error {
  override readonly name = 'BinanceError'
  readonly code: number
  readonly status: number
  readonly headers: Record<string, string>

  constructor(code: number, message: string, status = 400, headers: Record<string, string> = {}) {
    super(message)
    this.code = code
    this.status = status
    this.headers = headers
  }
}

export type Arguments = Readonly<Record<string, string>>

/**
 * Reads a required parameter.
 * @throws BinanceError, naming the parameter
 */
export function needed(args: Arguments, name: string): string {
  const value = args[name]
  if (value === undefined || value === '') throw missing(name)
  return value
}

export const missing = (name: string): BinanceError =>
  new BinanceError(
    -1102,
    `Mandatory parameter '${name}' was not sent, was empty/null, or malformed.`,
  )

export const illegal = (name: string, range: string): BinanceError =>
  new BinanceError(
    -1100,
    `Illegal characters found in parameter '${name}'; legal range is '${range}'.`,
  )

export const filter = (name: string): BinanceError =>
  new BinanceError(-1013, `Filter failure: ${name}`)

/**
 * Reads an optional integer.
 * @throws BinanceError, naming the parameter
 */
export function whole(args: Arguments, name: string): number | null {
  const text = args[name]
  if (text === undefined || text === '') return null
  if (!/^\d{1,16}$/.test(text)) throw illegal(name, '^[0-9]{1,20}$')
  return Number(text)
}

/** Reads an optional limit, from 1 to its maximum. */
export function limitOf(args: Arguments, usual: number, most: number): number {
  const limit = whole(args, 'limit') ?? usual
  if (limit < 1) throw missing('limit')
  return Math.min(limit, most)
}

export const amountText = (value: bigint): string => padded(value, DECIMALS)
