import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import type { People } from '../people/people.ts'
import { cookieHeaders } from '../people/cookie.ts'
import { panelEndpoint, type Visitor } from '../people/endpoint.ts'
import { changeOwn } from '../people/factors.ts'
import { reset } from '../people/failures.ts'
import { authenticationOptions, takePasskey } from '../people/passkeys.ts'
import { code, passkeyOptions, passkeyResponse, token } from '../people/schemas.ts'
import { countSignIn, showCode, type Factor } from '../people/sign-in.ts'
import { beginStep, endStep, tryStep } from '../people/steps.ts'

interface Services {
  environment: Environment
  database: Database
  people: People
}

const response = z.object({ confirmed: z.literal(true) })

/**
 * Records the confirmation of a factor: the session may change factors for a limited time, and gets
 * a new token.
 */
async function confirmed(
  services: Pick<Services, 'database' | 'people'>,
  visitor: Visitor,
  factor: Factor,
  proof: (tx: Queryable) => Promise<void>,
) {
  const { id } = visitor.session
  const cookie = await changeOwn(
    services,
    visitor,
    { action: 'session.confirmed', object: id, details: { factor } },
    async (tx) => {
      await proof(tx)
      await tx.query('update sessions set confirmed_at = $2 where id = $1', [id, tx.now()])
      return services.people.sessions.rotate(tx, id)
    },
  )
  return { headers: cookieHeaders(cookie, visitor.from), body: { confirmed: true } }
}

const byCode = (factor: 'totp' | 'recovery', summary: string) =>
  panelEndpoint({
    method: 'POST',
    path: `/console/api/me/confirm/${factor}`,
    summary,
    needs: 'anybody',
    body: z.strictObject({ code }),
    response,
    async handler({ body, visitor }, services: Services) {
      countSignIn(services, visitor.from)
      const {
        session: { personId },
        from,
      } = visitor
      return showCode(services, { personId, factor, code: body.code, from }, (trier, take) =>
        confirmed(services, visitor, factor, async (tx) => {
          await take(tx)
          await reset(tx, trier)
        }),
      )
    },
  })

/** Confirms a factor again, which actions require that a session alone does not permit. */
export const confirmTotp = byCode(
  'totp',
  'Confirm the sign-in with a code of the authenticator app',
)
export const confirmRecovery = byCode('recovery', 'Confirm the sign-in with a recovery code')

export const confirmPasskeyOptions = panelEndpoint({
  method: 'POST',
  path: '/console/api/me/confirm/passkey/options',
  summary: 'Begin confirming the sign-in with a passkey',
  needs: 'anybody',
  body: z.strictObject({}),
  response: passkeyOptions,
  async handler(
    { visitor: { session, from } },
    { database, environment }: Pick<Services, 'environment' | 'database'>,
  ) {
    const { options, challenge } = await authenticationOptions(environment, from)
    const data = { challenge, origin: from.origin, session: session.id }
    return {
      body: {
        challenge_id: await beginStep(
          database,
          environment,
          'passkey-sign-in',
          session.personId,
          data,
        ),
        options,
      },
    }
  },
})

export const confirmPasskey = panelEndpoint({
  method: 'POST',
  path: '/console/api/me/confirm/passkey',
  summary: 'Finish confirming the sign-in with a passkey',
  needs: 'anybody',
  body: z.strictObject({ challenge_id: token, response: passkeyResponse }),
  response,
  async handler({ body, visitor }, services: Pick<Services, 'database' | 'people'>) {
    const { database } = services
    const step = await tryStep(database, 'passkey-sign-in', body.challenge_id)
    if (step?.data.session !== visitor.session.id)
      throw new ApiError('SIGN_IN_FAILED', 'the confirmation was not finished in time: begin again')
    return confirmed(services, visitor, 'passkey', async (tx) => {
      const { personId } = await takePasskey(tx, body.response, step.data)
      if (personId !== visitor.session.personId)
        throw new ApiError('SIGN_IN_FAILED', 'this passkey belongs to another person')
      if (!(await endStep(tx, body.challenge_id)))
        throw new ApiError('SIGN_IN_FAILED', 'the confirmation was finished before')
    })
  },
})
