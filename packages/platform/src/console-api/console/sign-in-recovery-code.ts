import { z } from 'zod'
import { panelEndpoint } from '../people/endpoint.ts'
import { signInByRecoveryCode } from '../people/recover.ts'
import { code, email, sessionShape } from '../people/schemas.ts'
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

/** Signs in a person without a password whose passkey is lost. */
export const signInRecoveryCode = panelEndpoint({
  method: 'POST',
  path: '/console/api/sign-in/recovery-code',
  needs: 'nobody',
  summary:
    'Sign in with an e-mail address and a recovery code, without a password; ends all other sessions',
  body: z.strictObject({ email, code }),
  response: sessionShape,
  handler: ({ body, visitor }, services: Services) =>
    signInByRecoveryCode(services, body.email, body.code, visitor.from, visitor.someone),
})
