import type { Queryable } from '../database/pool.ts'
import type { Environment } from '../environment.ts'
import { hashOfToken, newToken } from './token.ts'

/** What was begun is finished within this time. */
const LIFE_MS = 5 * 60_000
/** Answers that one step takes, wrong ones included. */
const TRIES_MAX = 5

/** What waits for its second half, with what it must not be asked again. */
export interface StepData {
  /** A password was right; its code is missing. */
  'sign-in': Record<string, never>
  /** A passkey is asked for: to sign in, or (with a session) to show it again. */
  'passkey-sign-in': { challenge: string; origin: string; session: string | null }
  /** A passkey is made for a person that is there. */
  'passkey-add': { challenge: string; origin: string }
  /** An authenticator app is set up: its code proves that it was. The secret is sealed. */
  'totp-add': { secret: string }
  'join-passkey': Joining & { challenge: string; origin: string }
  'join-password': Joining & { password_hash: string; secret: string }
}

/** Somebody who accepts an invitation. `person`: the id that he will have, or has. */
export interface Joining {
  invitation: string
  person: string
  email: string
  name: string
  workspace: string | null
}

/** Begins a step. @returns the token that finishes it */
export async function beginStep<K extends keyof StepData>(
  tx: Queryable,
  environment: Environment,
  kind: K,
  personId: string | null,
  data: StepData[K],
): Promise<string> {
  const token = newToken(environment)
  await tx.query(
    'insert into sign_in_steps (token_hash, kind, person_id, data, expires_at) values ($1, $2, $3, $4, $5)',
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
 * Counts a try at a step, in a transaction of its own, so that what fails later is counted too.
 * @returns null where there is no such step, its time is over, or it was tried too often
 */
export async function tryStep<K extends keyof StepData>(
  tx: Queryable,
  kind: K,
  token: string,
): Promise<{ personId: string | null; data: StepData[K] } | null> {
  const row = await tx.one<{ person_id: string | null; data: StepData[K] }>(
    `update sign_in_steps set tries = tries + 1 where token_hash = $1 and kind = $2 and expires_at > $3 and tries < $4
     returning person_id, data`,
    [hashOfToken(token), kind, tx.now(), TRIES_MAX],
  )
  return row ? { personId: row.person_id, data: row.data } : null
}

/**
 * Ends a step, in the transaction of what it led to. False: somebody else finished it meanwhile.
 */
export async function endStep(tx: Queryable, token: string): Promise<boolean> {
  return (
    (await tx.one('delete from sign_in_steps where token_hash = $1 returning kind', [
      hashOfToken(token),
    ])) !== undefined
  )
}
