import { BECH32, regroup } from './base32.ts'

/** CashAddr, the address format of Bitcoin Cash, for hashes of 20 bytes. */

const GENERATOR = [0x98f2bc8e61n, 0x79b76d99e2n, 0xf33e5fb3c4n, 0xae2eabe2a8n, 0x1e4f43e470n]
const TYPES = { p2pkh: 0, p2sh: 8 } as const

function polymod(values: readonly number[]): bigint {
  let check = 1n
  for (const value of values) {
    const top = check >> 35n
    check = ((check & 0x07ffffffffn) << 5n) ^ BigInt(value)
    for (let bit = 0; bit < 5; bit += 1) if ((top >> BigInt(bit)) & 1n) check ^= GENERATOR[bit]!
  }
  return check ^ 1n
}

function masked(prefix: string): number[] {
  return [...Array.from(prefix, (character) => character.charCodeAt(0) & 31), 0]
}

export function cashAddress(prefix: string, type: keyof typeof TYPES, hash: Buffer): string {
  const values = regroup([TYPES[type], ...hash], 8, 5, true)!
  const check = polymod([...masked(prefix), ...values, 0, 0, 0, 0, 0, 0, 0, 0])
  for (let index = 0; index < 8; index += 1)
    values.push(Number((check >> BigInt(5 * (7 - index))) & 31n))
  return `${prefix}:${values.map((value) => BECH32[value]).join('')}`
}

/**
 * Returns the script of a CashAddr address; undefined if the text is not an address with this
 * prefix.
 */
export function cashScript(prefix: string, address: string): Buffer | undefined {
  const text = address.toLowerCase()
  if (text !== address && address.toUpperCase() !== address) return undefined
  const body = text.startsWith(`${prefix}:`) ? text.slice(prefix.length + 1) : text
  const values = Array.from(body, (character) => BECH32.indexOf(character))
  if (values.length !== 42 || values.includes(-1) || polymod([...masked(prefix), ...values]) !== 0n)
    return undefined
  const [type, ...hash] = regroup(values.slice(0, -8), 5, 8, false) ?? []
  if (hash.length !== 20) return undefined
  if (type === TYPES.p2pkh)
    return Buffer.concat([
      Buffer.from('76a914', 'hex'),
      Buffer.from(hash),
      Buffer.from('88ac', 'hex'),
    ])
  if (type === TYPES.p2sh)
    return Buffer.concat([Buffer.from('a914', 'hex'), Buffer.from(hash), Buffer.from('87', 'hex')])
  return undefined
}
