import { base64 } from '@scure/base'
import { AuthError } from './types.ts'

/**
 * Returns why a text is not a private key that can sign requests; null if no fault was found. The
 * result contains no part of the key.
 */
export function whyNoPrivateKey(pem: string): string | null {
  if (/BEGIN (RSA )?PUBLIC KEY|BEGIN CERTIFICATE/.test(pem))
    return 'is a public key: requests are signed with the private key'
  if (/BEGIN ENCRYPTED PRIVATE KEY|Proc-Type: 4,ENCRYPTED/.test(pem)) {
    return 'is encrypted: decrypt it first (openssl pkey -in FILE -out NEW)'
  }
  if (/BEGIN OPENSSH PRIVATE KEY/.test(pem))
    return 'is an OpenSSH key: an RSA key as PEM is required ("custody keygen" creates one)'
  return null
}

export const UNREADABLE_KEY = 'is not a readable PEM private key ("BEGIN PRIVATE KEY")'

const refuse = (sentence: string): never => {
  throw new AuthError('private_key', sentence)
}

const INTEGER = 0x02
const OCTETS = 0x04
const OID = 0x06
const SEQUENCE = 0x30
/** AlgorithmIdentifier of rsaEncryption with its NULL (RFC 8017, appendix C). */
const RSA_ENCRYPTION = Uint8Array.from([
  SEQUENCE,
  13,
  OID,
  9,
  0x2a,
  0x86,
  0x48,
  0x86,
  0xf7,
  0x0d,
  0x01,
  0x01,
  0x01,
  0x05,
  0x00,
])

/**
 * Returns one DER value: tag, length, and content of at least 128 bytes, which every structure
 * around an RSA key has.
 */
function der(tag: number, content: Uint8Array): Uint8Array<ArrayBuffer> {
  const size: number[] = []
  for (let left = content.length; left > 0; left = Math.floor(left / 256)) size.unshift(left % 256)
  return Uint8Array.from([tag, 0x80 | size.length, ...size, ...content])
}

/** Returns the start and end of the content of the DER value at an offset. */
function span(bytes: Uint8Array, at: number, tag: number): [number, number] {
  const first = bytes[at + 1] ?? 0
  const sizeBytes = first < 128 ? 0 : first - 128
  let length = first < 128 ? first : 0
  for (let i = 0; i < sizeBytes; i++) length = length * 256 + (bytes[at + 2 + i] ?? 0)
  const start = at + 2 + sizeBytes
  if (bytes[at] !== tag || start + length > bytes.length) refuse(UNREADABLE_KEY)
  return [start, start + length]
}

const isRsa = (bytes: Uint8Array, from: number) =>
  RSA_ENCRYPTION.subarray(2, 13).every((byte, i) => bytes[from + i] === byte)

/**
 * Returns a caller's RSA private key as PKCS#8 in DER, from PEM (PKCS#8 or PKCS#1).
 * @throws AuthError with claim `private_key` and a sentence that contains no part of the key
 */
export function pkcs8OfPem(pem: string): Uint8Array<ArrayBuffer> {
  const reason = whyNoPrivateKey(pem)
  if (reason !== null) refuse(reason)
  const block =
    /-----BEGIN (RSA |EC )?PRIVATE KEY-----([\sA-Za-z0-9+/=]+)-----END \1?PRIVATE KEY-----/.exec(
      pem,
    )
  let bytes: Uint8Array
  try {
    bytes = base64.decode((block?.[2] ?? '').replaceAll(/\s/g, ''))
  } catch {
    return refuse(UNREADABLE_KEY)
  }
  if (block?.[1] === 'EC ') return refuse('is a key of ec: an RSA key is required')
  if (block?.[1] === 'RSA ') {
    span(bytes, 0, SEQUENCE)
    const key = der(OCTETS, bytes)
    return der(SEQUENCE, Uint8Array.from([INTEGER, 1, 0, ...RSA_ENCRYPTION, ...key]))
  }
  const [inner] = span(bytes, 0, SEQUENCE)
  const [, version] = span(bytes, inner, INTEGER)
  const [algorithm] = span(bytes, version, SEQUENCE)
  if (!isRsa(bytes, algorithm)) refuse('is a key of another algorithm: an RSA key is required')
  return Uint8Array.from(bytes)
}

const ED25519_SPKI = Uint8Array.from([
  SEQUENCE,
  42,
  SEQUENCE,
  5,
  OID,
  3,
  0x2b,
  0x65,
  0x70,
  0x03,
  33,
  0,
])

/** Returns the 32 bytes of an Ed25519 public key in PEM (RFC 8410); null for any other text. */
export function ed25519OfPem(pem: string): Uint8Array | null {
  const block =
    /^\s*-----BEGIN PUBLIC KEY-----([\sA-Za-z0-9+/=]+)-----END PUBLIC KEY-----\s*$/.exec(pem)
  try {
    const bytes = base64.decode((block?.[1] ?? '').replaceAll(/\s/g, ''))
    const isOne =
      bytes.length === ED25519_SPKI.length + 32 &&
      ED25519_SPKI.every((byte, i) => bytes[i] === byte)
    return isOne ? bytes.slice(ED25519_SPKI.length) : null
  } catch {
    return null
  }
}
