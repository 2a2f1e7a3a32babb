import { emptyBody } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import { pathId } from '../../core/http/schemas.ts'
import { closeRequest } from '../approvals/requests.ts'
import { endRule } from './end-rules.ts'
import { findRule, presentRule, ruleShape } from './rule.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
}

/**
 * Ends a rule permanently by sending the caller's signed request to the nodes. The status is
 * `deleting` while fewer than two nodes have received it. The body is `{}`, because a signature
 * need not cover the method and without a body it would also be valid for a GET.
 */
export const deleteRule = endpoint({
  id: 'deleteForwardingRule',
  tag: 'Auto-forwarding',
  description:
    'Deletes a rule permanently. The request is the signed void that the signer nodes store. Forwards that already exist continue. Repeating the request has no further effect.',
  errors: ['FORBIDDEN', 'NOT_FOUND'],
  method: 'DELETE',
  path: '/dac/v1/auto-forwarding/{id}',
  summary: 'Delete a forwarding rule',
  access: 'write',
  audit: 'entry',
  params: z.strictObject({ id: pathId }),
  body: emptyBody,
  response: ruleShape,
  async handler({ caller, params, signed }, services: Services) {
    const rule = await findRule(services, caller, params.id)
    // From here on nothing more is forwarded, even if the nodes have not received the deletion yet.
    await services.database.transaction(async (tx) => {
      await tx.query(
        `update forward_rules set state = 'ENDING', end_request = $2,
          next_run_at = $3::timestamptz + interval '10 seconds',
          last_error = null, updated_at = $3
         where workspace_id = $4 and id = $1 and state <> 'ENDED'`,
        [
          rule.id,
          JSON.stringify({ api_key: caller.apiKey, ...signed }),
          tx.now(),
          rule.workspace_id,
        ],
      )
      await closeRequest(tx, rule, 'ended')
    })
    services.environment.checkpoint('rule.ending')
    await endRule(services, await findRule(services, caller, rule.id))
    return {
      body: presentRule(
        await findRule(services, caller, rule.id),
        services.registry,
        services.environment.now(),
      ),
    }
  },
})
