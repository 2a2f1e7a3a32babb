import type { Queryable } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import { hashOfToken, newToken } from './token.ts'

/** Lifetime of a step, in milliseconds. */
const LIFE_MS = 5 * 60_000
/** Maximum number of attempts at one step, including wrong ones. */
const TRIES_MAX = 5

/**
 * Stored data of steps that wait for their second half. The data was verified in the first half.
 */
export interface StepData {
  /** The password was correct; the code is missing. */
  'sign-in': Record<string, never>
  /** A passkey is required: to sign in, or (with a session) to confirm it again. */
  'passkey-sign-in': { challenge: string; origin: string; session: string | null }
  /** A passkey is being created for an existing person. */
  'passkey-add': { challenge: string; origin: string }
  /**
   * An authenticator app is being set up; a code proves that this succeeded. The secret is
   * encrypted.
   */
  'totp-add': { secret: string }
  'join-passkey': Joining & { challenge: string; origin: string }
  'join-password': Joining & { password_hash: string; secret: string }
}

/** A person who accepts an invitation. `person`: their ID, new or existing. */
export interface Joining {
  invitation: string
  person: string
  email: string
  name: string
  workspace: string | null
}

/**
 * Begins a step.
 * @returns the token that finishes it
 */
export async function beginStep<K extends keyof StepData>(
  tx: Queryable,
  environment: Environment,
  kind: K,
  personId: string | null,
  data: StepData[K],
): Promise<string> {
  const token = newToken(environment)
  await tx.query(
    `insert into sign_in_steps (token_hash, kind, person_id, data, expires_at)
      values ($1, $2, $3, $4, $5)`,
    [
      hashOfToken(token),
      kind,
      personId,
      JSON.stringify(data),
      new Date(tx.now().getTime() + LIFE_MS),
    ],
  )
  return token
}

/**
 * Counts an attempt at a step, in its own transaction, so that an attempt that fails later is
 * counted too.
 * @returns null if the step does not exist, has expired or had too many attempts
 */
export async function tryStep<K extends keyof StepData>(
  tx: Queryable,
  kind: K,
  token: string,
): Promise<{ personId: string | null; data: StepData[K] } | null> {
  const row = await tx.one<{ person_id: string | null; data: StepData[K] }>(
    `update sign_in_steps set tries = tries + 1 where token_hash = $1 and kind = $2
      and expires_at > $3 and tries < $4
     returning person_id, data`,
    [hashOfToken(token), kind, tx.now(), TRIES_MAX],
  )
  return row ? { personId: row.person_id, data: row.data } : null
}

/**
 * Ends a step, in the transaction of its result.
 * @returns false if a concurrent request has finished it
 */
export async function endStep(tx: Queryable, token: string): Promise<boolean> {
  return (
    (await tx.one('delete from sign_in_steps where token_hash = $1 returning kind', [
      hashOfToken(token),
    ])) !== undefined
  )
}
