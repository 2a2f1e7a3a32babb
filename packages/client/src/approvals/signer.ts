import { ed25519 } from '@noble/curves/ed25519.js'
import { p256 } from '@noble/curves/nist.js'
import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import { base64 } from '@scure/base'
import { refuse } from './errors.ts'

/**
 * Signs statements with a key of a policy document. A key in an HSM or a cloud KMS implements this
 * interface itself.
 */
export interface StatementSigner {
  readonly alg: 'Ed25519' | 'ES256'
  /** Base64 of the DER SubjectPublicKeyInfo, as the document contains it. */
  readonly spki: string
  /**
   * Returns 64 bytes: R ‖ S of Ed25519 (RFC 8032), or r ‖ s of ECDSA with P-256 and SHA-256, which the
   * signer computes.
   */
  sign(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>
}

const SEQUENCE = 0x30
const INTEGER = 0x02
const OCTETS = 0x04
const OID = 0x06
const OID_ED25519 = '2b6570'
const OID_EC = '2a8648ce3d0201'
const OID_P256 = '2a8648ce3d030107'
/** DER before the public key (RFC 8410, section 4; RFC 5480, section 2). */
const SPKI_ED25519 = '302a300506032b6570032100'
const SPKI_P256 = '3059301306072a8648ce3d020106082a8648ce3d030107034200'

const unreadable = (): never =>
  refuse('SIGNER', 'the text is not a PEM file with an Ed25519 or P-256 private key')

/** Reads DER values one after the other. Lengths have at most two bytes. */
class Der {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** Returns the content of the next value. @throws ApprovalError `SIGNER` */
  next(tag: number): Uint8Array {
    const bytes = this.#bytes
    if (bytes[this.#at] !== tag) return unreadable()
    let length = bytes[this.#at + 1] ?? 0
    this.#at += 2
    if (length >= 0x80) {
      const size = length - 0x80
      if (size < 1 || size > 2) return unreadable()
      length = Number(`0x${bytesToHex(bytes.subarray(this.#at, this.#at + size)) || '0'}`)
      this.#at += size
    }
    const content = bytes.subarray(this.#at, this.#at + length)
    if (content.length !== length) return unreadable()
    this.#at += length
    return content
  }
}

const secretOf = (bytes: Uint8Array): Uint8Array => (bytes.length === 32 ? bytes : unreadable())

/** Returns the secret of an ECPrivateKey (RFC 5915, section 3). */
function ecSecret(bytes: Uint8Array): Uint8Array {
  const key = new Der(new Der(bytes).next(SEQUENCE))
  key.next(INTEGER)
  return secretOf(key.next(OCTETS))
}

/** Returns the kind and the secret of a private key in PEM: PKCS#8, or SEC 1 for P-256. */
function readPem(pem: string): { alg: StatementSigner['alg']; secret: Uint8Array } {
  if (/ENCRYPTED/.test(pem))
    refuse('SIGNER', 'the private key is encrypted: decrypt it with "openssl pkey" first')
  if (/BEGIN PUBLIC KEY/.test(pem) && !/PRIVATE KEY/.test(pem))
    refuse('SIGNER', 'the key is a public key: statements are signed with the private key')
  const block =
    /-----BEGIN (EC )?PRIVATE KEY-----([\sA-Za-z0-9+/=]+)-----END \1?PRIVATE KEY-----/.exec(pem)
  let bytes: Uint8Array
  try {
    bytes = base64.decode((block?.[2] ?? '').replaceAll(/\s/g, ''))
  } catch {
    return unreadable()
  }
  // The curve of a SEC 1 key is in a field that may be absent; a wrong one gives another public key,
  // which is in no document.
  if (block?.[1] !== undefined) return { alg: 'ES256', secret: ecSecret(bytes) }
  const key = new Der(new Der(bytes).next(SEQUENCE))
  key.next(INTEGER)
  const algorithm = new Der(key.next(SEQUENCE))
  const oid = bytesToHex(algorithm.next(OID))
  const secret = key.next(OCTETS)
  if (oid === OID_ED25519) return { alg: 'Ed25519', secret: secretOf(new Der(secret).next(OCTETS)) }
  if (oid === OID_EC && bytesToHex(algorithm.next(OID)) === OID_P256)
    return { alg: 'ES256', secret: ecSecret(secret) }
  return refuse('SIGNER', 'the key is of another kind: an Ed25519 or P-256 key is required')
}

/**
 * Returns the signer of a private key, which is used in this process only.
 * @param pem unencrypted PEM: PKCS#8, or SEC 1 for P-256
 * @throws ApprovalError `SIGNER` with a sentence that contains no part of the key
 */
export function keySigner(pem: string): StatementSigner {
  const { alg, secret } = readPem(pem)
  const isEd25519 = alg === 'Ed25519'
  let point: Uint8Array
  try {
    point = isEd25519 ? ed25519.getPublicKey(secret) : p256.getPublicKey(secret, false)
  } catch {
    return unreadable()
  }
  const prefix = hexToBytes(isEd25519 ? SPKI_ED25519 : SPKI_P256)
  return {
    alg,
    spki: base64.encode(Uint8Array.of(...prefix, ...point)),
    sign: (bytes) =>
      isEd25519
        ? ed25519.sign(bytes, secret)
        : p256.sign(bytes, secret, { prehash: true, format: 'compact' }),
  }
}
