import { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { pathId } from '../../core/http/schemas.ts'
import { findRule, presentRule, ruleShape, type RuleRow } from './rule.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
}

/**
 * Creates the endpoint that pauses or resumes a rule. Only the platform knows about a pause. Funds
 * that arrive during the pause wait, and are forwarded when the rule is resumed.
 */
const turn = (verb: 'pause' | 'resume', summary: string) =>
  endpoint({
    id: `${verb}ForwardingRule`,
    tag: 'Auto-forwarding',
    description:
      verb === 'pause'
        ? 'Funds that arrive while the rule is paused wait until it is resumed. Repeating the request has no further effect.'
        : 'Funds that arrived while the rule was paused are forwarded as well. Repeating the request has no further effect.',
    errors: ['FORBIDDEN', 'NOT_FOUND', 'RULE_FINAL'],
    method: 'POST',
    path: `/dac/v1/auto-forwarding/{id}/${verb}`,
    summary,
    access: 'write',
    audit: 'entry',
    params: z.strictObject({ id: pathId }),
    response: ruleShape,
    async handler({ caller, params }, services: Services) {
      const rule = await findRule(services, caller, params.id)
      const now = new Date(services.environment.now())
      const [from, to] = verb === 'pause' ? ['ACTIVE', 'PAUSED'] : ['PAUSED', 'ACTIVE']
      const turned = await services.database.one<RuleRow>(
        `update forward_rules set state = $3, next_run_at = case
          when $3 = 'ACTIVE' then $4::timestamptz end, failures = 0,
        last_error = null, updated_at = $4
       where workspace_id = $5 and id = $1 and state = $2 and expires_at > $4 returning *`,
        [rule.id, from, to, now, rule.workspace_id],
      )
      const row = turned ?? (await findRule(services, caller, rule.id))
      const shown = presentRule(row, services.registry, now.getTime())
      // A repeated request finds the requested state and succeeds.
      if (row.state !== to || shown.status === 'expired')
        throw new ApiError('RULE_FINAL', `id: the rule is ${shown.status}`, { field: 'id' })
      return { body: shown }
    },
  })

export const pauseRule = turn('pause', 'Pause a forwarding rule')
export const resumeRule = turn('resume', 'Resume a forwarding rule')
