import { z } from 'zod'
import { panelEndpoint } from '../people/endpoint.ts'
import { code, email, sessionShape, token, typedPassword } from '../people/schemas.ts'
import { checkPassword, finishSignIn } from '../people/sign-in.ts'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { People } from '../people/people.ts'

interface Services {
  settings: Pick<Settings, 'network'>
  environment: Environment
  database: Database
  people: People
}

/** First step of a sign-in with a password. */
export const signInPassword = panelEndpoint({
  method: 'POST',
  path: '/console/api/sign-in/password',
  summary: 'Begin a sign-in with a password',
  needs: 'nobody',
  body: z.strictObject({ email, password: typedPassword }),
  response: z.object({ mfa_token: z.string() }),
  async handler(
    { body, visitor },
    services: Pick<Services, 'environment' | 'database' | 'people'>,
  ) {
    return {
      body: { mfa_token: await checkPassword(services, body.email, body.password, visitor.from) },
    }
  },
})

const secondHalf = (factor: 'totp' | 'recovery', summary: string) =>
  panelEndpoint({
    method: 'POST',
    path: `/console/api/sign-in/${factor}`,
    summary,
    needs: 'nobody',
    body: z.strictObject({ mfa_token: token, code }),
    response: sessionShape,
    handler: ({ body, visitor }, services: Services) =>
      finishSignIn(services, {
        token: body.mfa_token,
        factor,
        code: body.code,
        from: visitor.from,
        before: visitor.someone,
      }),
  })

/** Second step: a code of the authenticator app, or a recovery code. */
export const signInTotp = secondHalf(
  'totp',
  'Finish the sign-in with a code of the authenticator app',
)
export const signInRecovery = secondHalf(
  'recovery',
  'Finish the sign-in with a recovery code, which can be used once',
)
