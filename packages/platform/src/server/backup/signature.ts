import {
  createPrivateKey,
  createPublicKey,
  hkdfSync,
  sign,
  verify,
  type KeyObject,
} from 'node:crypto'
import { z } from 'zod'

/**
 * The signature of a backup's manifest: Ed25519, with a key that is derived from the recovery
 * secret. The platform holds the signing key, and a holder of the recovery secret can derive its
 * public key on an empty host. An attacker with write access to the backup folder has neither. All
 * fields in hex.
 */
const signatureSchema = z.strictObject({
  version: z.literal(1),
  key: z.string().regex(/^[0-9a-f]{64}$/),
  signature: z.string().regex(/^[0-9a-f]{128}$/),
})
export type ManifestSignature = z.infer<typeof signatureSchema>

/** Name of the signature's file in a backup. */
export const SIGNATURE = 'manifest.sig'

const DOMAIN = Buffer.from('custody/backup-manifest/v1\n')
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex')
const privateKey = (seed: string): KeyObject =>
  createPrivateKey({
    key: Buffer.concat([PKCS8, Buffer.from(seed, 'hex')]),
    format: 'der',
    type: 'pkcs8',
  })
const publicKey = (raw: string): KeyObject =>
  createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(raw, 'hex').toString('base64url') },
    format: 'jwk',
  })

/**
 * Returns the Ed25519 seed that signs backups, in hex.
 * @param secret secret half of the recovery key, in hex
 */
export const signingKeyOf = (secret: string): string =>
  Buffer.from(
    hkdfSync('sha256', Buffer.from(secret, 'hex'), '', 'custody/backup-signing/v1', 32),
  ).toString('hex')

/**
 * Returns the raw public key of the signatures, in hex.
 * @param seed as returned by `signingKeyOf`
 */
export const signatureKeyOf = (seed: string): string =>
  Buffer.from(
    createPublicKey(privateKey(seed)).export({ format: 'jwk' }).x as string,
    'base64url',
  ).toString('hex')

export const signManifest = (manifest: Uint8Array, seed: string): ManifestSignature => ({
  version: 1,
  key: signatureKeyOf(seed),
  signature: sign(null, Buffer.concat([DOMAIN, manifest]), privateKey(seed)).toString('hex'),
})

/**
 * Verifies the signature of a manifest.
 * @param text the content of the signature's file
 * @param key the raw public key that the operator trusts, in hex
 * @throws Error with the reason
 */
export function verifyManifest(manifest: Uint8Array, text: string, key: string): void {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    /* rejected by the schema */
  }
  const parsed = signatureSchema.safeParse(value)
  if (!parsed.success) throw new Error(`${SIGNATURE} is not a signature of format 1`)
  if (parsed.data.key !== key) {
    throw new Error(
      `${SIGNATURE} was made with another key than the given one: use the recovery key that was valid when this backup was made`,
    )
  }
  if (
    !verify(
      null,
      Buffer.concat([DOMAIN, manifest]),
      publicKey(key),
      Buffer.from(parsed.data.signature, 'hex'),
    )
  ) {
    throw new Error(
      `manifest.json is not the manifest that was signed: it or ${SIGNATURE} was changed`,
    )
  }
}
