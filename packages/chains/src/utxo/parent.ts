import { sha256 } from '@noble/hashes/sha2.js'
import { ChainError, type Network } from '../types.ts'
import { paramsOf } from './address.ts'

/** Maximum size of a transaction in bytes. No block of these networks contains a larger one. */
const BYTES_MAX = 4 * 1024 * 1024
const BYTES_MIN = 10
const VERSION_BYTES = 4
const LOCKTIME_BYTES = 4
/**
 * DIP-2: from this version on, the upper half of the version is a type, and every type except 0 has
 * a payload after the lock time.
 */
const SPECIAL_VERSION = 3
const OUTPOINT_BYTES = 36
const SEQUENCE_BYTES = 4
const VALUE_BYTES = 8
/** BIP144: a byte that would mean zero inputs, followed by a flag byte. */
const MARKER = 0
const WITNESS_FLAG = 1
/** Litecoin: flag for a reference to extension blocks, which is empty. */
const EXTENSION_FLAG = 8

/**
 * A transaction whose outputs are spent: the part that its id covers, and the positions of its
 * outputs.
 */
export interface Parent {
  /** Double SHA-256, in the byte order of inputs. */
  hash: Uint8Array
  /** The transaction without witnesses. */
  stripped: Uint8Array
  output(index: number): { value: bigint; script: Uint8Array } | null
}

/** Reads bytes sequentially, and checks every length against the remaining bytes. */
class Cursor {
  readonly #bytes: Buffer
  at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  skip(length: number): number {
    const start = this.at
    if (length > this.#bytes.length - start) throw new ChainError('TRANSACTION', 'ends too early')
    this.at = start + length
    return start
  }

  /** Reads a CompactSize number. */
  count(): number {
    const first = this.#bytes[this.skip(1)] as number
    if (first < 0xfd) return first
    if (first === 0xfd) return this.#bytes.readUInt16LE(this.skip(2))
    if (first === 0xfe) return this.#bytes.readUInt32LE(this.skip(4))
    const large = this.#bytes.readBigUInt64LE(this.skip(8))
    if (large > BigInt(BYTES_MAX)) throw new ChainError('TRANSACTION', 'ends too early')
    return Number(large)
  }

  skipText(): void {
    this.skip(this.count())
  }
}

/**
 * Reads a previous transaction and computes its id from its bytes. Data that the id does not cover
 * is not used.
 * @throws ChainError `TRANSACTION`
 */
export function readParent(network: Network, hex: string, what: string): Parent {
  // The length is checked first, and the expression has no repeated group, because that would
  // overflow the regular expression's stack on megabytes.
  if (
    hex.length < 2 * BYTES_MIN ||
    hex.length > 2 * BYTES_MAX ||
    hex.length % 2 !== 0 ||
    /[^0-9a-f]/.test(hex)
  )
    throw new ChainError('TRANSACTION', `${what} must be lower-case hex`)
  try {
    return read(network, Buffer.from(hex, 'hex'))
  } catch (error) {
    if (error instanceof ChainError)
      throw new ChainError('TRANSACTION', `${what} is not a Bitcoin transaction`)
    throw error
  }
}

function read(network: Network, bytes: Buffer): Parent {
  const cursor = new Cursor(bytes)
  cursor.skip(VERSION_BYTES)
  const hasTypes = paramsOf(network).special_transactions === true
  const isSpecial =
    hasTypes && bytes.readUInt16LE(0) >= SPECIAL_VERSION && bytes.readUInt16LE(2) !== 0
  // A withdrawal from Dash's credit pool and a quorum commitment spend nothing, so their zero is
  // the number of inputs.
  const marked = bytes[cursor.at] === MARKER && !isSpecial
  const flag = marked ? bytes[cursor.at + 1] : 0
  const isKnown =
    flag === WITNESS_FLAG ||
    (flag === EXTENSION_FLAG && paramsOf(network).extension_blocks === true)
  if (marked && !isKnown) throw new ChainError('TRANSACTION', 'has no inputs')
  if (marked) cursor.skip(2)
  const from = cursor.at
  const inputs = cursor.count()
  for (let count = 0; count < inputs; count++) {
    cursor.skip(OUTPOINT_BYTES)
    cursor.skipText()
    cursor.skip(SEQUENCE_BYTES)
  }
  const places: number[] = []
  for (let left = cursor.count(); left > 0; left--) {
    places.push(cursor.skip(VALUE_BYTES))
    cursor.skipText()
  }
  const to = cursor.at
  if (flag === WITNESS_FLAG) {
    for (let input = 0; input < inputs; input++)
      for (let items = cursor.count(); items > 0; items--) cursor.skipText()
  }
  if (flag === EXTENSION_FLAG) cursor.skip(1)
  const end = cursor.skip(LOCKTIME_BYTES)
  if (isSpecial) cursor.skipText()
  if (cursor.at !== bytes.length) throw new ChainError('TRANSACTION', 'has bytes after its end')
  const stripped = Buffer.concat([
    bytes.subarray(0, VERSION_BYTES),
    bytes.subarray(from, to),
    bytes.subarray(end),
  ])
  const offset = from - VERSION_BYTES
  return {
    hash: sha256(sha256(stripped)),
    stripped,
    output(index) {
      const place = places[index]
      if (place === undefined) return null
      const script = new Cursor(stripped)
      script.at = place - offset + VALUE_BYTES
      const length = script.count()
      return {
        value: stripped.readBigUInt64LE(place - offset),
        script: Uint8Array.from(stripped.subarray(script.at, script.at + length)),
      }
    },
  }
}

/**
 * Returns the part of a previous transaction that its id covers, without witnesses. For
 * transactions with embedded images it is up to twenty times smaller.
 */
export function strippedParent(network: Network, hex: string): string {
  return Buffer.from(readParent(network, hex, 'previous transaction').stripped).toString('hex')
}
