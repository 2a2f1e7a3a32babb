/** A field in the wire format of protocol buffers, limited to what Tron's messages use. */
export type Field = { field: number; value: bigint | Buffer }

export function readFields(bytes: Buffer): Field[] {
  const fields: Field[] = []
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at]
      if (byte === undefined) throw new Error('a number ends too early')
      at += 1
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return BigInt.asUintN(64, value)
    }
    throw new Error('a number is too long')
  }
  while (at < bytes.length) {
    const tag = Number(varint())
    const field = Math.floor(tag / 8)
    if (field === 0) throw new Error('field 0')
    if (tag % 8 === 0) fields.push({ field, value: varint() })
    else if (tag % 8 === 2) {
      const length = Number(varint())
      if (length > bytes.length - at) throw new Error('a field ends too early')
      fields.push({ field, value: bytes.subarray(at, at + length) })
      at += length
    } else throw new Error(`wire type ${tag % 8}`)
  }
  return fields
}

/** Returns the last value of a field, as protocol buffers prescribe. */
export function numberOf(fields: readonly Field[], field: number): bigint {
  const value = fields.findLast((each) => each.field === field)?.value ?? 0n
  if (typeof value !== 'bigint') throw new Error(`field ${field} is not a number`)
  return BigInt.asIntN(64, value)
}

export function bytesOf(fields: readonly Field[], field: number): Buffer {
  const value = fields.findLast((each) => each.field === field)?.value ?? Buffer.alloc(0)
  if (typeof value === 'bigint') throw new Error(`field ${field} is not bytes`)
  return value
}

export function allBytesOf(fields: readonly Field[], field: number): Buffer[] {
  return fields
    .filter((each) => each.field === field)
    .map(({ value }) => {
      if (typeof value === 'bigint') throw new Error(`field ${field} is not bytes`)
      return value
    })
}

function varint(value: bigint): Buffer {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, value)
  do {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0))
    rest >>= 7n
  } while (rest > 0n)
  return Buffer.from(bytes)
}

/** Encodes a field with a number; no bytes for 0, which proto3 omits. */
export function writeNumber(field: number, value: bigint | number): Buffer {
  return BigInt(value) === 0n
    ? Buffer.alloc(0)
    : Buffer.concat([varint(BigInt(field * 8)), varint(BigInt(value))])
}

export function writeBytes(field: number, ...parts: Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return Buffer.concat([varint(BigInt(field * 8 + 2)), varint(BigInt(length)), ...parts])
}
