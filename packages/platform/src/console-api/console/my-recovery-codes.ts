import { z } from 'zod'
import { panelEndpoint } from '../people/endpoint.ts'
import { changeOwn, lockPerson } from '../people/factors.ts'
import { renewRecoveryCodes } from '../people/recovery-codes.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { People } from '../people/people.ts'

interface Services {
  environment: Environment
  database: Database
  people: People
}

/** Generates ten recovery codes in place of the earlier ones. */
export const renewMyRecoveryCodes = panelEndpoint({
  method: 'POST',
  path: '/console/api/me/recovery-codes',
  summary: 'Create ten new recovery codes and invalidate the old ones',
  needs: 'anybody',
  isSensitive: true,
  body: z.strictObject({}),
  response: z.object({ recovery_codes: z.array(z.string()) }),
  async handler({ visitor }, services: Services) {
    const { personId } = visitor.session
    const codes = await changeOwn(
      services,
      visitor,
      { action: 'recovery_codes.renewed' },
      async (tx) => {
        await lockPerson(tx, personId)
        return renewRecoveryCodes(tx, services.environment, personId)
      },
    )
    return { body: { recovery_codes: codes } }
  },
})
