import { z } from 'zod'
import { endpoint } from '../../core/http/endpoint.ts'
import { pageOf, pageQuery, pathId } from '../../core/http/schemas.ts'
import { presentNow, transactionNowShape } from '../../core/engine/present.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { findRule } from './rule.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'

interface Services {
  database: Database
  registry: Registry
}

/** Lists the transfers that a rule has created, newest first. */
export const ruleHistory = endpoint({
  id: 'listForwards',
  tag: 'Auto-forwarding',
  description: 'Returns the transfers that the rule has created, newest first.',
  errors: ['FORBIDDEN', 'NOT_FOUND'],
  method: 'GET',
  path: '/dac/v1/auto-forwarding/{id}/history',
  summary: 'List the forwards of a rule',
  access: 'read',
  params: z.strictObject({ id: pathId }),
  query: z.strictObject(pageQuery),
  response: pageOf(transactionNowShape),
  async handler({ caller, params, query: { page, limit } }, services: Services) {
    const rule = await findRule(services, caller, params.id)
    const [rows, count] = await Promise.all([
      services.database.query<TransactionRow>(
        `select t.* from forwards f
          join transactions t on t.workspace_id = f.workspace_id and t.id = f.transaction_id
        where f.workspace_id = $4 and f.rule_id = $1 order by f.created_at desc, t.id desc
          limit $2 offset $3`,
        [rule.id, limit, (page - 1) * limit, rule.workspace_id],
      ),
      services.database.one<{ total: string }>(
        'select count(*)::text total from forwards where workspace_id = $2 and rule_id = $1',
        [rule.id, rule.workspace_id],
      ),
    ])
    return {
      body: {
        data: rows.map((row) => presentNow(row, services.registry)),
        page,
        limit,
        total: Number(count?.total ?? 0),
      },
    }
  },
})
