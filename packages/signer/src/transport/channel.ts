import type { Duplex } from 'node:stream'

/**
 * A connection between two nodes that has been upgraded from HTTP (`Upgrade`). It carries one call
 * at a time, with one frame in each direction: the length in four bytes, followed by that number of
 * bytes. HTTP around each message would cost three times as much as encrypting and sending it.
 */
export const PROTOCOL_NAME = 'custody-peer'

/** Splits received bytes into frames; at most one frame is in progress. */
export class FrameReader {
  #chunks: Buffer[] = []
  #size = 0
  /** Length of the frame in progress; null until its first four bytes have arrived. */
  #length: number | null = null

  /** Whether no byte of a frame has arrived yet. */
  get isEmpty(): boolean {
    return this.#size === 0
  }

  /** Length of the frame in progress; 0 before it is known. */
  get length(): number {
    return this.#length ?? 0
  }

  /** The bytes of the frame that have arrived in one piece, which contain the name of a call. */
  get begun(): Buffer {
    return this.#chunks[0]?.subarray(4) ?? Buffer.alloc(0)
  }

  /**
   * Adds received bytes.
   * @returns the completed frame, or null
   * @throws Error as soon as its length is known to be above `bytesMax`, and if more bytes follow
   *   it
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

/** Writes one frame that consists of these parts. */
export function writeFrame(stream: Duplex, ...parts: readonly Buffer[]): void {
  const head = Buffer.alloc(4)
  head.writeUInt32BE(parts.reduce((sum, { length }) => sum + length, 0))
  stream.cork()
  stream.write(head)
  for (const part of parts) stream.write(part)
  stream.uncork()
}

/**
 * Returns the beginning of a call's frame: the length of a text, and the text with the call's name
 * and its trace.
 */
export function callHead(path: string, trace: string): Buffer {
  const text = Buffer.from(`${path}\n${trace}`)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(text.length)
  return Buffer.concat([length, text])
}

/**
 * Returns the name of the call in a frame whose first bytes have arrived; null: the name is not
 * complete yet.
 */
export function pathOf(begun: Buffer): string | null {
  const end = 2 + (begun.length < 2 ? Infinity : begun.readUInt16BE())
  return end > begun.length ? null : (begun.toString('utf8', 2, end).split('\n')[0] ?? '')
}

/**
 * Parses a call's frame.
 * @throws Error if the frame is shorter than the length in it
 */
export function callOf(frame: Buffer): { path: string; trace: string; sealed: Buffer } {
  const end = 2 + (frame.length < 2 ? Infinity : frame.readUInt16BE())
  if (end > frame.length) throw new Error('a call without a name')
  const [path = '', trace = ''] = frame.toString('utf8', 2, end).split('\n')
  return { path, trace, sealed: frame.subarray(end) }
}
