import { z } from 'zod'
import { panelEndpoint } from '../people/endpoint.ts'
import { signInByRecoveryCode } from '../people/recover.ts'
import { code, email, sessionShape } from '../people/schemas.ts'

/** Signs in a person without a password whose passkey is lost. */
export const signInRecoveryCode = panelEndpoint({
  method: 'POST',
  path: '/console/api/sign-in/recovery-code',
  needs: 'nobody',
  summary:
    'Sign in with an e-mail address and a recovery code, without a password; ends all other sessions',
  body: z.strictObject({ email, code }),
  response: sessionShape,
  handler: ({ services, body, visitor }) =>
    signInByRecoveryCode(services, body.email, body.code, visitor.from, visitor.someone),
})
