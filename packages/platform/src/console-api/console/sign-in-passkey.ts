import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { authenticationOptions, takePasskey } from '../people/passkeys.ts'
import { passkeyOptions, passkeyResponse, sessionShape, token } from '../people/schemas.ts'
import { countSignIn, signIn } from '../people/sign-in.ts'
import { beginStep, endStep, tryStep } from '../people/steps.ts'
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

/** Returns the options for a sign-in with a passkey. */
export const signInPasskeyOptions = panelEndpoint({
  method: 'POST',
  path: '/console/api/sign-in/passkey/options',
  summary: 'Begin a sign-in with a passkey',
  needs: 'nobody',
  body: z.strictObject({}),
  response: passkeyOptions,
  async handler(
    { visitor: { from } },
    services: Pick<Services, 'environment' | 'database' | 'people'>,
  ) {
    const { database, environment } = services
    countSignIn(services, from)
    const { options, challenge } = await authenticationOptions(environment, from)
    const id = await beginStep(database, environment, 'passkey-sign-in', null, {
      challenge,
      origin: from.origin,
      session: null,
    })
    return { body: { challenge_id: id, options } }
  },
})

/**
 * Signs in with a passkey, which is a possession factor that is unlocked by biometrics or a PIN.
 */
export const signInPasskey = panelEndpoint({
  method: 'POST',
  path: '/console/api/sign-in/passkey',
  summary: 'Finish a sign-in with a passkey',
  needs: 'nobody',
  body: z.strictObject({ challenge_id: token, response: passkeyResponse }),
  response: sessionShape,
  async handler({ body, visitor: { from, someone } }, services: Services) {
    countSignIn(services, from)
    const step = await tryStep(services.database, 'passkey-sign-in', body.challenge_id)
    if (!step || step.data.session !== null)
      throw new ApiError('SIGN_IN_FAILED', 'the sign-in was not finished in time: begin again')
    const { personId } = await services.database.transaction((tx) =>
      takePasskey(tx, body.response, step.data),
    )
    const confirmed = { personId, factor: 'passkey' as const, from, before: someone }
    return signIn(services, confirmed, async (tx) => {
      if (!(await endStep(tx, body.challenge_id)))
        throw new ApiError('SIGN_IN_FAILED', 'this sign-in was finished before')
    })
  },
})
