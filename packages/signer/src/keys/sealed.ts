import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  randomBytes,
  type KeyObject,
} from 'node:crypto'

/**
 * A text that only the holder of the offline recovery key can decrypt: ephemeral X25519,
 * HKDF-SHA256, AES-256-GCM.
 */
export interface SealedText {
  ephemeral: string
  nonce: string
  text: string
  tag: string
}

const publicOf = (raw: string): KeyObject =>
  createPublicKey({
    key: { kty: 'OKP', crv: 'X25519', x: Buffer.from(raw, 'hex').toString('base64url') },
    format: 'jwk',
  })

/**
 * Returns the key pair of a raw secret. The public half is computed, because PKCS#8 contains only
 * the secret.
 */
function recoveryKey(secret: Uint8Array): KeyObject {
  const prefix = Buffer.from('302e020100300506032b656e04220420', 'hex')
  return createPrivateKey({ key: Buffer.concat([prefix, secret]), format: 'der', type: 'pkcs8' })
}

const rawPublic = (key: KeyObject): Buffer =>
  Buffer.from(createPublicKey(key).export({ format: 'jwk' }).x!, 'base64url')
export const recoveryPublicKey = (secret: Uint8Array): string =>
  rawPublic(recoveryKey(secret)).toString('hex')

const keyOf = (shared: Buffer, ephemeral: Buffer, recovery: Buffer): Buffer =>
  Buffer.from(
    hkdfSync('sha256', shared, Buffer.concat([ephemeral, recovery]), 'custody/backup-home/v1', 32),
  )

export function sealText(text: string, recovery: string): SealedText {
  const { privateKey } = generateKeyPairSync('x25519')
  const ephemeral = rawPublic(privateKey)
  const key = keyOf(
    diffieHellman({ privateKey, publicKey: publicOf(recovery) }),
    ephemeral,
    Buffer.from(recovery, 'hex'),
  )
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return {
    ephemeral: ephemeral.toString('hex'),
    nonce: nonce.toString('hex'),
    text: sealed.toString('base64'),
    tag: cipher.getAuthTag().toString('hex'),
  }
}

export function openText(sealed: SealedText, secret: Uint8Array): string {
  const privateKey = recoveryKey(secret)
  const key = keyOf(
    diffieHellman({ privateKey, publicKey: publicOf(sealed.ephemeral) }),
    Buffer.from(sealed.ephemeral, 'hex'),
    rawPublic(privateKey),
  )
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(sealed.nonce, 'hex'), {
    authTagLength: 16,
  })
  decipher.setAuthTag(Buffer.from(sealed.tag, 'hex'))
  return Buffer.concat([
    decipher.update(Buffer.from(sealed.text, 'base64')),
    decipher.final(),
  ]).toString('utf8')
}
