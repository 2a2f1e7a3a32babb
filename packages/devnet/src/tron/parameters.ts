import { keccak_256 } from '@noble/hashes/sha3.js'
import { sha256, toHex } from './address.ts'
import { signedHex } from './transaction.ts'

/** Parameters of a request by name. Each is read and checked on use. */
export type Body = Record<string, unknown>

/** Returns an address, given in either form, as 42 digits. */
export function addressOf(body: Body, name: string): string {
  const address = toHex(body[name])
  if (address === undefined) throw new Error(`INVALID ${name}: ${String(body[name])}`)
  return address
}

/** Returns an integer, given as a number or as digits. */
export function wholeOf(body: Body, name: string): bigint {
  const value = body[name]
  if (
    (typeof value !== 'number' || !Number.isSafeInteger(value)) &&
    !(typeof value === 'string' && /^\d{1,19}$/.test(value))
  ) {
    throw new Error(`INVALID ${name}: ${String(value)}`)
  }
  return BigInt(value)
}

/** 0: bandwidth, 1: energy. */
export function resourceOf(body: Body, name = 'resource'): 0 | 1 {
  const value = body[name] ?? 0
  if (value === 1 || value === 'ENERGY') return 1
  if (value === 0 || value === 'BANDWIDTH') return 0
  throw new Error(`INVALID resource: ${String(value)}`)
}

/** Returns the bytes of a transaction in JSON form. Its id and fields must match them. */
export function hexOfJson(body: Body): string {
  const raw = body['raw_data_hex']
  const signatures = body['signature']
  if (typeof raw !== 'string' || !/^(?:[0-9a-fA-F]{2})+$/.test(raw))
    throw new Error('INVALID raw_data_hex')
  const hex = signedHex(
    Buffer.from(raw, 'hex'),
    (Array.isArray(signatures) ? signatures : []).map((each) =>
      Buffer.from(String(each).replace(/^0x/, ''), 'hex'),
    ),
  )
  if (
    body['txID'] !== undefined &&
    body['txID'] !== sha256(Buffer.from(raw, 'hex')).toString('hex')
  ) {
    throw new Error('INVALID txID: it is not the hash of raw_data')
  }
  return hex
}

/** Returns the data of a contract call: given as data, or as a selector with parameters. */
export function selectorData(body: Body): string {
  if (typeof body['data'] === 'string' && body['data'] !== '')
    return body['data'].replace(/^0x/, '').toLowerCase()
  const selector = String(body['function_selector'] ?? '')
  const parameter = String(body['parameter'] ?? '')
    .replace(/^0x/, '')
    .toLowerCase()
  const data =
    Buffer.from(keccak_256(Buffer.from(selector)))
      .toString('hex')
      .slice(0, 8) + parameter
  if (!/^[0-9a-f]*$/.test(data)) throw new Error('INVALID parameter')
  return data
}
