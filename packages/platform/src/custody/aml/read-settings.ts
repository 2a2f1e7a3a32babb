import { reasonOf } from '@custody/chains/reason'
import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { openToken, readPolicy } from './policy.ts'
import { amlShape, presentAml } from './present.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Logger } from 'pino'
import type { Aml } from './aml.ts'

interface Services {
  database: Database
  log: Logger
  aml: Aml
}

/** Returns the screening settings of the caller's sub-account, with the token masked. */
export const readAmlSettings = endpoint({
  id: 'readAmlSettings',
  tag: 'AML screening',
  description: 'Returns the settings without the token. Returns 404 if screening is not set up.',
  errors: ['NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/aml',
  summary: 'Read the AML screening settings',
  access: 'read',
  query: z.strictObject({}),
  response: amlShape,
  async handler({ caller }, services: Services) {
    const row = await readPolicy(services.database, caller.workspaceId, caller.subAccountId)
    if (!row)
      throw new ApiError(
        'NOT_FOUND',
        'AML screening is not set up in this sub-account; set it up with POST /dac/v1/aml',
      )
    let token = ''
    try {
      token = openToken(services, caller.subAccountId, row)
    } catch (error) {
      // The error is only logged, so that settings can still be read and saved if the secrets key
      // was lost.
      services.log.error({ err: reasonOf(error) }, 'an AML token cannot be decrypted')
    }
    return { body: presentAml(row, token) }
  },
})
