import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { cookieHeaders } from '../people/cookie.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { acceptInvitation, makePerson, readJoining } from '../people/join.ts'
import { hashPassword } from '../people/password.ts'
import { assertStrong } from '../people/password-strength.ts'
import { presentSession } from '../people/present.ts'
import { renewRecoveryCodes } from '../people/recovery-codes.ts'
import {
  code,
  email,
  newPassword,
  sessionShape,
  title,
  token,
  workspaceName,
} from '../people/schemas.ts'
import { countSignIn, openSession, ownerOfTotp } from '../people/sign-in.ts'
import { beginStep, endStep, tryStep } from '../people/steps.ts'
import { newTotpSecret, otpauthUri, stepOfCode, takeStep } from '../people/totp.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { DatabaseHold } from '../../core/engine/database-hold.ts'
import type { People } from '../people/people.ts'

interface Services {
  settings: Pick<Settings, 'network' | 'prepaidTiers'>
  environment: Environment
  database: Database
  hold: DatabaseHold
  people: People
}

/**
 * Accepts an invitation with a password. Nothing is created before a code has proved that the
 * authenticator app has the secret.
 */
export const joinPassword = panelEndpoint({
  method: 'POST',
  path: '/console/api/join/password',
  summary: 'Begin accepting an invitation with a password and an authenticator app',
  needs: 'nobody',
  body: z.strictObject({
    invitation: token,
    email,
    name: title(),
    workspace: workspaceName.optional(),
    password: newPassword,
  }),
  response: z.object({ totp_token: z.string(), secret: z.string(), otpauth_uri: z.string() }),
  async handler({ body, visitor: { from } }, services: Services) {
    const { database, environment, people } = services
    countSignIn(services, from)
    const joining = await readJoining(services, body.invitation, body)
    await assertStrong(body.password, [
      joining.email,
      joining.name,
      ...(joining.workspace === null ? [] : [joining.workspace]),
    ])
    const secret = newTotpSecret(environment)
    const sealed = people.secrets.seal(ownerOfTotp(joining.person), secret).toString('base64')
    const passwordHash = await people.hashing.run({ email: joining.email, ip: from.ip }, () =>
      hashPassword(environment, body.password, people.passwordCost),
    )
    const totpToken = await beginStep(database, environment, 'join-password', null, {
      ...joining,
      password_hash: passwordHash,
      secret: sealed,
    })
    return {
      body: { totp_token: totpToken, secret, otpauth_uri: otpauthUri(secret, joining.email) },
    }
  },
})

export const joinTotp = panelEndpoint({
  method: 'POST',
  path: '/console/api/join/totp',
  summary: 'Finish accepting an invitation with a code of the authenticator app',
  needs: 'nobody',
  body: z.strictObject({ totp_token: token, code }),
  response: z.object({
    recovery_codes: z.array(z.string()).meta({ description: 'Returned only in this response' }),
    session: sessionShape,
  }),
  async handler({ body, visitor: { from, someone } }, services: Services) {
    const { database, environment, people } = services
    countSignIn(services, from)
    const step = await tryStep(database, 'join-password', body.totp_token)
    if (!step)
      throw new ApiError(
        'SIGN_IN_FAILED',
        'the set-up was not finished in time, or had too many attempts: begin again',
      )
    const joining = step.data
    const sealed = Buffer.from(joining.secret, 'base64')
    const taken = stepOfCode(
      people.secrets.open(ownerOfTotp(joining.person), sealed),
      body.code.replaceAll(/\s/g, ''),
      environment.now(),
    )
    if (taken === null)
      throw new ApiError('SIGN_IN_FAILED', 'code: is not the code that the app displays now', {
        field: 'code',
      })
    const { cookie, codes } = await database.transaction(async (tx) => {
      if (!(await endStep(tx, body.totp_token)))
        throw new ApiError('SIGN_IN_FAILED', 'the invitation was accepted before: sign in')
      await makePerson(services, tx, joining)
      await tx.query('update people set password_hash = $2, totp_secret = $3 where id = $1', [
        joining.person,
        joining.password_hash,
        sealed,
      ])
      await takeStep(tx, joining.person, taken)
      const recoveryCodes = await renewRecoveryCodes(tx, environment, joining.person)
      await acceptInvitation(
        services,
        tx,
        { id: joining.invitation, workspace: joining.workspace },
        { id: joining.person, email: joining.email },
        from,
      )
      return {
        cookie: await openSession(services, tx, {
          personId: joining.person,
          factor: 'totp',
          from,
          before: someone,
        }),
        codes: recoveryCodes,
      }
    })
    people.sessions.forget()
    return {
      headers: cookieHeaders(cookie, from),
      body: {
        recovery_codes: codes,
        session: await presentSession(services, joining.person, from),
      },
    }
  },
})
