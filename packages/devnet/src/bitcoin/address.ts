import { BECH32, regroup } from './base32.ts'
import { cashAddress, cashScript } from './cashaddr.ts'
import { hash256 } from './encoding.ts'
import { BTC, type UtxoNetwork } from './networks.ts'

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

export type ScriptType =
  | 'pubkeyhash'
  | 'scripthash'
  | 'witness_v0_keyhash'
  | 'witness_v0_scripthash'
  | 'witness_v1_taproot'
  | 'witness_unknown'
  | 'anchor'
  | 'pubkey'
  | 'multisig'
  | 'nulldata'
  | 'nonstandard'

export function witnessProgram(script: Buffer): { version: number; program: Buffer } | undefined {
  const op = script[0]
  if (
    op === undefined ||
    script.length < 4 ||
    script.length > 42 ||
    script[1] !== script.length - 2
  )
    return undefined
  if (op !== 0 && (op < 0x51 || op > 0x60)) return undefined
  return { version: op === 0 ? 0 : op - 0x50, program: script.subarray(2) }
}

/** Returns the type of a witness program. */
function witnessType({
  version,
  program,
}: NonNullable<ReturnType<typeof witnessProgram>>): ScriptType {
  if (version === 0 && program.length === 20) return 'witness_v0_keyhash'
  if (version === 0 && program.length === 32) return 'witness_v0_scripthash'
  if (version === 1 && program.length === 32) return 'witness_v1_taproot'
  if (version === 1 && program.toString('hex') === '4e73') return 'anchor'
  return version === 0 ? 'nonstandard' : 'witness_unknown'
}

/**
 * Returns the type of a script. Without segwit a witness program is a non-standard script, which
 * nodes do not relay.
 */
export function scriptType(script: Buffer, segwit = true): ScriptType {
  if (isP2pkh(script)) return 'pubkeyhash'
  if (isP2sh(script)) return 'scripthash'
  const witness = segwit ? witnessProgram(script) : undefined
  if (witness) return witnessType(witness)
  if (script[0] === 0x6a && pushesOnly(script.subarray(1))) return 'nulldata'
  if (
    ((script.length === 35 && script[0] === 33) || (script.length === 67 && script[0] === 65)) &&
    script.at(-1) === 0xac
  )
    return 'pubkey'
  if (script.at(-1) === 0xae && script[0]! >= 0x51 && script[0]! <= 0x53) return 'multisig'
  return 'nonstandard'
}

export function isP2pkh(script: Buffer): boolean {
  return (
    script.length === 25 &&
    script.subarray(0, 3).toString('hex') === '76a914' &&
    script.subarray(23).toString('hex') === '88ac'
  )
}

export function isP2sh(script: Buffer): boolean {
  return script.length === 23 && script[0] === 0xa9 && script[1] === 20 && script[22] === 0x87
}

export function pushesOnly(script: Buffer): boolean {
  let at = 0
  while (at < script.length) {
    const op = script[at]!
    if (op > 0x60) return false
    at += 1
    if (op < 0x4c) at += op
    else if (op === 0x4c) at += 1 + (script[at] ?? 0)
    else if (op === 0x4d) at += 2 + (at + 2 <= script.length ? script.readUInt16LE(at) : 0)
    else if (op === 0x4e) at += 4 + (at + 4 <= script.length ? script.readUInt32LE(at) : 0)
  }
  return at === script.length
}

export function addressOf(script: Buffer, network: UtxoNetwork = BTC): string | undefined {
  const { hrp, p2pkh, p2sh, cashaddr } = network.address
  if (isP2pkh(script)) {
    return cashaddr === null
      ? base58Check(p2pkh, script.subarray(3, 23))
      : cashAddress(cashaddr, 'p2pkh', script.subarray(3, 23))
  }
  if (isP2sh(script)) {
    return cashaddr === null
      ? base58Check(p2sh, script.subarray(2, 22))
      : cashAddress(cashaddr, 'p2sh', script.subarray(2, 22))
  }
  const witness = hrp === null ? undefined : witnessProgram(script)
  if (!witness) return undefined
  if (witness.version === 0 && witness.program.length !== 20 && witness.program.length !== 32)
    return undefined
  return encodeSegwit(hrp!, witness.version, witness.program)
}

/** Returns the script of an address, or a sentence with the error in Core's words. */
export function scriptOf(address: string, network: UtxoNetwork = BTC): Buffer | { error: string } {
  const { hrp, p2pkh, p2sh, cashaddr } = network.address
  if (hrp !== null && address.toLowerCase().startsWith(`${hrp}1`)) return decodeSegwit(hrp, address)
  const cash = cashaddr === null ? undefined : cashScript(cashaddr, address)
  if (cash) return cash
  const decoded = decodeBase58Check(address)
  if (decoded?.length === 21 && decoded[0] === p2pkh) {
    return Buffer.concat([
      Buffer.from('76a914', 'hex'),
      decoded.subarray(1),
      Buffer.from('88ac', 'hex'),
    ])
  }
  if (decoded?.length === 21 && decoded[0] === p2sh) {
    return Buffer.concat([
      Buffer.from('a914', 'hex'),
      decoded.subarray(1),
      Buffer.from('87', 'hex'),
    ])
  }
  if (decoded) return { error: 'Invalid or unsupported Base58-encoded address.' }
  return { error: 'Invalid or unsupported Segwit (Bech32) or Base58 encoding.' }
}

function base58Check(version: number, payload: Buffer): string {
  const body = Buffer.concat([Buffer.from([version]), payload])
  const bytes = Buffer.concat([body, hash256(body).subarray(0, 4)])
  let value = BigInt(`0x${bytes.toString('hex')}`)
  let text = ''
  while (value > 0n) {
    text = BASE58[Number(value % 58n)]! + text
    value /= 58n
  }
  for (const byte of bytes) {
    if (byte !== 0) break
    text = `1${text}`
  }
  return text
}

function decodeBase58Check(text: string): Buffer | undefined {
  if (text.length > 100) return undefined
  let value = 0n
  for (const character of text) {
    const digit = BASE58.indexOf(character)
    if (digit < 0) return undefined
    value = value * 58n + BigInt(digit)
  }
  const hex = value === 0n ? '' : value.toString(16)
  const body = Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex')
  const zeros = /^1*/.exec(text)![0].length
  const bytes = Buffer.concat([Buffer.alloc(zeros), body])
  if (bytes.length < 5) return undefined
  const payload = bytes.subarray(0, -4)
  return hash256(payload).subarray(0, 4).equals(bytes.subarray(-4)) ? payload : undefined
}

function polymod(values: number[]): number {
  const generator = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]
  let check = 1
  for (const value of values) {
    const top = check >>> 25
    check = ((check & 0x1ffffff) << 5) ^ value
    for (let bit = 0; bit < 5; bit += 1) if ((top >>> bit) & 1) check ^= generator[bit]!
  }
  return check >>> 0
}

function expanded(hrp: string): number[] {
  const codes = Array.from(hrp, (character) => character.charCodeAt(0))
  return [...codes.map((code) => code >> 5), 0, ...codes.map((code) => code & 31)]
}

const BECH32_CONSTANT = 1
const BECH32M_CONSTANT = 0x2bc830a3

function encodeSegwit(hrp: string, version: number, program: Buffer): string {
  const values = [version, ...regroup(program, 8, 5, true)!]
  const constant = version === 0 ? BECH32_CONSTANT : BECH32M_CONSTANT
  const check = polymod([...expanded(hrp), ...values, 0, 0, 0, 0, 0, 0]) ^ constant
  for (let index = 0; index < 6; index += 1) values.push((check >>> (5 * (5 - index))) & 31)
  return `${hrp}1${values.map((value) => BECH32[value]).join('')}`
}

function decodeSegwit(hrp: string, address: string): Buffer | { error: string } {
  const text = address.toLowerCase()
  if (text !== address && address.toUpperCase() !== address)
    return { error: 'Invalid character or mixed case' }
  const values = Array.from(text.slice(hrp.length + 1), (character) => BECH32.indexOf(character))
  if (values.length < 7 || text.length > 90 || values.includes(-1))
    return { error: 'Invalid Base 32 character' }
  const version = values[0]!
  const constant = version === 0 ? BECH32_CONSTANT : BECH32M_CONSTANT
  const checksum = polymod(expanded(hrp).concat(values))
  if (checksum !== constant) {
    if (version === 0 && checksum === BECH32M_CONSTANT)
      return { error: 'Version 0 witness address must use Bech32 checksum' }
    if (version !== 0 && checksum === BECH32_CONSTANT)
      return { error: 'Version 1+ witness address must use Bech32m checksum' }
    return { error: 'Invalid Bech32 checksum' }
  }
  const program = regroup(values.slice(1, -6), 5, 8, false)
  if (!program) return { error: 'Invalid padding in Bech32 data section' }
  if (version > 16) return { error: 'Invalid Bech32 address witness version' }
  if (program.length < 2 || program.length > 40)
    return { error: `Invalid Bech32 address program size (${program.length} bytes)` }
  if (version === 0 && program.length !== 20 && program.length !== 32) {
    return { error: `Invalid Bech32 v0 address program size (${program.length} bytes), per BIP141` }
  }
  return Buffer.from([version === 0 ? 0 : 0x50 + version, program.length, ...program])
}
