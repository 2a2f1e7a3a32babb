import type { CarriedApproval } from '@custody/policy'
import type { Database } from '../../core/database/pool.ts'
import { wakeOne } from '../../core/engine/lease.ts'
import { ApiError } from '../../core/errors.ts'
import { decisionsOf } from '../../core/signing/approvals.ts'
import type { FoundApproval } from './find-approval.ts'
import type { Judgement, Need } from './judgement.ts'
import { writeDecision } from './requests.ts'
import type { Outcome, WorkspacePolicies } from './workspace-policies.ts'

interface Services {
  database: Database
  policies: WorkspacePolicies
}

/** What a decision has caused. */
export interface Decided {
  id: string
  state: 'open' | 'approved' | 'rejected'
  needs: readonly Need[]
}

/** State of a transfer after the decision that decides it. */
const STATES = { approve: 'approved', reject: 'rejected' } as const

const closed = ({ state }: Pick<FoundApproval, 'state'>): ApiError =>
  new ApiError(
    'APPROVAL_CLOSED',
    `id: the transfer does not wait for approvals: ${state === 'open' ? 'it is being processed' : `it is ${state}`}`,
    { field: 'id' },
  )

const refused = (field: string, message: string): ApiError =>
  new ApiError('APPROVAL_REFUSED', `${field}: ${message}`, { field })

/**
 * Returns what two nodes say about a transfer with one more decision.
 * @throws ApiError `SIGNERS_UNAVAILABLE`
 */
function judgementOf(outcome: Outcome): Judgement {
  if (outcome.kind === 'later')
    throw new ApiError(
      'SIGNERS_UNAVAILABLE',
      `the signer nodes cannot verify it now: ${outcome.message}`,
    )
  if (outcome.kind === 'none') throw closed({ state: 'ended' })
  return outcome.judgement
}

/**
 * Stores a person's decision about a transfer, after two signer nodes have verified it. The
 * authority is the person's signature, not the caller who sends it. A decision that is sent again changes nothing.
 * @throws ApiError `APPROVAL_CLOSED`, `APPROVAL_REFUSED` or `SIGNERS_UNAVAILABLE`
 */
export async function decide(
  { database, policies }: Services,
  found: FoundApproval,
  decision: CarriedApproval,
): Promise<Decided> {
  const { id, workspace_id: workspace, request } = found
  const earlier = await decisionsOf(database, found)
  const isRepeated = earlier.some((each) => isSame(each, decision))
  const decided = STATES[decision.decision]
  if (isRepeated && (found.state === 'open' || found.state === decided))
    return { id, state: decision.decision === 'reject' ? decided : found.state, needs: found.needs }
  if (found.state !== 'open') throw closed(found)
  const { api_key: _, ...signed } = request!
  const others = earlier.filter(({ by }) => by !== decision.by)
  policies.noteGoverned(workspace)
  const outcome = await policies.judge(workspace, signed, [decision, ...others])
  const judgement = judgementOf(outcome)
  assertCounts(judgement, decision)
  await database.transaction(async (tx) => {
    const row = await tx.one<{ state: string }>(
      'select state from transactions where workspace_id = $1 and id = $2 for update',
      [workspace, id],
    )
    if (row?.state !== 'APPROVAL') throw closed(found)
    await writeDecision(tx, found, decision)
    await tx.query(
      'update approval_requests set needs = $3 where workspace_id = $1 and transaction_id = $2',
      [workspace, id, JSON.stringify(judgement.needs)],
    )
    await wakeOne(tx, workspace, id)
  })
  const isDecided = decision.decision === 'reject' || outcome.kind === 'allowed'
  const state = isDecided ? decided : 'open'
  return { id, state, needs: judgement.needs }
}

const isSame = (a: CarriedApproval, b: CarriedApproval): boolean =>
  (Object.keys(a) as (keyof CarriedApproval)[]).every((field) => a[field] === b[field])

/** Checks that the nodes count a decision. @throws ApiError `APPROVAL_REFUSED` */
function assertCounts(
  { approved_by, rejected_by, ignored, statement }: Judgement,
  { by, key, decision }: CarriedApproval,
): void {
  const unusable = ignored.find((each) => each.by === by && each.key === key)
  if (unusable) {
    const [, field = 'signature', why = unusable.why] =
      /^([a-z_.]+): (.*)$/s.exec(unusable.why) ?? []
    throw refused(field, why)
  }
  if (decision === 'reject' && !rejected_by.includes(by))
    throw refused(
      'by',
      `${by} is in no group whose approvals are missing, so they cannot reject the transfer`,
    )
  if (decision === 'approve' && !approved_by.includes(by))
    throw refused(
      'by',
      `an approval of ${by} does not count: they requested the transfer, or they are in no group whose approvals are missing by policy ${statement.policy.number}`,
    )
}
