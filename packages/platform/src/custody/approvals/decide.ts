import type { Registry } from '@custody/chains'
import type { CarriedApproval } from '@custody/policy'
import { isDeepStrictEqual } from 'node:util'
import type { Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import { decisionsOf } from '../../core/signing/approvals.ts'
import { judgeFound, lockWaiting, wakeFound } from './approvable.ts'
import type { FoundApproval } from './find-approval.ts'
import type { Judgement, Need } from './judgement.ts'
import { noteNeeds, writeDecision } from './requests.ts'
import { tellApproval } from './tell.ts'
import type { Outcome, WorkspacePolicies } from './workspace-policies.ts'

interface Services {
  registry: Registry
  database: Database
  policies: WorkspacePolicies
}

/** What a decision has caused. */
export interface Decided {
  id: string
  state: 'open' | 'approved' | 'rejected'
  needs: readonly Need[]
}

/** State of a request after the decision that decides it. */
const STATES = { approve: 'approved', reject: 'rejected' } as const

const nounOf = ({ is_rule }: Pick<FoundApproval, 'is_rule'>): string =>
  is_rule ? 'rule' : 'transfer'

const closed = (found: Pick<FoundApproval, 'state' | 'is_rule'>, state = found.state): ApiError =>
  new ApiError(
    'APPROVAL_CLOSED',
    `id: the ${nounOf(found)} does not wait for approvals: ${state === 'open' ? 'it is being processed' : `it is ${state}`}`,
    { field: 'id' },
  )

const refused = (field: string, message: string): ApiError =>
  new ApiError('APPROVAL_REFUSED', `${field}: ${message}`, { field })

/**
 * Returns what two nodes say about a transfer or rule with one more decision.
 * @throws ApiError `SIGNERS_UNAVAILABLE`
 */
function judgementOf(found: FoundApproval, outcome: Outcome): Judgement {
  if (outcome.kind === 'later')
    throw new ApiError(
      'SIGNERS_UNAVAILABLE',
      `the signer nodes cannot verify it now: ${outcome.message}`,
    )
  if (outcome.kind === 'none') throw closed(found, 'ended')
  return outcome.judgement
}

/** Greatest number of times that a decision is judged, because others arrive meanwhile. */
const TRIES_MAX = 5

/**
 * Stores a person's decision about a transfer or rule, after two signer nodes have verified it. The
 * authority is the person's signature, not the caller who sends it. A decision that is sent again
 * changes nothing.
 * @throws ApiError `APPROVAL_CLOSED`, `APPROVAL_REFUSED` or `SIGNERS_UNAVAILABLE`
 */
export async function decide(
  services: Services,
  found: FoundApproval,
  decision: CarriedApproval,
): Promise<Decided> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const decided = await decideOnce(services, found, decision)
    if (decided) return decided
  }
  throw new ApiError(
    'SIGNERS_UNAVAILABLE',
    'too many decisions about it arrive at once: send the decision again',
  )
}

/** @returns null if another decision was stored while the nodes judged this one */
async function decideOnce(
  services: Services,
  found: FoundApproval,
  decision: CarriedApproval,
): Promise<Decided | null> {
  const { database, policies } = services
  const { id, workspace_id: workspace } = found
  const earlier = await decisionsOf(database, found)
  const isRepeated = earlier.some((each) => isDeepStrictEqual(each, decision))
  const decided = STATES[decision.decision]
  if (isRepeated && (found.state === 'open' || found.state === decided))
    return { id, state: decision.decision === 'reject' ? decided : found.state, needs: found.needs }
  if (found.state !== 'open') throw closed(found)
  // A rejection is final from the moment at which it is stored.
  if (earlier.some(isRejection)) throw closed(found, 'rejected')
  const others = earlier.filter(({ by }) => by !== decision.by)
  policies.noteGoverned(workspace)
  const outcome = await judgeFound(services, found, [decision, ...others])
  const judgement = judgementOf(found, outcome)
  assertCounts(judgement, decision)
  const isStored = await database.transaction(async (tx) => {
    const isWaiting = await lockWaiting(tx, found)
    if (!isDeepStrictEqual(await decisionsOf(tx, found), earlier)) return false
    if (!isWaiting) throw closed(found)
    await writeDecision(tx, found, decision)
    await noteNeeds(tx, found, judgement)
    await tellApproval(tx, found, 'approval.updated')
    await wakeFound(tx, found)
    return true
  })
  if (!isStored) return null
  const isDecided = isRejection(decision) || outcome.kind === 'allowed'
  return { id, state: isDecided ? decided : 'open', needs: judgement.needs }
}

const isRejection = ({ decision }: CarriedApproval): boolean => decision === 'reject'

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
      `${by} is in no group whose approvals are missing, so they cannot reject it`,
    )
  if (decision === 'approve' && !approved_by.includes(by))
    throw refused(
      'by',
      `an approval of ${by} does not count: they requested it, or they are in no group whose approvals are missing by policy ${statement.policy.number}`,
    )
}
