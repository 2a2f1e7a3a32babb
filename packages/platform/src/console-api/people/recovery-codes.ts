import { createHash } from 'node:crypto'
import type { Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'

const COUNT = 10
const BYTES = 10
/**
 * Crockford's base32 alphabet, which has no letter that could be mistaken for another or for a
 * digit.
 */
const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

const hashOf = (code: string): Buffer =>
  createHash('sha256')
    .update(code.toUpperCase().replaceAll(/[^0-9A-Z]/g, ''))
    .digest()

/** Returns 80 random bits as four groups of four characters. */
function newCode(environment: Environment): string {
  let bits = [...environment.bytes(BYTES)].reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
  let text = ''
  for (let at = 0; at < (BYTES * 8) / 5; at++) {
    text = ALPHABET[Number(bits & 31n)] + text
    bits >>= 5n
  }
  return text.replaceAll(/(.{4})(?=.)/g, '$1-')
}

/** Creates ten codes for a person in place of the earlier ones. They are only returned once. */
export async function renewRecoveryCodes(
  tx: Queryable,
  environment: Environment,
  personId: string,
): Promise<string[]> {
  const codes = Array.from({ length: COUNT }, () => newCode(environment))
  await tx.query('delete from recovery_codes where person_id = $1', [personId])
  await tx.query(
    'insert into recovery_codes (person_id, code_hash) select $1, unnest($2::bytea[])',
    [personId, codes.map(hashOf)],
  )
  return codes
}

/**
 * Uses up a code, in upper or lower case and with any separators between its groups.
 * @returns false if the code is unknown or was used already
 */
export async function takeRecoveryCode(
  tx: Queryable,
  personId: string,
  code: string,
): Promise<boolean> {
  const taken = await tx.one(
    `update recovery_codes set used_at = $3 where person_id = $1 and code_hash = $2
      and used_at is null returning person_id`,
    [personId, hashOf(code), tx.now()],
  )
  return taken !== undefined
}

/**
 * Finds the person without a password who owns this unused code. A person with a password must
 * enter the password first.
 */
export async function ownerOfRecoveryCode(
  tx: Queryable,
  email: string,
  code: string,
): Promise<string | null> {
  const match = await tx.one<{ id: string }>(
    `select p.id from people p join recovery_codes r on r.person_id = p.id
     where p.email = $1 and p.password_hash is null and r.code_hash = $2 and r.used_at is null`,
    [email, hashOf(code)],
  )
  return match?.id ?? null
}
