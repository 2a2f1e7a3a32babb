import type { Duplex } from 'node:stream'

/**
 * A connection between two nodes that has ceased to be HTTP (`Upgrade`): on it one call at a time,
 * and each way one frame, its length in four bytes and then so many. HTTP around each message costs
 * three times what encrypting and sending it does.
 */
export const PROTOCOL_NAME = 'custody-peer'

/** Cuts what comes into frames; not more than one is under way. */
export class FrameReader {
  #chunks: Buffer[] = []
  #size = 0
  /** Of the frame that comes; null until its first four bytes are here. */
  #length: number | null = null

  /** Whether nothing of a frame has come yet. */
  get isEmpty(): boolean {
    return this.#size === 0
  }

  /** How long the frame is that comes; 0 before that is known. */
  get length(): number {
    return this.#length ?? 0
  }

  /** What has come of a frame, where it is in one piece: of a call its name. */
  get begun(): Buffer {
    return this.#chunks[0]?.subarray(4) ?? Buffer.alloc(0)
  }

  /**
   * @returns the frame that ends here, or null
   * @throws Error as soon as its length is known to be above `bytesMax`, and where something
   *   follows it
   */
  push(chunk: Buffer, bytesMax: number): Buffer | null {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    if (this.#length === null) {
      if (this.#size < 4) return null
      if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)]
      this.#length = this.#chunks[0]!.readUInt32BE()
      if (this.#length > bytesMax) throw new Error(`more than ${bytesMax} bytes`)
    }
    if (this.#size < 4 + this.#length) return null
    if (this.#size > 4 + this.#length) throw new Error('more than one frame')
    const [first] = this.#chunks
    const whole = this.#chunks.length === 1 ? first! : Buffer.concat(this.#chunks)
    this.#chunks = []
    this.#size = 0
    this.#length = null
    return whole.subarray(4)
  }
}

/** Writes one frame of these parts. */
export function writeFrame(stream: Duplex, ...parts: readonly Buffer[]): void {
  const head = Buffer.alloc(4)
  head.writeUInt32BE(parts.reduce((sum, { length }) => sum + length, 0))
  stream.cork()
  stream.write(head)
  for (const part of parts) stream.write(part)
  stream.uncork()
}

/**
 * A call's frame begins with what it calls and the trace it belongs to, in a text whose length
 * comes first.
 */
export function callHead(path: string, trace: string): Buffer {
  const text = Buffer.from(`${path}\n${trace}`)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(text.length)
  return Buffer.concat([length, text])
}

/** What a frame calls whose first bytes are here; null: not yet all of the name. */
export function pathOf(begun: Buffer): string | null {
  const end = 2 + (begun.length < 2 ? Infinity : begun.readUInt16BE())
  return end > begun.length ? null : (begun.toString('utf8', 2, end).split('\n')[0] ?? '')
}

/** @throws Error where the frame is too short for what it says */
export function callOf(frame: Buffer): { path: string; trace: string; sealed: Buffer } {
  const end = 2 + (frame.length < 2 ? Infinity : frame.readUInt16BE())
  if (end > frame.length) throw new Error('a call without a name')
  const [path = '', trace = ''] = frame.toString('utf8', 2, end).split('\n')
  return { path, trace, sealed: frame.subarray(end) }
}
