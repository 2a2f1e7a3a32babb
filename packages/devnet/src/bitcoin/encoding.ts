import { createHash } from 'node:crypto'

export function sha256(data: Buffer): Buffer {
  return createHash('sha256').update(data).digest()
}

export function hash256(data: Buffer): Buffer {
  return sha256(sha256(data))
}

export function hash160(data: Buffer): Buffer {
  return createHash('ripemd160').update(sha256(data)).digest()
}

/** Returns a hash in display form, with its bytes reversed. */
export function display(hash: Buffer): string {
  return Buffer.from(hash).reverse().toString('hex')
}

export function internal(hash: string): Buffer {
  return Buffer.from(hash, 'hex').reverse()
}

export class Reader {
  readonly buffer: Buffer
  at = 0

  constructor(buffer: Buffer) {
    this.buffer = buffer
  }

  get left(): number {
    return this.buffer.length - this.at
  }

  bytes(length: number): Buffer {
    if (length > this.left) throw new Error('end of data')
    const part = this.buffer.subarray(this.at, this.at + length)
    this.at += length
    return part
  }

  uint8(): number {
    return this.bytes(1).readUInt8(0)
  }

  uint32(): number {
    return this.bytes(4).readUInt32LE(0)
  }

  uint64(): bigint {
    return this.bytes(8).readBigUInt64LE(0)
  }

  compact(): number {
    const first = this.uint8()
    const value =
      first < 253
        ? first
        : first === 253
          ? this.bytes(2).readUInt16LE(0)
          : first === 254
            ? this.uint32()
            : Number(this.uint64())
    const least = first < 253 ? 0 : first === 253 ? 253 : first === 254 ? 0x10000 : 0x100000000
    if (value < least || value > 0x02000000) throw new Error('non-canonical size')
    return value
  }

  data(): Buffer {
    return this.bytes(this.compact())
  }
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value >>> 0)
  return bytes
}

export function uint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(value)
  return bytes
}

export function compact(value: number): Buffer {
  if (value < 253) return Buffer.from([value])
  const bytes = Buffer.alloc(value < 0x10000 ? 3 : 5)
  bytes[0] = value < 0x10000 ? 253 : 254
  if (value < 0x10000) bytes.writeUInt16LE(value, 1)
  else bytes.writeUInt32LE(value, 1)
  return bytes
}

export function data(bytes: Buffer): Buffer {
  return Buffer.concat([compact(bytes.length), bytes])
}
