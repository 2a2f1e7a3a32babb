import { concatBytes } from '@noble/hashes/utils.js'
import { ChainError } from '../types.ts'

/** One data item of CBOR (RFC 8949) with the place of its bytes. */
export type Item = { start: number; end: number } & (
  | { kind: 'uint' | 'negative'; value: bigint }
  | { kind: 'bytes'; value: Uint8Array }
  | { kind: 'text' | 'simple' }
  | { kind: 'array'; items: Item[] }
  | { kind: 'map'; entries: [Item, Item][] }
  | { kind: 'tag'; tag: bigint; item: Item }
)

const DEPTH_MAX = 128
const INDEFINITE = 31
const KINDS = { uint: 0, bytes: 2, array: 4, map: 5, tag: 6 } as const

function fail(message: string): never {
  throw new ChainError('TRANSACTION', message)
}

/** The head of an item in its shortest form. */
export function head(kind: keyof typeof KINDS, value: bigint): Uint8Array {
  const major = KINDS[kind] << 5
  if (value < 0n || value >= 1n << 64n) throw new ChainError('AMOUNT_FORMAT', 'is too large for the chain')
  if (value < 24n) return Uint8Array.of(major | Number(value))
  const [mark, length] = value < 1n << 8n ? [24, 1] : value < 1n << 16n ? [25, 2] : value < 1n << 32n ? [26, 4] : [27, 8]
  const bytes = new Uint8Array(1 + length)
  bytes[0] = major | mark
  for (let at = 0; at < length; at++) bytes[length - at] = Number((value >> BigInt(8 * at)) & 0xffn)
  return bytes
}

export const uint = (value: bigint): Uint8Array => head('uint', value)
export const byteString = (bytes: Uint8Array): Uint8Array => concatBytes(head('bytes', BigInt(bytes.length)), bytes)
export const array = (items: readonly Uint8Array[]): Uint8Array => concatBytes(head('array', BigInt(items.length)), ...items)
export const map = (
  entries: readonly (readonly [Uint8Array, Uint8Array])[]
): Uint8Array => concatBytes(head('map', BigInt(entries.length)), ...entries.flat())
export const tagged = (tag: bigint, item: Uint8Array): Uint8Array => concatBytes(head('tag', tag), item)

/**
 * Reads exactly one item, in whatever form its maker wrote it: other people's transactions are not canonical.
 * @throws ChainError `TRANSACTION`
 */
export function read(bytes: Uint8Array): Item {
  const reader = new Reader(bytes)
  const item = reader.item(0)
  if (item.end !== bytes.length) fail('has bytes after its end')
  return item
}

class Reader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  #take(length: number): Uint8Array {
    if (this.#at + length > this.#bytes.length) fail('ends too early')
    return this.#bytes.subarray(this.#at, this.#at += length)
  }

  /** Null: of indefinite length. */
  #argument(info: number): bigint | null {
    if (info < 24) return BigInt(info)
    if (info === INDEFINITE) return null
    if (info > 27) fail('is not CBOR')
    return this.#take(1 << (info - 24)).reduce((value, byte) => (value << 8n) | BigInt(byte), 0n)
  }

  #isBreak(): boolean {
    if (this.#bytes[this.#at] !== 0xff) return false
    this.#at++
    return true
  }

  /** As many as the head says, or until the break. */
  #each<T>(count: bigint | null, one: () => T): T[] {
    const found: T[] = []
    if (count !== null && count > BigInt(this.#bytes.length)) fail('ends too early')
    while (count === null ? !this.#isBreak() : found.length < Number(count)) found.push(one())
    return found
  }

  #string(kind: number, length: bigint | null): Uint8Array {
    if (length !== null) return this.#take(length > BigInt(this.#bytes.length) ? this.#bytes.length + 1 : Number(length))
    return concatBytes(...this.#each(null, () => {
      const first = this.#take(1)[0] as number
      if (first >> 5 !== kind || (first & INDEFINITE) === INDEFINITE) fail('is not CBOR')
      return this.#string(kind, this.#argument(first & INDEFINITE))
    }))
  }

  item(depth: number): Item {
    if (depth > DEPTH_MAX) fail('is nested too deeply')
    const start = this.#at
    const first = this.#take(1)[0] as number
    const kind = first >> 5
    const info = first & INDEFINITE
    const argument = this.#argument(info)
    const next = () => this.item(depth + 1)
    const number = (): bigint => argument ?? fail('is not CBOR')
    switch (kind) {
      case 0: return { kind: 'uint', value: number(), start, end: this.#at }
      case 1: return { kind: 'negative', value: -1n - number(), start, end: this.#at }
      case 2: {
        const value = this.#string(kind, argument)
        return { kind: 'bytes', value, start, end: this.#at }
      }
      case 3: {
        this.#string(kind, argument)
        return { kind: 'text', start, end: this.#at }
      }
      case 4: {
        const items = this.#each(argument, next)
        return { kind: 'array', items, start, end: this.#at }
      }
      case 5: {
        const entries = this.#each(argument, (): [Item, Item] => [next(), next()])
        return { kind: 'map', entries, start, end: this.#at }
      }
      case 6: {
        const tag = number()
        const item = next()
        return { kind: 'tag', tag, item, start, end: this.#at }
      }
      default: {
        number()
        return { kind: 'simple', start, end: this.#at }
      }
    }
  }
}

/** The value under a whole-number key of a map, which has it at most once. */
export function field(item: Item, key: number): Item | undefined {
  if (item.kind !== 'map') fail('is not a map where one must be')
  const found = item.entries.filter(([name]) => name.kind === 'uint' && name.value === BigInt(key))
  if (found.length > 1) fail('names a field twice')
  return found[0]?.[1]
}

export function uintOf(item: Item | undefined): bigint {
  return item?.kind === 'uint' ? item.value : fail('has no number where one must be')
}

export function bytesOf(item: Item | undefined): Uint8Array {
  return item?.kind === 'bytes' ? item.value : fail('has no bytes where they must be')
}

/** The items of an array, or of a set (tag 258), which is written as one. */
export function itemsOf(item: Item | undefined): Item[] {
  const inner = item?.kind === 'tag' && item.tag === 258n ? item.item : item
  return inner?.kind === 'array' ? inner.items : fail('has no list where one must be')
}
