import { Secret, TOTP } from 'otpauth'
import type { Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'

/**
 * Duration of a time step in seconds. RFC 6238 with the parameters of every authenticator app:
 * SHA-1, six digits, 30 seconds.
 */
const PERIOD_S = 30
const SECRET_BYTES = 20
/**
 * Number of steps before and after the current one whose codes are valid too, because clocks differ
 * and people type slowly.
 */
const WINDOW = 1
const ISSUER = 'Custody'

const totpOf = (secret: string, label: string): TOTP =>
  new TOTP({
    issuer: ISSUER,
    label,
    secret: Secret.fromBase32(secret),
    algorithm: 'SHA1',
    digits: 6,
    period: PERIOD_S,
  })

/** Returns a new secret in base32: 160 bits, as RFC 4226 recommends. */
export const newTotpSecret = (environment: Environment): string =>
  new Secret({
    buffer: new Uint8Array(environment.bytes(SECRET_BYTES)).slice().buffer,
  }).base32

/** Returns the URI that an authenticator app reads from a QR code. */
export const otpauthUri = (secret: string, email: string): string =>
  totpOf(secret, email).toString()

/** Returns the time step of a code; null if the code is not valid now. */
export function stepOfCode(secret: string, code: string, nowMs: number): number | null {
  const delta = totpOf(secret, '').validate({ token: code, timestamp: nowMs, window: WINDOW })
  return delta === null ? null : Math.floor(nowMs / 1000 / PERIOD_S) + delta
}

/**
 * Uses up a time step of a person, once, so that an observed code cannot be used again.
 * @returns false if this step or a later one was used
 */
export async function takeStep(tx: Queryable, personId: string, step: number): Promise<boolean> {
  const taken = await tx.one(
    `update people set totp_step = $2 where id = $1 and (totp_step is null or totp_step < $2)
      returning id`,
    [personId, step],
  )
  return taken !== undefined
}
