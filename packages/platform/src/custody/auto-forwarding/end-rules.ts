import { stringifyJson } from '@custody/request-auth'
import { emit } from '../../core/ledger/post.ts'
import type { Environment } from '../../core/environment.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { openCancellation, UNSIGNED_STATES } from '../../core/engine/replacement.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { presentRule, RULE_COLUMNS, type RuleRow } from './rule.ts'
import { endAtNodes } from './show-nodes.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
}

const RETRY_S = 10
/**
 * Seconds after which a pending rule counts as abandoned: its process ended before a response was
 * sent.
 */
const PENDING_S = 60

/** ENDING → ENDED, once two nodes have stored the end. */
export async function endRule(services: Services, rule: RuleRow): Promise<void> {
  if (rule.state !== 'ENDING') return
  const { enough, problems, signed } = await endAtNodes(services, rule)
  await services.database.transaction(async (tx) => {
    const written = await tx.one<{ state: string }>(
      `update forward_rules set
         state = case when $2 then 'ENDED' else state end,
         next_run_at = case when $2 then null else $6::timestamptz + $3 * interval '1 second' end,
         last_error = case when $2 then null else $4 end, updated_at = $6,
         end_hashes = (select coalesce(jsonb_agg(distinct h), '[]')
           from jsonb_array_elements(end_hashes || $5::jsonb) h)
       where workspace_id = $7 and id = $1 and state = 'ENDING' returning state`,
      [
        rule.id,
        enough,
        RETRY_S,
        `it waits for the signer nodes: ${problems.join('; ')}`.slice(0, 500),
        JSON.stringify(signed),
        tx.now(),
        rule.workspace_id,
      ],
    )
    if (written?.state === 'ENDED') await takeBackForwards(services, tx, rule)
    const ended = await tx.one<RuleRow>(
      `select ${RULE_COLUMNS} from forward_rules r where r.workspace_id = $2 and r.id = $1`,
      [rule.id, rule.workspace_id],
    )
    if (written?.state === 'ENDED' && (ended?.end_request || ended?.end_reason)) {
      await emit(
        tx,
        ended.workspace_id,
        ended.sub_account_id,
        'auto_forwarding.deleted',
        stringifyJson(presentRule(ended, services.registry, services.environment.now())),
      )
    }
  })
}

/**
 * Cancels the rule's pending forwards: before signing at no cost; after signing, if the chain
 * allows replacement, with a payment to the own address that uses the same nonce or inputs. The
 * deletion request authorises this at the nodes.
 */
async function takeBackForwards(services: Services, tx: Queryable, rule: RuleRow): Promise<void> {
  if (!rule.end_request) return
  const rows = await tx.query<TransactionRow>(
    `select t.* from forwards f join transactions t on t.workspace_id = f.workspace_id
      and t.id = f.transaction_id
     where f.workspace_id = $2 and f.rule_id = $1 and t.status = 'pending'
       and t.state <> 'VOIDING' for no key update of t`,
    [rule.id, rule.workspace_id],
  )
  for (const row of rows) {
    if (!UNSIGNED_STATES.has(row.state) && !services.networks.get(row.network).replaceable) continue
    await openCancellation(tx, services.environment.uuid(), row, rule.end_request)
  }
}

/** SQL condition on `forward_rules` at time $1: the rule was abandoned while pending. */
export const IS_ABANDONED = `(state = 'PENDING' and created_at < $1::timestamptz - ${PENDING_S} * interval '1 second')`

/** Ends abandoned rules, and rules whose end the nodes have not stored yet. */
export async function endRules(services: Services): Promise<void> {
  const now = services.database.now()
  await services.database.query(
    `update forward_rules set state = 'ENDING', next_run_at = $1 where ${IS_ABANDONED}`,
    [now],
  )
  const rules = await services.database.query<RuleRow>(
    `select ${RULE_COLUMNS} from forward_rules r where state = 'ENDING' and next_run_at <= $1
      order by next_run_at limit 20`,
    [now],
  )
  for (const rule of rules) await endRule(services, rule)
}
