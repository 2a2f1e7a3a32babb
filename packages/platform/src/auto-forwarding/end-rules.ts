import { stringifyJson } from '@custody/request-auth'
import { emit } from '../ledger/post.ts'
import type { Services } from '../services.ts'
import { presentRule, type RuleRow } from './rule.ts'
import { endAtNodes } from './show-nodes.ts'

const RETRY_S = 10
/** A rule that is still pending after this long was left by a process that ended; nobody was told that it was made. */
const PENDING_S = 60

/** ENDING → ENDED, once two nodes hold the end. */
export async function endRule(services: Services, rule: RuleRow): Promise<void> {
  if (rule.state !== 'ENDING') return
  const { enough, problems } = await endAtNodes(services, rule)
  await services.database.transaction(async (tx) => {
    const ended = await tx.one<RuleRow>(
      `update forward_rules set state = case when $2 then 'ENDED' else state end, next_run_at = case when $2 then null else now() + $3 * interval '1 second' end,
         last_error = case when $2 then null else $4 end, updated_at = now() where id = $1 and state = 'ENDING' returning *`,
      [rule.id, enough, RETRY_S, `waits for the signer nodes: ${problems.join('; ')}`.slice(0, 500)])
    if (ended?.state === 'ENDED' && ended.end_request) await emit(tx, ended.workspace_id, ended.sub_account_id, 'auto_forwarding.deleted', stringifyJson(presentRule(ended, services.registry, services.environment.now())))
  })
}

/** Rules that nodes have yet to be told of. */
export async function endRules(services: Services): Promise<void> {
  await services.database.query(`update forward_rules set state = 'ENDING', next_run_at = now() where state = 'PENDING' and created_at < $1`, [new Date(services.environment.now() - PENDING_S * 1000)])
  const rules = await services.database.query<RuleRow>(`select * from forward_rules where state = 'ENDING' and next_run_at <= now() order by next_run_at limit 20`)
  for (const rule of rules) await endRule(services, rule)
}
