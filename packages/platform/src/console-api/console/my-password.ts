import { z } from 'zod'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { People } from '../people/people.ts'
import { ApiError } from '../../core/errors.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { assertCanSignIn, changeOwn, lockPerson } from '../people/factors.ts'
import { countTry, reset, type Trier } from '../people/failures.ts'
import { hashPassword, isPassword } from '../people/password.ts'
import { assertStrong } from '../people/password-strength.ts'
import { newPassword, typedPassword } from '../people/schemas.ts'

interface Services {
  environment: Environment
  database: Database
  people: People
}

/**
 * Sets or replaces the password; every other session ends. A sign-in with a password also requires
 * an authenticator app.
 */
export const setMyPassword = panelEndpoint({
  method: 'POST',
  path: '/console/api/me/password',
  summary: 'Set or change your password',
  needs: 'anybody',
  isSensitive: true,
  body: z.strictObject({
    current: typedPassword
      .optional()
      .meta({ description: 'Required if a password is already set' }),
    password: newPassword,
  }),
  response: z.object({
    has_totp: z.boolean().meta({
      description: 'False: set up an authenticator app before you can sign in with the password',
    }),
  }),
  async handler({ body, visitor }, services: Services) {
    const { database, people } = services
    const { personId, id, email } = visitor.session
    const trier = { email, ip: visitor.from.ip }
    const stored = await database.one<{
      password_hash: string | null
      has_totp: boolean
      name: string
    }>('select password_hash, totp_secret is not null has_totp, name from people where id = $1', [
      personId,
    ])
    await assertStrong(body.password, [email, stored?.name ?? ''])
    const hash = await people.hashing.run(trier, () =>
      replacedBy(services, stored?.password_hash ?? null, body, trier),
    )
    await changeOwn(services, visitor, { action: 'password.set' }, async (tx) => {
      await lockPerson(tx, personId)
      const changed = await tx.one(
        `update people set password_hash = $2 where id = $1
          and password_hash is not distinct from $3 returning id`,
        [personId, hash, stored?.password_hash ?? null],
      )
      if (!changed)
        throw new ApiError('SIGN_IN_FAILED', 'the password was changed by another request')
      if (stored?.password_hash) await reset(tx, trier)
      await people.sessions.end(tx, personId, { except: id })
    })
    return { body: { has_totp: stored?.has_totp ?? false } }
  },
})

/**
 * Checks the current password, if there is one.
 * @returns the hash of the new password
 * @throws ApiError
 */
async function replacedBy(
  { database, environment, people }: Services,
  stored: string | null,
  body: { current?: string | undefined; password: string },
  trier: Trier,
): Promise<string> {
  if (stored !== null) {
    if (body.current === undefined)
      throw new ApiError('INVALID_REQUEST', 'current: is required', { field: 'current' })
    await database.transaction((tx) => countTry(tx, trier))
    if (!(await isPassword(body.current, stored, people.passwordCost))) {
      throw new ApiError('SIGN_IN_FAILED', 'current: is not your password', { field: 'current' })
    }
  }
  return hashPassword(environment, body.password, people.passwordCost)
}

/**
 * Removes the password, the authenticator app and the recovery codes; only passkeys remain. Every
 * other session ends.
 */
export const removeMyPassword = panelEndpoint({
  method: 'DELETE',
  path: '/console/api/me/password',
  summary: 'Remove your password, authenticator app and recovery codes',
  needs: 'anybody',
  isSensitive: true,
  response: z.object({ removed: z.literal(true) }),
  async handler({ visitor }, services: Pick<Services, 'database' | 'people'>) {
    const { personId, id } = visitor.session
    await changeOwn(services, visitor, { action: 'password.removed' }, async (tx) => {
      await lockPerson(tx, personId)
      await tx.query('update people set password_hash = null, totp_secret = null where id = $1', [
        personId,
      ])
      await tx.query('delete from recovery_codes where person_id = $1', [personId])
      await assertCanSignIn(tx, personId)
      await services.people.sessions.end(tx, personId, { except: id })
    })
    return { body: { removed: true } }
  },
})
