import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import { pathId } from '../../core/http/schemas.ts'
import { findRule, presentRule, ruleShape } from './rule.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
}

export const readRule = endpoint({
  id: 'readForwardingRule',
  tag: 'Auto-forwarding',
  description: 'Returns one rule, with the amount that is waiting to be forwarded.',
  errors: ['FORBIDDEN', 'NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/auto-forwarding/{id}',
  summary: 'Read a forwarding rule',
  access: 'read',
  params: z.strictObject({ id: pathId }),
  response: ruleShape,
  async handler({ caller, params }, services: Services) {
    return {
      body: presentRule(
        await findRule(services, caller, params.id),
        services.registry,
        services.environment.now(),
      ),
    }
  },
})
