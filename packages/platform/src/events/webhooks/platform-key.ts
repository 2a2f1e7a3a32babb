import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
} from 'node:crypto'
import { promisify } from 'node:util'
import type { Database } from '../../core/database/pool.ts'
import type { Aml } from '../../custody/aml/aml.ts'

interface Services {
  database: Database
  aml: Aml
}

const BITS = 3072
/** Context that the private key is encrypted for. */
export const PLATFORM_KEY_OWNER = 'webhook key'

/** The platform's key pair for `x-signature`, which all processes of a database share. */
export interface PlatformKey {
  privateKey: KeyObject
  publicPem: string
}

/**
 * Returns the key pair. It is created on first use; all processes use the first one that was
 * stored.
 */
export async function loadPlatformKey(services: Services): Promise<PlatformKey> {
  const {
    database,
    aml: { secrets },
  } = services
  const existingOf = async (): Promise<PlatformKey | null> => {
    const row = await database.one<{ public_key_pem: string; sealed_private_key: Buffer }>(
      'select public_key_pem, sealed_private_key from webhook_keys',
    )
    if (!row) return null
    return {
      privateKey: createPrivateKey(secrets.open(PLATFORM_KEY_OWNER, row.sealed_private_key)),
      publicPem: row.public_key_pem,
    }
  }
  const there = await existingOf()
  if (there) return there
  const made = await promisify(generateKeyPair)('rsa', {
    modulusLength: BITS,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  await database.query(
    `insert into webhook_keys (public_key_pem, sealed_private_key) values ($1, $2)
      on conflict do nothing`,
    [made.publicKey, secrets.seal(PLATFORM_KEY_OWNER, made.privateKey)],
  )
  const stored = await existingOf()
  if (!stored) throw new Error('the key of webhooks was not stored')
  return stored
}

/** Returns the key as a JWK set (RFC 7517); `kid` is the key's thumbprint (RFC 7638). */
export function jwksOf(publicPem: string): { keys: Record<string, string>[] } {
  const { kty = '', n = '', e = '' } = createPublicKey(publicPem).export({ format: 'jwk' })
  const kid = createHash('sha256').update(JSON.stringify({ e, kty, n })).digest('base64url')
  return { keys: [{ kty, n, e, kid, alg: 'RS512', use: 'sig' }] }
}
