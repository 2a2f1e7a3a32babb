import { base32nopad } from '@scure/base'

/** First byte of each kind of key that can be paid (SEP-23). */
export const ACCOUNT = 6 << 3
export const MUXED = 12 << 3

/** Computes CRC16/XMODEM, low byte first. */
function checksum(bytes: Uint8Array): [number, number] {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff
  }
  return [crc & 0xff, crc >> 8]
}

/** Encodes as SEP-23 prescribes: base32 of version, payload and checksum. */
export function encodeStrKey(version: number, payload: Uint8Array): string {
  const bytes = Uint8Array.from([version, ...payload])
  return base32nopad.encode(Uint8Array.from([...bytes, ...checksum(bytes)]))
}

/** Returns the payload of a key of the given kind and size; null for every other text. */
export function decodeStrKey(version: number, size: number, text: string): Uint8Array | null {
  let bytes: Uint8Array
  try {
    bytes = base32nopad.decode(text)
  } catch {
    return null
  }
  const body = bytes.subarray(0, -2)
  const [low, high] = checksum(body)
  const isSound =
    bytes.length === size + 3 &&
    bytes[0] === version &&
    bytes.at(-2) === low &&
    bytes.at(-1) === high
  return isSound ? body.subarray(1) : null
}
