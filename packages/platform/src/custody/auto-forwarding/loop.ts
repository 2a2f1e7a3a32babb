import { reasonOf } from '@custody/chains/reason'
import type { Settings } from '../../core/settings/settings.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Registry } from '@custody/chains'
import type { Networks } from '../../core/engine/networks.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Logger } from 'pino'
import type { Prices } from '../prices/prices.ts'
import type { WorkspacePolicies } from '../approvals/workspace-policies.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import { endRules, IS_ABANDONED } from './end-rules.ts'
import { forwardRule } from './forward.ts'
import { awaitRuleApprovals } from './rule-approvals.ts'
import { expireRules, IS_EXPIRED, type RuleRow } from './rule.ts'

interface Services {
  settings: Pick<Settings, 'pollMs' | 'prepaidTiers' | 'prices'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  addresses: Addresses
  log: Logger
  prices: Prices
  policies: WorkspacePolicies
}

const RULES_PER_RUN = 20
/** Seconds until a rule whose chain or nodes are unreachable is checked again. */
const ERROR_WAIT_S = 10

const DUE = `exists (select 1 from forward_rules where state in ('ACTIVE', 'APPROVAL', 'ENDING') and next_run_at <= $1) 
  or exists (select 1 from forward_rules where ${IS_EXPIRED} or ${IS_ABANDONED})`

/**
 * Creates the loop that forwards waiting amounts, ends deleted rules, expires rules, and continues
 * those whose approvals are complete.
 */
export function autoForwardingLoop(services: Services): Loop {
  return {
    name: 'auto-forwarding',
    everyMs: services.settings.pollMs,
    due: DUE,
    async run() {
      await services.database.transaction((tx) =>
        expireRules(tx, new Date(services.environment.now())),
      )
      await endRules(services)
      const rules = await services.database.query<RuleRow>(
        `select * from forward_rules where state in ('ACTIVE', 'APPROVAL') and next_run_at <= $2
          order by next_run_at limit $1`,
        [RULES_PER_RUN, services.database.now()],
      )
      for (const rule of rules) {
        try {
          await (rule.state === 'APPROVAL' ? awaitRuleApprovals : forwardRule)(services, rule)
        } catch (error) {
          services.log.warn(
            { rule: rule.id, err: reasonOf(error) },
            'a forwarding rule could not be processed; it is retried',
          )
          await services.database.query(
            `update forward_rules set next_run_at = $3::timestamptz + $2 * interval '1 second'
              where workspace_id = $4 and id = $1`,
            [rule.id, ERROR_WAIT_S, services.database.now(), rule.workspace_id],
          )
        }
      }
      return rules.length === RULES_PER_RUN
    },
  }
}
