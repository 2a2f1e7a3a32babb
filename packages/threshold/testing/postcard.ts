/**
 * The encoding of the engines' messages: the parts of a value in sequence, with lengths as varints.
 */
export type Layout =
  | { kind: 'fixed'; bytes: number }
  /** A length, then that number of bytes; null: any number. */
  | { kind: 'bytes'; count: number | null }
  | { kind: 'list'; of: Layout; count: number }
  | { kind: 'struct'; fields: Record<string, Layout> }
  | { kind: 'option'; of: Layout }
  | { kind: 'varint' }
  /** All remaining bytes. */
  | { kind: 'rest' }

export const fixed = (bytes: number): Layout => ({ kind: 'fixed', bytes })
export const bytes = (count: number | null = null): Layout => ({ kind: 'bytes', count })
export const list = (count: number, of: Layout): Layout => ({ kind: 'list', count, of })
export const struct = (fields: Record<string, Layout>): Layout => ({ kind: 'struct', fields })
export const option = (of: Layout): Layout => ({ kind: 'option', of })
export const varint: Layout = { kind: 'varint' }
export const rest: Layout = { kind: 'rest' }

/**
 * Position of a named part: the whole part begins at `at`, its content at `from` (after its
 * length), and both end at `end`.
 */
export interface Part {
  at: number
  from: number
  end: number
  layout: Layout
}

export function readVarint(data: Uint8Array, at: number): { value: number; end: number } {
  let value = 0
  for (let shift = 0; shift < 35; shift += 7) {
    const byte = data[at++]
    if (byte === undefined) throw new Error('postcard: a length is cut off')
    value += (byte & 0x7f) * 2 ** shift
    if (byte < 0x80) return { value, end: at }
  }
  throw new Error('postcard: a length is too large')
}

export function varintOf(value: number): Buffer {
  const out: number[] = []
  let rest = value
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) out.push((rest % 0x80) | 0x80)
  return Buffer.from([...out, rest])
}

/** @throws Error if the data has another layout, or more bytes follow */
export function parse(data: Uint8Array, layout: Layout): Map<string, Part> {
  const parts = new Map<string, Part>()
  const take = (name: string, each: Layout, at: number): number => {
    const under = (key: string | number): string => (name === '' ? String(key) : `${name}.${key}`)
    let [from, end] = [at, at]
    if (each.kind === 'fixed') end = at + each.bytes
    else if (each.kind === 'rest') end = data.length
    else if (each.kind === 'varint') ({ end } = readVarint(data, at))
    else if (each.kind === 'bytes') {
      const length = readVarint(data, at)
      if (each.count !== null && length.value !== each.count) {
        throw new Error(`postcard: ${name} has ${length.value} bytes instead of ${each.count}`)
      }
      from = length.end
      end = from + length.value
    } else if (each.kind === 'list') {
      const length = readVarint(data, at)
      if (length.value !== each.count)
        throw new Error(`postcard: ${name} has ${length.value} parts instead of ${each.count}`)
      from = end = length.end
      for (let index = 0; index < each.count; index++) end = take(under(index), each.of, end)
    } else if (each.kind === 'option') {
      if (data[at] !== 0 && data[at] !== 1)
        throw new Error(`postcard: ${name} is neither there nor not`)
      from = end = at + 1
      if (data[at] === 1) end = take(name, each.of, end)
    } else {
      for (const [key, field] of Object.entries(each.fields)) end = take(under(key), field, end)
    }
    if (end > data.length) throw new Error(`postcard: ${name} is cut off`)
    if (!parts.has(name)) parts.set(name, { at, from, end, layout: each })
    return end
  }
  const end = take('', layout, 0)
  if (end !== data.length) throw new Error(`postcard: ${data.length - end} bytes follow`)
  return parts
}

export function partOf(parts: ReadonlyMap<string, Part>, name: string): Part {
  const part = parts.get(name)
  if (!part) throw new Error(`postcard: there is no ${name}`)
  return part
}
