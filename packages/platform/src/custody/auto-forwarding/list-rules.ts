import { z } from 'zod'
import { assertKnownAsset } from '../assets/find-asset.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { assetName, oneOf, pageOf, pageQuery } from '../../core/http/schemas.ts'
import {
  RULE_COLUMNS,
  presentRule,
  ruleShape,
  STATE_OF_STATUS,
  STATUSES,
  type RuleRow,
} from './rule.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
}

/**
 * Lists the rules of the sub-account, newest first. Deleted ones are listed only if a filter asks
 * for them.
 */
export const listRules = endpoint({
  id: 'listForwardingRules',
  tag: 'Auto-forwarding',
  description: 'Returns the rules of the sub-account, newest first.',
  errors: ['UNSUPPORTED_ASSET'],
  method: 'GET',
  path: '/dac/v1/auto-forwarding',
  summary: 'List forwarding rules',
  access: 'read',
  query: z.strictObject({
    asset: assetName.optional(),
    status: oneOf(STATUSES).optional(),
    ...pageQuery,
  }),
  response: pageOf(ruleShape),
  async handler({ caller, query: { asset, status, page, limit } }, services: Services) {
    assertKnownAsset(services, asset)
    const now = new Date(services.environment.now())
    const where = `workspace_id = $5 and sub_account_id = $1 and ($2::text is null or asset = $2)
      and case when $3::text is null then state not in ('ENDING', 'ENDED')
        else (case when state in ('ACTIVE', 'PAUSED', 'APPROVAL') and expires_at <= $4 then 'EXPIRED' else state end) = $3 end`
    const values = [
      caller.subAccountId,
      asset ?? null,
      status === undefined ? null : STATE_OF_STATUS.get(status),
      now,
      caller.workspaceId,
    ]
    const [rows, count] = await Promise.all([
      services.database.query<RuleRow>(
        `select ${RULE_COLUMNS} from forward_rules r where ${where} order by created_at desc,
          id desc limit $6 offset $7`,
        [...values, limit, (page - 1) * limit],
      ),
      services.database.one<{ total: string }>(
        `select count(*)::text total from forward_rules where ${where}`,
        values,
      ),
    ])
    return {
      body: {
        data: rows.map((row) => presentRule(row, services.registry, now.getTime())),
        page,
        limit,
        total: Number(count?.total ?? 0),
      },
    }
  },
})
