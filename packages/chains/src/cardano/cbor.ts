import { concatBytes } from '@noble/hashes/utils.js'
import { ChainError } from '../types.ts'

/** One data item of CBOR (RFC 8949) with the position of its bytes. */
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
const BREAK = 0xff
const KINDS = { uint: 0, bytes: 2, array: 4, map: 5, tag: 6 } as const

function fail(message: string): never {
  throw new ChainError('TRANSACTION', message)
}

/** Encodes the head of an item in its shortest form. */
export function head(kind: keyof typeof KINDS, value: bigint): Uint8Array {
  const major = KINDS[kind] << 5
  if (value < 0n || value >= 1n << 64n)
    throw new ChainError('AMOUNT_FORMAT', 'is too large for the chain')
  if (value < 24n) return Uint8Array.of(major | Number(value))
  const [mark, length] =
    value < 1n << 8n ? [24, 1] : value < 1n << 16n ? [25, 2] : value < 1n << 32n ? [26, 4] : [27, 8]
  const bytes = new Uint8Array(1 + length)
  bytes[0] = major | mark
  for (let at = 0; at < length; at++) bytes[length - at] = Number((value >> BigInt(8 * at)) & 0xffn)
  return bytes
}

export const uint = (value: bigint): Uint8Array => head('uint', value)
export const byteString = (bytes: Uint8Array): Uint8Array =>
  concatBytes(head('bytes', BigInt(bytes.length)), bytes)
export const array = (items: readonly Uint8Array[]): Uint8Array =>
  concatBytes(head('array', BigInt(items.length)), ...items)
export const map = (entries: readonly (readonly [Uint8Array, Uint8Array])[]): Uint8Array =>
  concatBytes(head('map', BigInt(entries.length)), ...entries.flat())
export const tagged = (tag: bigint, item: Uint8Array): Uint8Array =>
  concatBytes(head('tag', tag), item)

/**
 * Reads exactly one item in any encoding, because other people's transactions are not canonical.
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
    return this.#bytes.subarray(this.#at, (this.#at += length))
  }

  /** Reads the argument of a head; null means indefinite length. */
  #argument(info: number): bigint | null {
    if (info < 24) return BigInt(info)
    if (info === INDEFINITE) return null
    if (info > 27) fail('is not CBOR')
    return this.#take(1 << (info - 24)).reduce((value, byte) => (value << 8n) | BigInt(byte), 0n)
  }

  #isBreak(): boolean {
    if (this.#bytes[this.#at] !== BREAK) return false
    this.#at++
    return true
  }

  /** Reads as many items as the head states, or until the break byte. */
  #each<T>(count: bigint | null, one: () => T): T[] {
    const matches: T[] = []
    if (count !== null && count > BigInt(this.#bytes.length)) fail('ends too early')
    while (count === null ? !this.#isBreak() : matches.length < Number(count)) matches.push(one())
    return matches
  }

  #string(kind: number, length: bigint | null): Uint8Array {
    if (length !== null)
      return this.#take(
        length > BigInt(this.#bytes.length) ? this.#bytes.length + 1 : Number(length),
      )
    return concatBytes(
      ...this.#each(null, () => {
        const first = this.#take(1)[0] as number
        if (first >> 5 !== kind || (first & INDEFINITE) === INDEFINITE) fail('is not CBOR')
        return this.#string(kind, this.#argument(first & INDEFINITE))
      }),
    )
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
      case 0:
        return { kind: 'uint', value: number(), start, end: this.#at }
      case 1:
        return { kind: 'negative', value: -1n - number(), start, end: this.#at }
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

/** Position of an item's bytes: start, and end (exclusive). */
export interface Span {
  start: number
  end: number
}

/**
 * Finds the items of a map or an array of which only some are to be read. The others are skipped
 * without recursion, so they may be nested to any depth, as script data can be.
 * @param at position where the map or array begins
 * @param kind expected kind of the item; tags before it are skipped
 * @throws ChainError `TRANSACTION` if the item is of another kind or is truncated
 */
export function spansOf(bytes: Uint8Array, at: number, kind: 'array' | 'map'): Span[] {
  const skipper = new Skipper(bytes, at)
  let result = skipper.head()
  while (result.major === KINDS.tag) result = skipper.head()
  if (result.major !== KINDS[kind])
    fail(`has no ${kind === 'array' ? 'list' : 'map'} where one is required`)
  const perEntry = kind === 'map' ? 2n : 1n
  const spans: Span[] = []
  while (
    result.argument === null
      ? !skipper.isBreak()
      : BigInt(spans.length) < result.argument * perEntry
  ) {
    const start = skipper.at
    skipper.skip()
    spans.push({ start, end: skipper.at })
  }
  if (kind === 'map' && spans.length % 2 !== 0) fail('is not CBOR')
  return spans
}

/**
 * Finds the value under an integer key of a map that begins at `at`, whatever width encodes the
 * key. A map contains a key at most once.
 */
export function spanOfField(bytes: Uint8Array, at: number, key: number): Span | undefined {
  const spans = spansOf(bytes, at, 'map')
  const matches: Span[] = []
  for (let index = 0; index < spans.length; index += 2) {
    const name = spans[index] as Span
    const { major, argument } = new Skipper(bytes, name.start).head()
    if (major === KINDS.uint && argument === BigInt(key)) matches.push(spans[index + 1] as Span)
  }
  if (matches.length > 1) fail('contains a field twice')
  return matches[0]
}

/** Skips items without storing them. */
class Skipper {
  readonly #bytes: Uint8Array
  at: number

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes
    this.at = at
  }

  #take(length: bigint): number {
    const start = this.at
    if (length > BigInt(this.#bytes.length - start)) fail('ends too early')
    this.at = start + Number(length)
    return start
  }

  isBreak(): boolean {
    if (this.#bytes[this.at] !== BREAK) return false
    this.at++
    return true
  }

  /** Reads a head. `argument` is null for an indefinite length. */
  head(): { major: number; argument: bigint | null } {
    const first = this.#bytes[this.#take(1n)] as number
    const [major, info] = [first >> 5, first & INDEFINITE]
    if (info < 24) return { major, argument: BigInt(info) }
    if (info === INDEFINITE) return { major, argument: null }
    if (info > 27) fail('is not CBOR')
    const length = 1 << (info - 24)
    const start = this.#take(BigInt(length))
    let argument = 0n
    for (let at = start; at < start + length; at++)
      argument = (argument << 8n) | BigInt(this.#bytes[at] as number)
    return { major, argument }
  }

  /** Skips one item. Open containers are counted in a list and not entered recursively. */
  skip(): void {
    // Number of items that remain in each open array, map or tag; null means until its break byte.
    const open: (bigint | null)[] = [1n]
    while (open.length > 0) {
      const left = open.at(-1) as bigint | null
      if (left === 0n || (left === null && this.isBreak())) {
        open.pop()
        continue
      }
      if (left !== null) open[open.length - 1] = left - 1n
      const { major, argument } = this.head()
      switch (major) {
        case 2:
        case 3:
          if (argument === null) open.push(null)
          else this.#take(argument)
          break
        case 4:
          open.push(argument)
          break
        case 5:
          open.push(argument === null ? null : argument * 2n)
          break
        case 6:
          if (argument === null) fail('is not CBOR')
          open.push(1n)
          break
        default:
          if (argument === null) fail('is not CBOR')
      }
    }
  }
}

/** Returns the value under an integer key of a map, which contains a key at most once. */
export function field(item: Item, key: number): Item | undefined {
  if (item.kind !== 'map') fail('must contain a map')
  const matches = item.entries.filter(
    ([name]) => name.kind === 'uint' && name.value === BigInt(key),
  )
  if (matches.length > 1) fail('contains a field twice')
  return matches[0]?.[1]
}

export function uintOf(item: Item | undefined): bigint {
  return item?.kind === 'uint' ? item.value : fail('must contain a number')
}

export function bytesOf(item: Item | undefined): Uint8Array {
  return item?.kind === 'bytes' ? item.value : fail('must contain bytes')
}

/** Returns the items of an array, or of a set (tag 258), which is encoded like an array. */
export function itemsOf(item: Item | undefined): Item[] {
  const inner = item?.kind === 'tag' && item.tag === 258n ? item.item : item
  return inner?.kind === 'array' ? inner.items : fail('must contain a list')
}
