import { createHash } from 'node:crypto'

/**
 * The XRP Ledger's binary format, implemented here independently of the client's library, so that
 * each checks the other.
 */

export type Issued = { currency: string; issuer: string; value: string }
export type Fields = Record<string, string | number | Issued | { Memo: Record<string, string> }[]>
export type XrpTransaction = { hash: string; raw: string; fields: Fields; signingBytes: Buffer }

export class NotATransaction extends Error {}

/** Returns the amount of a token; undefined for XRP and for other values. */
export const issuedOf = (value: Fields[string] | undefined): Issued | undefined =>
  typeof value === 'object' && 'issuer' in value ? value : undefined

const TYPES: Record<number, string> = { 0: 'Payment', 3: 'AccountSet' }
const UINT16 = 1
const UINT32 = 2
const HASH256 = 5
const AMOUNT = 6
const BLOB = 7
const ACCOUNT = 8
const OBJECT = 14
const ARRAY = 15

/** [type, number, name] in canonical order. */
const FIELDS: readonly (readonly [number, number, string])[] = [
  [UINT16, 2, 'TransactionType'],
  [UINT32, 1, 'NetworkID'],
  [UINT32, 2, 'Flags'],
  [UINT32, 3, 'SourceTag'],
  [UINT32, 4, 'Sequence'],
  [UINT32, 14, 'DestinationTag'],
  [UINT32, 27, 'LastLedgerSequence'],
  [UINT32, 33, 'SetFlag'],
  [UINT32, 34, 'ClearFlag'],
  [UINT32, 41, 'TicketSequence'],
  [HASH256, 9, 'AccountTxnID'],
  [HASH256, 17, 'InvoiceID'],
  [AMOUNT, 1, 'Amount'],
  [AMOUNT, 8, 'Fee'],
  [AMOUNT, 9, 'SendMax'],
  [AMOUNT, 10, 'DeliverMin'],
  [BLOB, 3, 'SigningPubKey'],
  [BLOB, 4, 'TxnSignature'],
  [BLOB, 7, 'Domain'],
  [BLOB, 12, 'MemoType'],
  [BLOB, 13, 'MemoData'],
  [BLOB, 14, 'MemoFormat'],
  [ACCOUNT, 1, 'Account'],
  [ACCOUNT, 3, 'Destination'],
  [OBJECT, 10, 'Memo'],
  [ARRAY, 9, 'Memos'],
]
const BY_CODE = new Map(FIELDS.map(([type, number, name]) => [type * 256 + number, { type, name }]))

const ALPHABET = 'rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz'
const NOT_XRP = 1n << 63n
const POSITIVE = 1n << 62n

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()
export const sha512Half = (...parts: Uint8Array[]): Buffer =>
  createHash('sha512').update(Buffer.concat(parts)).digest().subarray(0, 32)
const PREFIX = { sign: Buffer.from('STX\0'), id: Buffer.from('TXN\0') }

/** Encodes a 20-byte account id as Base58Check, version 0. */
function encodeAccount(id: Buffer): string {
  const payload = Buffer.concat([Buffer.from([0]), id])
  const bytes = Buffer.concat([payload, sha256(sha256(payload)).subarray(0, 4)])
  let number = BigInt(`0x${bytes.toString('hex')}`)
  let text = ''
  for (; number > 0n; number /= 58n) text = ALPHABET[Number(number % 58n)]! + text
  const zeros = bytes.findIndex((byte) => byte !== 0)
  return ALPHABET[0]!.repeat(zeros) + text
}

export function decodeAccount(text: string): Buffer | undefined {
  let number = 0n
  for (const letter of text) {
    const digit = ALPHABET.indexOf(letter)
    if (digit < 0) return undefined
    number = number * 58n + BigInt(digit)
  }
  const hex = number.toString(16)
  if (hex.length > 48) return undefined
  const id = Buffer.from(hex.padStart(48, '0'), 'hex').subarray(0, 20)
  return encodeAccount(id) === text ? id : undefined
}

export function accountOf(publicKey: Uint8Array): string {
  return encodeAccount(createHash('ripemd160').update(sha256(publicKey)).digest())
}

export function readTransaction(hex: string): XrpTransaction {
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(hex)) throw new NotATransaction('is not hexadecimal')
  const bytes = Buffer.from(hex, 'hex')
  const reader = new Reader(bytes)
  const { fields, unsigned } = reader.object(false)
  for (const name of ['TransactionType', 'Account', 'Fee', 'Sequence', 'SigningPubKey']) {
    if (fields[name] === undefined)
      throw new NotATransaction(`Field '${name}' is required but missing.`)
  }
  return {
    hash: sha512Half(PREFIX.id, bytes).toString('hex').toUpperCase(),
    raw: hex.toLowerCase(),
    fields,
    signingBytes: Buffer.concat([PREFIX.sign, unsigned]),
  }
}

class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  #take(length: number): Buffer {
    if (this.#at + length > this.#bytes.length) throw new NotATransaction('ends too early')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }

  #byte(): number {
    return this.#take(1)[0]!
  }

  /** Reads an object, whose fields must be unique and in canonical order. */
  object(nested: boolean): { fields: Fields; unsigned: Buffer } {
    const fields: Fields = {}
    const unsigned: Buffer[] = []
    let last = -1
    while (this.#at < this.#bytes.length) {
      const start = this.#at
      const head = this.#byte()
      if (nested && head === 0xe1) return { fields, unsigned: Buffer.concat(unsigned) }
      const type = head >> 4 || this.#byte()
      const number = head & 15 || this.#byte()
      const definition = BY_CODE.get(type * 256 + number)
      if (!definition)
        throw new NotATransaction(`field ${type}/${number} is not served by this ledger`)
      if (type * 256 + number <= last)
        throw new NotATransaction('fields are not in canonical order')
      last = type * 256 + number
      fields[definition.name] = this.#value(definition.type)
      if (definition.name !== 'TxnSignature') unsigned.push(this.#bytes.subarray(start, this.#at))
    }
    if (nested) throw new NotATransaction('ends too early')
    return { fields, unsigned: Buffer.concat(unsigned) }
  }

  #value(type: number): Fields[string] {
    switch (type) {
      case UINT16: {
        const code = this.#take(2).readUInt16BE()
        const name = TYPES[code]
        if (!name)
          throw new NotATransaction(`transactions of type ${code} are not served by this ledger`)
        return name
      }
      case UINT32:
        return this.#take(4).readUInt32BE()
      case HASH256:
        return this.#take(32).toString('hex').toUpperCase()
      case AMOUNT:
        return this.#amount()
      case BLOB:
        return this.#variable().toString('hex').toUpperCase()
      case ACCOUNT: {
        const id = this.#variable()
        if (id.length !== 20) throw new NotATransaction('an account has 20 bytes')
        return encodeAccount(id)
      }
      case ARRAY: {
        const memos: { Memo: Record<string, string> }[] = []
        for (;;) {
          const head = this.#byte()
          if (head === 0xf1) return memos
          if (head !== 0xea) throw new NotATransaction('only memos are served here')
          memos.push({ Memo: this.object(true).fields as Record<string, string> })
        }
      }
      default:
        throw new NotATransaction('a memo stands alone')
    }
  }

  #variable(): Buffer {
    const first = this.#byte()
    if (first <= 192) return this.#take(first)
    if (first <= 240) return this.#take(193 + (first - 193) * 256 + this.#byte())
    throw new NotATransaction('a field is too long')
  }

  #amount(): string | Issued {
    const word = this.#take(8).readBigUInt64BE()
    if ((word & NOT_XRP) === 0n) {
      if ((word & POSITIVE) === 0n && word !== 0n) return `-${word}`
      return (word & ~POSITIVE).toString()
    }
    const currency = this.#take(20).subarray(12, 15).toString('latin1')
    const issuer = encodeAccount(this.#take(20))
    const mantissa = word & ((1n << 54n) - 1n)
    const exponent = Number((word >> 54n) & 0xffn) - 97
    return {
      currency,
      issuer,
      value:
        mantissa === 0n ? '0' : `${(word & POSITIVE) === 0n ? '-' : ''}${mantissa}e${exponent}`,
    }
  }
}

/** Encodes a transaction of the faucet. */
export function writeTransaction(fields: Fields): Buffer {
  const parts: Buffer[] = []
  for (const [type, number, name] of FIELDS) {
    const value = fields[name]
    if (value === undefined) continue
    parts.push(Buffer.from(number < 16 ? [(type << 4) | number] : [type << 4, number]))
    if (type === UINT16)
      parts.push(
        Buffer.from([0, Number(Object.keys(TYPES).find((code) => TYPES[Number(code)] === value))]),
      )
    else if (type === UINT32) parts.push(uint32(value as number))
    else if (type === AMOUNT) parts.push(writeAmount(value as string | Issued))
    else if (type === BLOB) parts.push(variable(Buffer.from(value as string, 'hex')))
    else if (type === ACCOUNT) parts.push(variable(decodeAccount(value as string)!))
    else throw new Error(`the faucet writes no ${name}`)
  }
  return Buffer.concat(parts)
}

export const signingHash = (bytes: Buffer): Buffer => sha512Half(PREFIX.sign, bytes)

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function variable(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from([bytes.length]), bytes])
}

/**
 * Encodes an amount. Issued amounts are supported only as the faucet needs them: whole drops of a
 * currency, value = drops × 10^-6.
 */
function writeAmount(value: string | Issued): Buffer {
  const word = Buffer.alloc(8)
  if (typeof value === 'string') {
    word.writeBigUInt64BE(POSITIVE | BigInt(value))
    return word
  }
  let mantissa = BigInt(value.value.split('e')[0]!)
  let exponent = Number(value.value.split('e')[1])
  for (; mantissa < 10n ** 15n; exponent -= 1) mantissa *= 10n
  word.writeBigUInt64BE(NOT_XRP | POSITIVE | (BigInt(exponent + 97) << 54n) | mantissa)
  const currency = Buffer.alloc(20)
  currency.write(value.currency, 12, 'latin1')
  return Buffer.concat([word, currency, decodeAccount(value.issuer)!])
}
