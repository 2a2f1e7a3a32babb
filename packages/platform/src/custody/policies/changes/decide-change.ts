import { isRemoved, type CarriedApproval, type SignedStatement } from '@custody/policy'
import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../../../core/errors.ts'
import { policyInForce, type PolicyInForce } from '../policy-in-force.ts'
import { assertVerified } from '../verified.ts'
import { decisionStatement, findChange, possessionStatement, type PolicyChange } from './change.ts'
import { collectedOf, newKeys, storeStatement } from './collected.ts'
import {
  countNow,
  currentOf,
  move,
  nextOf,
  noteCounted,
  secondsOf,
  tryAdvance,
  type Services,
} from './progress.ts'

const closed = ({ state }: PolicyChange): ApiError =>
  new ApiError('APPROVAL_CLOSED', `id: the policy change does not wait for this: it is ${state}`, {
    field: 'id',
  })

/**
 * Returns the document in force that a change changes.
 * @throws ApiError `APPROVAL_CLOSED` if another one is in force, or `SIGNERS_UNAVAILABLE`
 */
async function changedBy(services: Services, change: PolicyChange): Promise<PolicyInForce> {
  const inForce = await policyInForce(services.signers, change.workspace)
  if (inForce?.hash === change.previous) return inForce
  await tryAdvance(services, change.workspace_id, change.id)
  const after = await findChange(services.database, change.workspace_id, change.id)
  throw closed(after && after.state !== 'open' ? after : { ...change, state: 'ended' })
}

const ALLOWED = { approve: ['open'], reject: ['open', 'approved', 'held'] }
/** States in which the first decision of a kind has had its effect. */
const DONE = {
  approve: ['approved', 'held', 'in_force'],
  reject: ['rejected', 'vetoed'],
}

/** Stores a statement with its effect. Another one cannot be stored at the same time. */
async function store(
  services: Services,
  change: PolicyChange,
  inForce: PolicyInForce,
  signed: SignedStatement,
): Promise<void> {
  const { kind, by } = signed.statement
  const decision = kind === 'veto' ? 'reject' : 'approve'
  await services.database.transaction(async (tx) => {
    await tx.query('select id from policy_changes where workspace_id = $1 and id = $2 for update', [
      change.workspace_id,
      change.id,
    ])
    const now = (await findChange(tx, change.workspace_id, change.id)) ?? change
    if (!ALLOWED[decision].includes(now.state)) throw closed(now)
    await storeStatement(tx, now, signed)
    if (kind === 'veto') {
      await tx.query(
        'update policy_changes set is_due = true where workspace_id = $1 and id = $2',
        [now.workspace_id, now.id],
      )
      // A person whom the change removes cannot end it alone: their key may be the stolen one.
      if (
        now.state !== 'held' &&
        !isRemoved(currentOf(services, inForce), nextOf(services, now), by)
      )
        await move(tx, now, 'rejected', `${by} has vetoed it`)
      return
    }
    const counted = countNow(services, now, inForce, await collectedOf(tx, now))
    await noteCounted(tx, now, counted)
    if (counted.isComplete) await move(tx, now, 'approved')
  })
  await tryAdvance(services, change.workspace_id, change.id)
}

/**
 * Stores a person's decision about a change: an approval is a statement of the kind `change`, and a
 * rejection one of the kind `veto`, which is presented to the nodes too. With the last approval, the
 * change is presented to the nodes.
 * @throws ApiError `APPROVAL_CLOSED`, `APPROVAL_REFUSED` or `SIGNERS_UNAVAILABLE`
 */
export async function decideChange(
  services: Services,
  change: PolicyChange,
  { decision, by, key, at, expires, signature, passkey }: Omit<CarriedApproval, 'id'>,
): Promise<void> {
  const statement = decisionStatement(change, decision, { by, key, at, expires })
  const signed = { statement, ...(passkey ? { passkey } : { signature }) }
  if (!ALLOWED[decision].includes(change.state)) {
    const collected = await collectedOf(services.database, change)
    const isRepeated = collected.some((each) => isDeepStrictEqual(each.signed, signed))
    if (isRepeated && DONE[decision].includes(change.state)) return
    throw closed(change)
  }
  const inForce = await changedBy(services, change)
  const now_s = secondsOf(services.database)
  const suspended = inForce.blocked
  assertVerified(currentOf(services, inForce), signed, { now_s, suspended })
  await store(services, change, inForce, signed)
}

/** A proof that a person holds a key of the proposed document. */
export type Possession = Pick<CarriedApproval, 'by' | 'key' | 'signature' | 'passkey'>

/**
 * Stores a proof of possession of a new key.
 * @throws ApiError as {@link decideChange}
 */
export async function provePossession(
  services: Services,
  change: PolicyChange,
  { by, key, signature, passkey }: Possession,
): Promise<void> {
  const statement = possessionStatement(change, { by, key })
  const signed = { statement, ...(passkey ? { passkey } : { signature }) }
  if (change.state !== 'open') {
    const collected = await collectedOf(services.database, change)
    const isRepeated = collected.some((each) => isDeepStrictEqual(each.signed, signed))
    if (isRepeated && DONE.approve.includes(change.state)) return
    throw closed(change)
  }
  const inForce = await changedBy(services, change)
  const next = nextOf(services, change)
  const now_s = secondsOf(services.database)
  assertVerified(next, signed, { now_s, suspended: new Set() })
  const isNew = newKeys(currentOf(services, inForce), next).some(
    (each) => each.person === by && each.key === key,
  )
  if (!isNew)
    throw new ApiError(
      'APPROVAL_REFUSED',
      `key: ${key} of ${by} is in the document in force, so it needs no proof`,
      { field: 'key' },
    )
  await store(services, change, inForce, signed)
}
