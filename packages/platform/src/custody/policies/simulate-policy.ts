import type { Registry } from '@custody/chains'
import { LIMITS, type PastAct, type Policy, type Simulation } from '@custody/policy'
import { z } from 'zod'
import type { Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint } from '../../core/http/endpoint.ts'
import { wholeNumber } from '../../core/http/schemas.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import {
  actsOfForwards,
  actsOfTransfers,
  newestActs,
  pastForwards,
  pastTransfers,
} from './past-acts.ts'
import { analysisOf } from './analysis/analysis.ts'
import { policyInForce } from './policy-in-force.ts'
import { compiledOf } from './request-document.ts'
import { DOCUMENT_EXAMPLE, documentShape } from './shapes.ts'
import { actsOfRules, standingRules } from './standing-rules.ts'

interface Services {
  database: Database
  registry: Registry
  signers: SignerNodes
}

const LAST_MAX = 1000
/** Largest product of transfers and rules: about three seconds of processor time. */
const WORK_MAX = 200_000
const STOPPED_EXAMPLE =
  'The standing rule 7c9e6679-7425-40de-944b-e07fc1f90ae7 would stop: it needs approvals.'
const ids = (description: string) =>
  z
    .array(z.string().max(64))
    .max(LAST_MAX)
    .meta({ description, examples: [['7c9e6679-7425-40de-944b-e07fc1f90ae7']] })

/** Replays past transfers of the workspace with another policy document. */
export const simulatePolicy = endpoint({
  id: 'simulatePolicy',
  tag: 'Policy',
  description:
    'Judges the last transfers, refunds and forwards of the workspace again, in the order of their time, by the document in force and by the document in the request, each with its time windows, and lists the transfers of the sub-account whose result differs. Without a policy in force, every transfer was allowed. Nothing is created or changed. `npx custody policy simulate` does the same for the whole workspace.',
  errors: ['SIGNERS_UNAVAILABLE'],
  method: 'POST',
  path: '/dac/v1/policy/simulate',
  summary: 'Simulate a policy document',
  access: 'read',
  heavy: { kind: 'policy simulation', weight: 20, waiting: 0 },
  hasDocument: true,
  body: z.strictObject({
    document: documentShape,
    last: wholeNumber(
      1,
      LAST_MAX,
      `Number of transfers, refunds and forwards of the workspace that are replayed; by default 1000, or fewer if the two documents have more than ${WORK_MAX / LAST_MAX} rules together`,
    ).optional(),
  }),
  example: { document: DOCUMENT_EXAMPLE, last: 1000 },
  response: z.object({
    same: z
      .int()
      .min(0)
      .max(LAST_MAX)
      .meta({ description: 'Number of transfers of the sub-account with the same result' }),
    newly_denied: ids('Transfers, with refunds and forwards, that the document would deny'),
    newly_approval: ids('Transfers that would need approvals, and were allowed or denied'),
    newly_allowed: ids('Transfers that would need no approvals, and were denied or needed some'),
    unused_rules: z
      .array(z.string().max(64))
      .max(LIMITS.rules)
      .meta({ description: 'Rules that had no part in any result', examples: [['large']] }),
    stopped: z
      .array(z.string().max(1000))
      .max(LAST_MAX)
      .meta({
        description:
          'Forwarding rules of the sub-account whose smallest forward the document would not allow without approvals, with the reason',
        examples: [[STOPPED_EXAMPLE]],
      }),
  }),
  async handler({ caller, body }, { database, registry, signers }: Services) {
    const next = compiledOf(registry, caller.workspace, body.document)
    const inForce = await policyInForce(signers, caller.workspace)
    const last = lastOf(body.last, next, inForce)
    const { workspace, workspaceId, subAccountId } = caller
    const transfers = await pastTransfers(database, workspaceId, { last })
    const forwards = await pastForwards(database, workspaceId, { last })
    const all = [
      ...actsOfTransfers(registry, workspace, transfers),
      ...actsOfForwards(registry, workspace, forwards),
    ]
    const acts = newestActs(all, last)
    const own = new Set(
      [...transfers, ...forwards].flatMap(({ id, sub_account_id: owner }) =>
        owner === subAccountId ? [id] : [],
      ),
    )
    const rules = (await standingRules(database, workspaceId)).filter(
      ({ sub_account_id: owner }) => owner === subAccountId,
    )
    const { simulation, stopped } = await analysisOf(registry).run(workspaceId, {
      kind: 'simulate',
      next: next.document,
      current: inForce && inForce.document,
      acts,
      forwards: actsOfRules(registry, workspace, rules),
    })
    return {
      body: {
        ...onlyOwn(simulation, acts, own),
        stopped: stopped.slice(0, LAST_MAX).map((each) => each.slice(0, 1000)),
      },
    }
  },
})

/**
 * Returns how many transfers are replayed.
 * @throws ApiError `INVALID_REQUEST` if it would take too long
 */
export function lastOf(
  requested: number | undefined,
  ...policies: readonly (Pick<Policy, 'document'> | null)[]
): number {
  const rules = policies.reduce((sum, policy) => sum + (policy?.document.rules.length ?? 0), 0)
  const most = Math.min(LAST_MAX, Math.floor(WORK_MAX / Math.max(1, rules)))
  if (requested === undefined || requested <= most) return requested ?? most
  throw new ApiError(
    'INVALID_REQUEST',
    `last: must be at most ${most}, because the two documents have ${rules} rules together`,
    { field: 'last' },
  )
}

/** Leaves out the transfers of other sub-accounts, which only fill the windows. */
function onlyOwn(
  { newly_denied, newly_approval, newly_allowed, unused_rules }: Simulation,
  acts: readonly PastAct[],
  own: ReadonlySet<string>,
): Simulation {
  const [denied, approval, allowed] = [newly_denied, newly_approval, newly_allowed].map((list) =>
    list.filter((id) => own.has(id)),
  ) as [string[], string[], string[]]
  const count = acts.filter(({ act }) => own.has(act.id)).length
  return {
    same: count - denied.length - approval.length - allowed.length,
    newly_denied: denied,
    newly_approval: approval,
    newly_allowed: allowed,
    unused_rules,
  }
}
