import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { panelEndpoint } from '../people/endpoint.ts'
import { acceptInvitation, makePerson, readJoining } from '../people/join.ts'
import { addPasskey, registrationOptions, verifyRegistration } from '../people/passkeys.ts'
import {
  email,
  passkeyOptions,
  passkeyResponse,
  sessionShape,
  title,
  token,
  workspaceName,
} from '../people/schemas.ts'
import { countSignIn, signIn } from '../people/sign-in.ts'
import { beginStep, endStep, tryStep } from '../people/steps.ts'
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

/** Returns the options for a passkey that the browser creates to accept an invitation. */
export const joinPasskeyOptions = panelEndpoint({
  method: 'POST',
  path: '/console/api/join/passkey/options',
  summary: 'Begin accepting an invitation with a passkey',
  needs: 'nobody',
  body: z.strictObject({
    invitation: token,
    email,
    name: title(),
    workspace: workspaceName.optional(),
  }),
  response: passkeyOptions,
  async handler({ body, visitor: { from } }, services: Services) {
    const { database, environment } = services
    countSignIn(services, from)
    const joining = await readJoining(services, body.invitation, body)
    const { options, challenge } = await registrationOptions(environment, database, from, {
      id: joining.person,
      email: joining.email,
      name: joining.name,
    })
    const id = await beginStep(database, environment, 'join-passkey', null, {
      ...joining,
      challenge,
      origin: from.origin,
    })
    return { body: { challenge_id: id, options } }
  },
})

export const joinPasskey = panelEndpoint({
  method: 'POST',
  path: '/console/api/join/passkey',
  summary: 'Finish accepting an invitation with a passkey',
  needs: 'nobody',
  body: z.strictObject({
    challenge_id: token,
    response: passkeyResponse,
    passkey_name: title().optional(),
  }),
  response: sessionShape,
  async handler({ body, visitor: { from, someone } }, services: Services) {
    countSignIn(services, from)
    const step = await tryStep(services.database, 'join-passkey', body.challenge_id)
    if (!step)
      throw new ApiError('SIGN_IN_FAILED', 'the confirmation was not finished in time: begin again')
    const joining = step.data
    const passkey = await verifyRegistration(body.response, joining)
    const confirmed = {
      personId: joining.person,
      factor: 'passkey' as const,
      from,
      before: someone,
    }
    return signIn(services, confirmed, async (tx) => {
      if (!(await endStep(tx, body.challenge_id)))
        throw new ApiError('SIGN_IN_FAILED', 'the invitation was accepted before: sign in')
      await makePerson(services, tx, joining)
      await addPasskey(
        tx,
        services.environment,
        joining.person,
        passkey,
        body.passkey_name ?? 'Passkey',
      )
      await acceptInvitation(
        services,
        tx,
        { id: joining.invitation, workspace: joining.workspace },
        { id: joining.person, email: joining.email },
        from,
      )
    })
  },
})
