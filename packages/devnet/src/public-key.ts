import { createECDH } from 'node:crypto'

/**
 * Returns the public key of a secp256k1 secret: 65 bytes, or 33 if `compressed`. It uses OpenSSL,
 * because the other libraries first compute a table, which takes longer than all keys of a start
 * together.
 */
export function publicKeyOf(
  secret: Uint8Array,
  form: 'uncompressed' | 'compressed' = 'uncompressed',
): Buffer {
  const pair = createECDH('secp256k1')
  pair.setPrivateKey(secret)
  return pair.getPublicKey(null, form)
}
