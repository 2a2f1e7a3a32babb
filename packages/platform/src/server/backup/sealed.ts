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
import { readFileSync } from 'node:fs'
import { z } from 'zod'

/**
 * Data that only the holder of an offline recovery key can decrypt: ephemeral X25519, HKDF-SHA256,
 * AES-256-GCM. All fields in hex, `text` in base64.
 */
export const sealedSchema = z.strictObject({
  ephemeral: z.string(),
  nonce: z.string(),
  text: z.string(),
  tag: z.string(),
})
export type Sealed = z.infer<typeof sealedSchema>

const KEY = /^[0-9a-f]{64}$/
const PKCS8 = Buffer.from('302e020100300506032b656e04220420', 'hex')
const secretKey = (secret: string): KeyObject =>
  createPrivateKey({
    key: Buffer.concat([PKCS8, Buffer.from(secret, 'hex')]),
    format: 'der',
    type: 'pkcs8',
  })
const publicKey = (raw: string): KeyObject =>
  createPublicKey({
    key: { kty: 'OKP', crv: 'X25519', x: Buffer.from(raw, 'hex').toString('base64url') },
    format: 'jwk',
  })
const rawOf = (key: KeyObject): string =>
  Buffer.from(createPublicKey(key).export({ format: 'jwk' }).x as string, 'base64url').toString(
    'hex',
  )
const sharedOf = (mine: KeyObject, theirs: string, ephemeral: string, recovery: string): Buffer =>
  Buffer.from(
    hkdfSync(
      'sha256',
      diffieHellman({ privateKey: mine, publicKey: publicKey(theirs) }),
      Buffer.from(ephemeral + recovery, 'hex'),
      'custody/backup-secrets/v1',
      32,
    ),
  )

/** Generates a recovery key pair: 32 bytes each, in hex. */
export function makeRecoveryPair(): { secret: string; public: string } {
  const { privateKey } = generateKeyPairSync('x25519')
  return {
    secret: Buffer.from(privateKey.export({ format: 'jwk' }).d as string, 'base64url').toString(
      'hex',
    ),
    public: rawOf(privateKey),
  }
}

/**
 * Returns the public half of a recovery key, in hex.
 * @param secret the secret half, in hex
 */
export const recoveryPublicOf = (secret: string): string => rawOf(secretKey(secret))

/**
 * Reads one half of a key pair from a file: 64 hex digits, or JSON with a field of that name, as
 * written by the local setup of the nodes.
 * @throws Error that names the option
 */
export function readRecoveryHalf(path: string, half: 'secret' | 'public', option: string): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new Error(
      `--${option}: ${path} cannot be read (${String((error as NodeJS.ErrnoException).code)})`,
      { cause: error },
    )
  }
  let key = text
  if (text.startsWith('{')) {
    try {
      key = String((JSON.parse(text) as Record<string, unknown>)[half])
    } catch {
      /* not JSON: rejected below */
    }
  }
  if (!KEY.test(key))
    throw new Error(`--${option}: ${path} contains no recovery key: 32 bytes in hex`)
  return key
}

/**
 * Encrypts a text for the holder of a recovery key.
 * @param recovery the public half, in hex
 */
export function seal(text: string, recovery: string): Sealed {
  const { privateKey } = generateKeyPairSync('x25519')
  const ephemeral = rawOf(privateKey)
  const nonce = randomBytes(12)
  const cipher = createCipheriv(
    'aes-256-gcm',
    sharedOf(privateKey, recovery, ephemeral, recovery),
    nonce,
  )
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return {
    ephemeral,
    nonce: nonce.toString('hex'),
    text: sealed.toString('base64'),
    tag: cipher.getAuthTag().toString('hex'),
  }
}

/**
 * Decrypts a text.
 * @param secret the secret half, in hex
 * @throws Error if the key does not match, or the bytes were changed
 */
export function open(sealed: Sealed, secret: string): string {
  try {
    const mine = secretKey(secret)
    const key = sharedOf(mine, sealed.ephemeral, sealed.ephemeral, rawOf(mine))
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(sealed.nonce, 'hex'), {
      authTagLength: 16,
    })
    decipher.setAuthTag(Buffer.from(sealed.tag, 'hex'))
    return Buffer.concat([
      decipher.update(Buffer.from(sealed.text, 'base64')),
      decipher.final(),
    ]).toString('utf8')
  } catch {
    throw new Error('--recovery-secret: does not decrypt the secrets of this backup')
  }
}
