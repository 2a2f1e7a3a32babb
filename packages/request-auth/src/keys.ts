import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import { UNREADABLE_KEY, whyNoPrivateKey } from './pem.ts'
import { AuthError } from './types.ts'

const MODULUS_BITS_MIN = 4096
const MODULUS_BITS_MAX = 16384

/**
 * Parses a caller's public key: PEM SubjectPublicKeyInfo, RSA of at least 4096 bits, exponent at
 * least 65537.
 * @throws AuthError with claim `public_key` and a sentence that states what is wrong
 */
export function parsePublicKey(pem: string): KeyObject {
  const text = pem.trim()
  if (/PRIVATE KEY/.test(text)) {
    throw new AuthError(
      'public_key',
      'is a private key: upload the public key only, and treat this private key as disclosed',
    )
  }
  if (
    !/^-----BEGIN PUBLIC KEY-----[\sA-Za-z0-9+/=]+-----END PUBLIC KEY-----$/.test(text) ||
    text.length > 16_384
  ) {
    throw new AuthError(
      'public_key',
      'must be one PEM block "BEGIN PUBLIC KEY" (SubjectPublicKeyInfo)',
    )
  }
  let key: KeyObject
  try {
    key = createPublicKey(text)
  } catch {
    throw new AuthError('public_key', 'is not a readable PEM public key')
  }
  const details = key.asymmetricKeyDetails
  if (key.asymmetricKeyType !== 'rsa' || !details)
    throw new AuthError('public_key', 'must be an RSA key')
  const bits = details.modulusLength ?? 0
  if (bits < MODULUS_BITS_MIN)
    throw new AuthError('public_key', `has ${bits} bits; at least ${MODULUS_BITS_MIN} are required`)
  if (bits > MODULUS_BITS_MAX)
    throw new AuthError('public_key', `has ${bits} bits; at most ${MODULUS_BITS_MAX} are accepted`)
  if ((details.publicExponent ?? 0n) < 65_537n || (details.publicExponent ?? 0n) % 2n === 0n) {
    throw new AuthError('public_key', 'has a public exponent below 65537, or an even one')
  }
  return key
}

/**
 * Returns a public key in its canonical form, in which it is stored and shown: PEM with lines of 64
 * characters. Other forms may contain arbitrary text that the creator of the key has chosen.
 * @param pem in a form that {@link parsePublicKey} accepts
 * @throws AuthError as {@link parsePublicKey} does
 */
export const canonicalPublicKey = (pem: string): string =>
  (parsePublicKey(pem).export({ type: 'spki', format: 'pem' }) as string).trim()

/**
 * Returns a public key as one word of letters, digits, `+`, `/` and `=`, which no shell interprets
 * otherwise.
 * @returns base64 of its DER SubjectPublicKeyInfo
 */
export const publicKeyWord = (pem: string): string =>
  parsePublicKey(pem).export({ type: 'spki', format: 'der' }).toString('base64')

/**
 * Parses a caller's private key: PEM (PKCS#8 or PKCS#1) of an RSA key, not encrypted.
 * @throws AuthError with claim `private_key` and a sentence that contains neither a part of the key
 *   nor OpenSSL's message
 */
export function parsePrivateKey(pem: string): KeyObject {
  const refuse = (sentence: string): never => {
    throw new AuthError('private_key', sentence)
  }
  const reason = whyNoPrivateKey(pem)
  if (reason !== null) return refuse(reason)
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch {
    return refuse(UNREADABLE_KEY)
  }
  return key.asymmetricKeyType === 'rsa'
    ? key
    : refuse(`is a key of ${String(key.asymmetricKeyType)}: an RSA key is required`)
}

/**
 * Returns the fingerprint of a key, by which two people can check that they have the same key.
 * @returns lower-case hex SHA-256 of its DER SubjectPublicKeyInfo, as `openssl pkey -pubin -outform
 *   DER | sha256sum` prints it
 */
export function fingerprintOfKey(key: KeyObject): string {
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')
}
