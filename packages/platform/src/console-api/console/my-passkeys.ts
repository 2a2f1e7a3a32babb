import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { assertCanSignIn, changeOwn, lockPerson } from '../people/factors.ts'
import { addPasskey, registrationOptions, verifyRegistration } from '../people/passkeys.ts'
import { passkeyOptions, passkeyResponse, time, title, token } from '../people/schemas.ts'
import { beginStep, endStep, tryStep } from '../people/steps.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { People } from '../people/people.ts'

interface Services {
  environment: Environment
  database: Database
  people: People
}

const PASSKEYS_MAX = 20

export const listMyPasskeys = panelEndpoint({
  method: 'GET',
  path: '/console/api/me/passkeys',
  summary: 'List your passkeys',
  needs: 'anybody',
  response: z.array(
    z.object({ id: z.uuid(), name: z.string(), created_at: time, last_used_at: time.nullable() }),
  ),
  async handler({ visitor: { session } }, { database }: Pick<Services, 'database'>) {
    return {
      body: await database.query(
        `select id, name, created_at, last_used_at from passkeys where person_id = $1
          order by created_at`,
        [session.personId],
      ),
    }
  },
})

export const addMyPasskeyOptions = panelEndpoint({
  method: 'POST',
  path: '/console/api/me/passkeys/options',
  summary: 'Begin adding a passkey',
  needs: 'anybody',
  isSensitive: true,
  body: z.strictObject({}),
  response: passkeyOptions,
  async handler(
    { visitor: { session, from } },
    { database, environment }: Pick<Services, 'environment' | 'database'>,
  ) {
    const { options, challenge } = await registrationOptions(environment, database, from, {
      ...session,
      id: session.personId,
    })
    const id = await beginStep(database, environment, 'passkey-add', session.personId, {
      challenge,
      origin: from.origin,
    })
    return { body: { challenge_id: id, options } }
  },
})

export const addMyPasskey = panelEndpoint({
  method: 'POST',
  path: '/console/api/me/passkeys',
  summary: 'Finish adding a passkey',
  needs: 'anybody',
  isSensitive: true,
  body: z.strictObject({ challenge_id: token, response: passkeyResponse, name: title() }),
  response: z.object({ id: z.uuid() }),
  async handler({ body, visitor }, services: Services) {
    const { personId } = visitor.session
    const step = await tryStep(services.database, 'passkey-add', body.challenge_id)
    if (step?.personId !== personId)
      throw new ApiError('SIGN_IN_FAILED', 'the confirmation was not finished in time: begin again')
    const passkey = await verifyRegistration(body.response, step.data)
    const id = await changeOwn(
      services,
      visitor,
      { action: 'passkey.added', details: { name: body.name } },
      async (tx) => {
        if (!(await endStep(tx, body.challenge_id)))
          throw new ApiError('SIGN_IN_FAILED', 'the confirmation was finished before')
        await lockPerson(tx, personId)
        const match = await tx.one<{ count: number }>(
          'select count(*)::int from passkeys where person_id = $1',
          [personId],
        )
        if (match && match.count >= PASSKEYS_MAX) {
          throw new ApiError(
            'INVALID_REQUEST',
            `you have ${PASSKEYS_MAX} passkeys, which is the maximum: remove one`,
          )
        }
        return addPasskey(tx, services.environment, personId, passkey, body.name)
      },
    )
    return { body: { id } }
  },
})

/**
 * Removes a passkey. Every other session ends, because one of them may have been opened with it on
 * a lost device.
 */
export const removeMyPasskey = panelEndpoint({
  method: 'DELETE',
  path: '/console/api/me/passkeys/{id}',
  summary: 'Remove a passkey',
  needs: 'anybody',
  isSensitive: true,
  params: z.strictObject({ id: z.string() }),
  response: z.object({ removed: z.literal(true) }),
  async handler({ visitor, params: { id } }, services: Pick<Services, 'database' | 'people'>) {
    const { personId, id: sessionId } = visitor.session
    await changeOwn(
      services,
      visitor,
      { action: 'passkey.removed', object: id.slice(0, 36) },
      async (tx) => {
        await lockPerson(tx, personId)
        const removed = await tx.one(
          'delete from passkeys where id::text = $1 and person_id = $2 returning id',
          [id, personId],
        )
        if (!removed) throw new ApiError('NOT_FOUND', 'you have no such passkey')
        await assertCanSignIn(tx, personId)
        await services.people.sessions.end(tx, personId, { except: sessionId })
      },
    )
    return { body: { removed: true } }
  },
})
