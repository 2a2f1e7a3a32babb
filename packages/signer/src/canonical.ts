import { createHash, sign, verify, type KeyObject } from 'node:crypto'

/**
 * Tags of the bytes that identity keys sign: a tag line, followed by JSON with its keys in a fixed
 * order.
 */
export const TAGS = {
  keyCertificate: 'custody/key-certificate/v1\n',
  keyReady: 'custody/key-ready/v1\n',
  subAccount: 'custody/sub-account/v1\n',
  receipt: 'custody/receipt/v1\n',
  void: 'custody/void/v2\n',
  orderWithdrawn: 'custody/order-withdrawn/v1\n',
  reserves: 'custody/reserves/v1\n',
  ban: 'custody/ban/v1\n',
  policyHeld: 'custody/policy-held/v1\n',
  policyInForce: 'custody/policy-in-force/v1\n',
  policyStops: 'custody/policy-stops/v1\n',
  policyReset: 'custody/policy-reset/v1\n',
  backup: 'custody/node-backup/v2\n',
  envelope: 'custody/peer-envelope/v1\n',
} as const

export type Tag = keyof typeof TAGS

export function canonicalBytes(
  tag: Tag,
  keys: readonly string[],
  value: Record<string, unknown>,
): Buffer {
  const ordered: Record<string, unknown> = {}
  for (const key of keys) ordered[key] = value[key]
  return Buffer.from(TAGS[tag] + JSON.stringify(ordered), 'utf8')
}

export const signBytes = (key: KeyObject, bytes: Uint8Array): string =>
  sign(null, bytes, key).toString('hex')

export function verifyBytes(key: KeyObject, bytes: Uint8Array, signature: string): boolean {
  if (!/^[0-9a-f]{128}$/.test(signature)) return false
  return verify(null, bytes, key, Buffer.from(signature, 'hex'))
}

export const sha256 = (...parts: (Uint8Array | string)[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
export const sha256hex = (...parts: (Uint8Array | string)[]): string =>
  sha256(...parts).toString('hex')
export const hex = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
export const fromHex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'hex'))
