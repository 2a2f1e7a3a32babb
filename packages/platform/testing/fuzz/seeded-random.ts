/** Random generator of one case: the same seed and number give the same case. */
export class SeededRandom {
  #state: number

  constructor(seed: number, at: number) {
    this.#state = (Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(at + 1, 0x85ebca6b)) >>> 0
    for (let turn = 0; turn < 4; turn++) this.#word()
  }

  #word(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let word = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word
    return (word ^ (word >>> 14)) >>> 0
  }

  /** Returns an integer from 0 to `below` − 1. */
  below(below: number): number {
    return below <= 1 ? 0 : this.#word() % below
  }

  /** Returns true in this number of a hundred cases. */
  in100(count: number): boolean {
    return this.below(100) < count
  }

  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.below(256))
  }
}

const LENGTHS = [0xfc, 0xfd, 0xfe, 0xff, 0x7f, 0x80, 0x00, 0x01, 0x9f, 0xbf, 0x5f, 0x1b, 0xb7, 0xf7]

/**
 * Changes valid bytes: flips bits, truncates, writes wrong lengths, or duplicates, removes or
 * inserts parts, also from another case.
 */
export function mutateBytes(
  random: SeededRandom,
  args: Uint8Array,
  others: readonly Uint8Array[],
): Uint8Array {
  let bytes = Buffer.from(args)
  for (let left = 1 + random.below(4); left > 0; left--) {
    const at = random.below(bytes.length)
    const length = 1 + random.below(Math.min(40, bytes.length))
    switch (random.below(9)) {
      case 0:
        if (bytes.length > 0) bytes[at] = (bytes[at] as number) ^ (1 << random.below(8))
        break
      case 1:
        if (bytes.length > 0) bytes[at] = random.of(LENGTHS)
        break
      case 2:
        bytes = bytes.subarray(0, at)
        break
      case 3:
        bytes = Buffer.concat([bytes, random.bytes(random.below(70))])
        break
      case 4:
        bytes = Buffer.concat([
          bytes.subarray(0, at),
          bytes.subarray(at, at + length),
          bytes.subarray(at),
        ])
        break
      case 5:
        bytes = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + length)])
        break
      case 6: {
        const other = Buffer.from(random.of(others))
        bytes = Buffer.concat([bytes.subarray(0, at), other.subarray(random.below(other.length))])
        break
      }
      // An eight-byte length that exceeds any memory, also nested a hundred levels deep.
      case 7:
        bytes = Buffer.concat([
          bytes.subarray(0, at),
          Buffer.alloc(8, 0xff),
          bytes.subarray(at + 8),
        ])
        break
      default:
        bytes = Buffer.concat([
          bytes.subarray(0, at),
          Buffer.alloc(1 + random.below(3000), random.of([0x81, 0xc1, 0xa1, 0x0a, 0x12, 0xff])),
          bytes.subarray(at),
        ])
    }
  }
  return new Uint8Array(bytes)
}

const ODD_TEXTS = [
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  '\udfff\ud800',
  '\u202e',
  'ﬁ',
  '０',
  'İ',
  'ß',
  '\u00a0',
  '🦊'.repeat(50),
  'x'.repeat(300),
  'x'.repeat(70_000),
  '__proto__',
  'constructor',
  'toString',
  'null',
  'NaN',
  'Infinity',
  '-1',
  '0',
  '-0',
  '00',
  '1e400',
  '1e-400',
  '0x10',
  '1.',
  '.5',
  '1_000',
  '999999999999999999999999999999999999999999999999',
  '0.'.padEnd(90, '0') + '1',
  "' or 1=1 --",
  '%00',
  '%',
  '../../etc/passwd',
  '<script>',
  '${jndi:x}',
  '2026-13-45T99:99:99Z',
  '1970-01-01T00:00:00Z',
  '00000000-0000-0000-0000-000000000000',
  'http://127.0.0.1:1/',
  'javascript:1',
]
export const oddText = (random: SeededRandom): string => random.of(ODD_TEXTS)

/** Returns a valid text with a small change. */
export function mutateText(random: SeededRandom, input: string): string {
  let text = input
  for (let left = 1 + random.below(3); left > 0; left--) {
    const at = random.below(text.length + 1)
    switch (random.below(8)) {
      case 0:
        text = text.slice(0, at) + String.fromCharCode(random.below(0x250)) + text.slice(at + 1)
        break
      case 1:
        text = text.slice(0, at)
        break
      case 2:
        text = text.slice(0, at) + random.of(ODD_TEXTS) + text.slice(at)
        break
      case 3:
        text = random.in100(50) ? text.toUpperCase() : text.toLowerCase()
        break
      case 4:
        text = text.slice(0, at) + text.slice(at + 1 + random.below(5))
        break
      case 5:
        text = text + text
        break
      case 6:
        text = random.of(ODD_TEXTS)
        break
      default:
        text =
          text.slice(0, at) +
          random.of([...'0123456789abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ:.-+/']) +
          text.slice(at + 1)
    }
  }
  return text
}

/** Returns a value that no schema allows. */
export function oddValue(random: SeededRandom): unknown {
  switch (random.below(12)) {
    case 0:
      return null
    case 1:
      return random.in100(50)
    case 2:
      return random.of([
        0,
        -1,
        1,
        1.5,
        -0,
        1e21,
        1e308,
        2 ** 31,
        2 ** 32,
        2 ** 53,
        -(2 ** 63),
        2 ** 64,
        1e-7,
        5e-324,
      ])
    case 3:
      return []
    case 4:
      return {}
    case 5:
      return [oddText(random), [[[[]]]], null]
    case 6:
      return { [oddText(random)]: oddText(random), constructor: 1, toString: null, length: -1 }
    case 7:
      return JSON.parse('{"__proto__":{"role":"full"},"hasOwnProperty":1}') as unknown
    case 8:
      return Array.from({ length: 200 }, (_, at) => at)
    case 9:
      return JSON.parse('['.repeat(60) + ']'.repeat(60)) as unknown
    default:
      return oddText(random)
  }
}

/**
 * Changes valid JSON: replaces, removes or duplicates one of its values, or inserts another one.
 */
export function mutateJson(random: SeededRandom, input: unknown): unknown {
  const value = structuredClone(input)
  const places: { holder: Record<string, unknown> | unknown[]; key: string | number }[] = []
  const walk = (inner: unknown): void => {
    if (typeof inner !== 'object' || inner === null) return
    for (const key of Array.isArray(inner) ? inner.keys() : Object.keys(inner)) {
      places.push({ holder: inner as Record<string, unknown>, key })
      walk((inner as Record<string, unknown>)[key])
    }
  }
  walk(value)
  if (places.length === 0 || random.in100(3)) return oddValue(random)
  for (let left = 1 + random.below(2); left > 0; left--) {
    const { holder, key } = random.of(places)
    const list = holder as Record<string | number, unknown>
    // The value may be inherited if the own property was removed before.
    const old = Object.hasOwn(list, key) ? list[key] : null
    switch (random.below(8)) {
      case 0:
        if (Array.isArray(holder)) holder.splice(Number(key), 1)
        else delete list[key]
        break
      case 1:
        if (Array.isArray(holder)) holder.push(old)
        else
          Object.defineProperty(list, oddText(random).slice(0, 300), {
            value: oddValue(random),
            enumerable: true,
            configurable: true,
            writable: true,
          })
        break
      case 2:
        if (typeof old === 'string') list[key] = mutateText(random, old)
        else if (typeof old === 'number')
          list[key] = random.of([old + 1, -old, old * 1e15, old + 0.5, String(old)])
        else list[key] = oddValue(random)
        break
      case 3:
        if (typeof old === 'string') list[key] = mutateText(random, old)
        else list[key] = [old]
        break
      case 4:
        if (typeof old === 'string' && /^([0-9a-f]{2})+$/i.test(old))
          list[key] = Buffer.from(
            mutateBytes(random, Buffer.from(old, 'hex'), [random.bytes(40)]),
          ).toString('hex')
        else list[key] = oddValue(random)
        break
      case 5: {
        const other = random.of(places)
        if (Object.hasOwn(other.holder, other.key))
          list[key] = structuredClone((other.holder as Record<string | number, unknown>)[other.key])
        break
      }
      default:
        list[key] = oddValue(random)
    }
  }
  return value
}
