import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import { pathId } from '../../core/http/schemas.ts'
import { conversionShape, findConversion, presentConversion } from './conversion.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'

interface Services {
  environment: Environment
  database: Database
}

/** Returns a conversion with the current state of its order. */
export const readConversion = endpoint({
  id: 'readConversion',
  tag: 'Trading',
  description: 'Returns one conversion.',
  errors: ['NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/conversions/{id}',
  summary: 'Read a conversion',
  access: 'read',
  params: z.strictObject({ id: pathId }),
  response: conversionShape,
  async handler({ caller, params }, services: Services) {
    const { row, order } = await findConversion(services.database, caller, params.id)
    return { body: presentConversion(row, order, services.environment.now()) }
  },
})
