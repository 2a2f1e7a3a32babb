import { Secret, TOTP } from 'otpauth'
import type { Queryable } from '../database/pool.ts'
import type { Environment } from '../environment.ts'

/** RFC 6238 as every authenticator app does it: SHA-1, six digits, 30 seconds. */
const PERIOD_S = 30
const SECRET_BYTES = 20
/** A code of the step before or after is taken too: clocks differ, and people type slowly. */
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

/** A new secret in base32: 160 bits, as RFC 4226 recommends. */
export const newTotpSecret = (environment: Environment): string =>
  new Secret({
    buffer: new Uint8Array(environment.bytes(SECRET_BYTES)).slice().buffer,
  }).base32

/** What an authenticator app reads from a QR code. */
export const otpauthUri = (secret: string, email: string): string =>
  totpOf(secret, email).toString()

/** The step that a code is of; null where it is none of now. */
export function stepOfCode(secret: string, code: string, nowMs: number): number | null {
  const delta = totpOf(secret, '').validate({ token: code, timestamp: nowMs, window: WINDOW })
  return delta === null ? null : Math.floor(nowMs / 1000 / PERIOD_S) + delta
}

/**
 * Takes a step of a person's, once: a code that somebody saw over a shoulder is worth nothing.
 * False: it, or a later one, was taken.
 */
export async function takeStep(tx: Queryable, personId: string, step: number): Promise<boolean> {
  const taken = await tx.one(
    'update people set totp_step = $2 where id = $1 and (totp_step is null or totp_step < $2) returning id',
    [personId, step],
  )
  return taken !== undefined
}
