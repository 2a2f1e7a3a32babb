const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const VERSION = { G: 6 << 3, M: 12 << 3, C: 2 << 3 }

function base32(bytes: Buffer): string {
  let text = ''
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = (value << 8) | byte
    bits += 8
    while (bits >= 5) {
      text += ALPHABET[(value >>> (bits - 5)) & 31]!
      bits -= 5
    }
    value &= (1 << bits) - 1
  }
  return bits > 0 ? text + ALPHABET[(value << (5 - bits)) & 31]! : text
}

function unbase32(text: string): Buffer | undefined {
  const bytes: number[] = []
  let bits = 0
  let value = 0
  for (const letter of text) {
    const digit = ALPHABET.indexOf(letter)
    if (digit < 0) return undefined
    value = (value << 5) | digit
    bits += 5
    if (bits >= 8) {
      bytes.push((value >>> (bits - 8)) & 255)
      bits -= 8
      value &= (1 << bits) - 1
    }
  }
  return Buffer.from(bytes)
}

/** Computes CRC16-XModem. */
function checksum(bytes: Buffer): Buffer {
  let crc = 0
  for (const byte of bytes) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit += 1)
      crc = (crc & 0x8000) !== 0 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff
  }
  return Buffer.from([crc & 255, crc >> 8])
}

export function encodeKey(kind: keyof typeof VERSION, payload: Buffer): string {
  const body = Buffer.concat([Buffer.from([VERSION[kind]]), payload])
  return base32(Buffer.concat([body, checksum(body)]))
}

/** Returns the account behind a G… or M… address; undefined for another text. */
export function readKey(
  text: string,
): { account: string; key: Buffer; id: bigint | null } | undefined {
  const kind = text[0] === 'G' ? 'G' : text[0] === 'M' ? 'M' : undefined
  const bytes = kind && unbase32(text)
  if (!kind || !bytes || bytes.length !== (kind === 'G' ? 35 : 43)) return undefined
  const payload = bytes.subarray(1, -2)
  if (encodeKey(kind, payload) !== text) return undefined
  const key = payload.subarray(0, 32)
  return {
    account: encodeKey('G', key),
    key,
    id: kind === 'M' ? payload.readBigUInt64BE(32) : null,
  }
}
