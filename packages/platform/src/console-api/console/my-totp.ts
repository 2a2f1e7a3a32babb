import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { changeOwn, lockPerson } from '../people/factors.ts'
import { renewRecoveryCodes } from '../people/recovery-codes.ts'
import { code, token } from '../people/schemas.ts'
import { ownerOfTotp } from '../people/sign-in.ts'
import { beginStep, endStep, tryStep } from '../people/steps.ts'
import { newTotpSecret, otpauthUri, stepOfCode } from '../people/totp.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { People } from '../people/people.ts'

interface Services {
  environment: Environment
  database: Database
  people: People
}

/**
 * Sets up an authenticator app. The new secret replaces the current one after a code has proved
 * that the app has it.
 */
export const setMyTotp = panelEndpoint({
  method: 'POST',
  path: '/console/api/me/totp',
  summary: 'Begin setting up an authenticator app',
  needs: 'anybody',
  isSensitive: true,
  body: z.strictObject({}),
  response: z.object({ totp_token: z.string(), secret: z.string(), otpauth_uri: z.string() }),
  async handler({ visitor: { session } }, { database, environment, people }: Services) {
    const secret = newTotpSecret(environment)
    const sealed = people.secrets.seal(ownerOfTotp(session.personId), secret).toString('base64')
    const id = await beginStep(database, environment, 'totp-add', session.personId, {
      secret: sealed,
    })
    return { body: { totp_token: id, secret, otpauth_uri: otpauthUri(secret, session.email) } }
  },
})

export const confirmMyTotp = panelEndpoint({
  method: 'POST',
  path: '/console/api/me/totp/confirm',
  summary: 'Finish setting up an authenticator app with a code from it',
  needs: 'anybody',
  isSensitive: true,
  body: z.strictObject({ totp_token: token, code }),
  response: z.object({
    recovery_codes: z.array(z.string()).nullable().meta({
      description: 'Present if there were no recovery codes before; returned only in this response',
    }),
  }),
  async handler({ body, visitor }, services: Services) {
    const { database, environment, people } = services
    const { personId, id } = visitor.session
    const begun = await tryStep(database, 'totp-add', body.totp_token)
    if (begun?.personId !== personId)
      throw new ApiError(
        'SIGN_IN_FAILED',
        'the set-up was not finished in time, or had too many attempts: begin again',
      )
    const sealed = Buffer.from(begun.data.secret, 'base64')
    const step = stepOfCode(
      people.secrets.open(ownerOfTotp(personId), sealed),
      body.code.replaceAll(/\s/g, ''),
      environment.now(),
    )
    if (step === null)
      throw new ApiError('SIGN_IN_FAILED', 'code: is not the code that the app displays now', {
        field: 'code',
      })
    const codes = await changeOwn(
      services,
      visitor,
      { action: 'authenticator.set' },
      async (tx) => {
        if (!(await endStep(tx, body.totp_token)))
          throw new ApiError('SIGN_IN_FAILED', 'the confirmation was finished before')
        await lockPerson(tx, personId)
        // The steps of an authenticator app are derived from the clock, so a step that was used
        // with the earlier secret also counts as used for the new one.
        const earlier = await tx.one(
          'select 1 from people where id = $1 and totp_secret is not null',
          [personId],
        )
        await tx.query('update people set totp_secret = $2, totp_step = $3 where id = $1', [
          personId,
          sealed,
          step,
        ])
        // Replacing an app ends the sessions that may have been opened with the earlier one, on a
        // lost phone.
        if (earlier) await people.sessions.end(tx, personId, { except: id })
        const left = await tx.one('select 1 from recovery_codes where person_id = $1 limit 1', [
          personId,
        ])
        return left ? null : renewRecoveryCodes(tx, environment, personId)
      },
    )
    return { body: { recovery_codes: codes } }
  },
})
