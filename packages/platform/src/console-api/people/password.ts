import { scrypt, timingSafeEqual } from 'node:crypto'
import type { Environment } from '../../core/environment.ts'

/** Cost of one hash: scrypt's N (as a power of two), r and p. */
export interface PasswordCost {
  log2N: number
  r: number
  p: number
}

/**
 * 32 MiB and three passes for each hash, one of the equivalent settings of OWASP's Password Storage
 * Cheat Sheet.
 */
export const PASSWORD_COST: PasswordCost = { log2N: 15, r: 8, p: 3 }
export const PASSWORD_LENGTH = { min: 12, max: 256 } as const

const SALT_BYTES = 16
const HASH_BYTES = 32

const derive = (
  password: string,
  salt: Uint8Array,
  { log2N, r, p }: PasswordCost,
): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const N = 2 ** log2N
    // The password is normalized, so that two Unicode encodings of the same characters are the same
    // password.
    scrypt(
      password.normalize('NFKC'),
      salt,
      HASH_BYTES,
      { N, r, p, maxmem: 256 * N * r },
      (error, hash) => {
        if (error) reject(error)
        else resolve(hash)
      },
    )
  })

/** Returns the stored form of a password: `scrypt$log2N$r$p$salt$hash`, the last two in base64. */
export async function hashPassword(
  environment: Environment,
  password: string,
  cost: PasswordCost,
): Promise<string> {
  const salt = Buffer.from(environment.bytes(SALT_BYTES))
  const hash = await derive(password, salt, cost)
  return [
    'scrypt',
    cost.log2N,
    cost.r,
    cost.p,
    salt.toString('base64'),
    hash.toString('base64'),
  ].join('$')
}

/**
 * Returns whether a password matches the stored one.
 * @param stored null: there is no stored password; the check takes as long as one with `cost`
 */
export async function isPassword(
  password: string,
  stored: string | null,
  cost: PasswordCost,
): Promise<boolean> {
  const [, log2N, r, p, salt, hash] = stored?.split('$') ?? []
  if (salt === undefined || hash === undefined) {
    await derive(password, Buffer.alloc(SALT_BYTES), cost)
    return false
  }
  const match = await derive(password, Buffer.from(salt, 'base64'), {
    log2N: Number(log2N),
    r: Number(r),
    p: Number(p),
  })
  return timingSafeEqual(match, Buffer.from(hash, 'base64'))
}
