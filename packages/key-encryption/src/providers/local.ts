import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { associatedData, dataKeyOf, fromBase64 } from '../binding.ts'
import { KekError } from '../errors.ts'
import type { KeyEncryption } from '../types.ts'

const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Returns a key that this process holds in memory: AES-256-GCM. Its version is a check value, which
 * distinguishes a different key from changed bytes.
 */
export function heldKek(id: string, setting: string, key: () => Promise<Buffer>): KeyEncryption {
  const versionOf = (kek: Buffer): string =>
    createHmac('sha256', kek).update('custody/key-encryption/check/v1').digest('hex').slice(0, 16)
  return {
    id,
    async wrap(dataKey, binding) {
      const kek = await key()
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', kek, nonce).setAAD(associatedData(binding))
      const sealed = Buffer.concat([cipher.update(dataKey), cipher.final()])
      return {
        kek_id: id,
        kek_version: versionOf(kek),
        text: Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64'),
      }
    },
    async unwrap({ kek_version: version, text }, binding) {
      const kek = await key()
      if (version !== versionOf(kek))
        throw new KekError('REFUSED', `${setting}: this is not the key that wrapped the data key`)
      const bytes = fromBase64(text, setting)
      const body = NONCE_BYTES + TAG_BYTES
      if (bytes.length < body)
        throw new KekError('REFUSED', `${setting}: the wrapped key is truncated`)
      const decipher = createDecipheriv('aes-256-gcm', kek, bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      })
        .setAAD(associatedData(binding))
        .setAuthTag(bytes.subarray(NONCE_BYTES, body))
      try {
        return dataKeyOf(
          Buffer.concat([decipher.update(bytes.subarray(body)), decipher.final()]),
          setting,
        )
      } catch {
        throw new KekError(
          'REFUSED',
          `${setting}: the wrapped key cannot be decrypted: it belongs to another home, or its bytes were changed`,
        )
      }
    },
  }
}
