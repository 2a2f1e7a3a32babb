import { RpcError } from '../errors.ts'
import type { BitcoinChain } from './chain.ts'

export type Params = readonly unknown[]
export type Method = {
  params: readonly string[]
  run: (chain: BitcoinChain, params: Params) => unknown
}

export const TYPE = -3
export const WALLET = -4
export const INVALID_ADDRESS_OR_KEY = -5
export const INSUFFICIENT_FUNDS = -6
export const INVALID_PARAMETER = -8
export const DESERIALIZATION = -22
export const TRANSACTION_ERROR = -25
export const REJECTED = -26
export const ALREADY_IN_UTXO_SET = -27

/** @param params names in their order, separated by spaces */
export function method(params: string, run: Method['run']): Method {
  return { params: params === '' ? [] : params.split(' '), run }
}

export function hash(value: unknown, name: string): string {
  if (typeof value !== 'string')
    throw new RpcError(TYPE, `JSON value of type ${typeof value} is not of expected type string`)
  if (value.length !== 64)
    throw new RpcError(
      INVALID_PARAMETER,
      `${name} must be of length 64 (not ${value.length}, for '${value}')`,
    )
  if (!/^[0-9a-fA-F]*$/.test(value))
    throw new RpcError(INVALID_PARAMETER, `${name} must be hexadecimal string (not '${value}')`)
  return value.toLowerCase()
}

export function integer(value: unknown, fallback: number): number {
  if (value === undefined || value === null) return fallback
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value !== 'number' || !Number.isInteger(value))
    throw new RpcError(TYPE, 'JSON value is not an integer as expected')
  return value
}
