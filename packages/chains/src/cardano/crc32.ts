const POLYNOMIAL = 0xedb88320

/**
 * Computes CRC-32 of IEEE 802.3, the checksum of Byron addresses. zlib's implementation exists only
 * in Node.js.
 */
export function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? POLYNOMIAL : 0)
  }
  return (crc ^ 0xffffffff) >>> 0
}
