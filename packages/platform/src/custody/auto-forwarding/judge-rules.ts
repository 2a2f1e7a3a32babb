import type { Registry } from '@custody/chains'
import { reasonOf } from '@custody/chains/reason'
import type { Logger } from 'pino'
import type { Database } from '../../core/database/pool.ts'
import type { Loop } from '../../core/engine/loops/loop.ts'
import type { Environment } from '../../core/environment.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import { judgeRule } from '../approvals/judge-rule.ts'
import type { Outcome, WorkspacePolicies } from '../approvals/workspace-policies.ts'
import { requireApprovals } from './rule-approvals.ts'
import type { RuleRow } from './rule.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  signers: SignerNodes
  policies: WorkspacePolicies
  log: Logger
}

const EVERY_MS = 30_000
/** Workspaces of which one run judges a rule. */
const WORKSPACES_MAX = 100
/** Time after which all rules of a workspace are judged again by the same document. */
const AGAIN_MS = 3_600_000
/** Greatest number of workspaces that are remembered. */
const REMEMBERED_MAX = 10_000
const FIRST = '00000000-0000-0000-0000-000000000000'

/** Document by which all rules of a workspace were judged, and when in milliseconds. */
type Judged = Map<string, { hash: string; at: number }>

/**
 * Creates the loop that judges active rules by the policies of their workspaces. A rule whose
 * forwards require approvals waits for them then, before funds arrive: after the first document, and
 * after a change, a suspension or a revocation.
 */
export function judgeRulesLoop(services: Services): Loop {
  const judged: Judged = new Map()
  let after = FIRST
  return {
    name: 'auto-forwarding policies',
    everyMs: EVERY_MS,
    async run() {
      const rules = await services.database.query<RuleRow>(
        `select distinct on (workspace_id) * from forward_rules
         where state = 'ACTIVE' and workspace_id > $1 order by workspace_id, id limit $2`,
        [after, WORKSPACES_MAX],
      )
      for (const rule of rules)
        try {
          await judgeRulesLike(services, rule, judged)
        } catch (error) {
          services.log.warn(
            { rule: rule.id, err: reasonOf(error) },
            'forwarding rules could not be judged by the policy; they are judged again',
          )
        }
      const isMore = rules.length === WORKSPACES_MAX
      after = isMore ? rules.at(-1)!.workspace_id : FIRST
      return isMore
    },
  }
}

/** Judges a rule, and the other ones of its workspace if its policy is another one than before. */
async function judgeRulesLike(services: Services, rule: RuleRow, judged: Judged): Promise<void> {
  const { database, environment } = services
  const { workspace_id: workspace } = rule
  const outcome = await judgeRule(services, rule, null)
  if (outcome.kind === 'none') judged.delete(workspace)
  if (!('judgement' in outcome)) return
  await apply(services, rule, outcome)
  const { hash } = outcome.judgement.policy
  const [before, now] = [judged.get(workspace), environment.now()]
  if (before?.hash === hash && Math.abs(now - before.at) < AGAIN_MS) return
  const others = await database.query<RuleRow>(
    `select * from forward_rules where state = 'ACTIVE' and workspace_id = $1 and id <> $2`,
    [workspace, rule.id],
  )
  for (const other of others) await apply(services, other, await judgeRule(services, other, null))
  if (judged.size >= REMEMBERED_MAX) judged.clear()
  judged.set(workspace, { hash, at: now })
}

async function apply(services: Services, rule: RuleRow, outcome: Outcome): Promise<void> {
  if (outcome.kind === 'approval') return requireApprovals(services, rule, outcome.judgement, null)
  if (outcome.kind !== 'denied') return
  services.log.warn(
    { rule: rule.id, reason: outcome.message },
    'the policy does not allow the smallest forward of a rule',
  )
}
