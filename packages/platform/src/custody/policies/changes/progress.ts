import { policyRegistry, type Registry } from '@custody/chains'
import { compile, readDocument, type Policy } from '@custody/policy'
import { stringifyJson } from '@custody/request-auth'
import type { Database, Queryable } from '../../../core/database/pool.ts'
import { ApiError } from '../../../core/errors.ts'
import { wakePolicy } from '../../../core/engine/lease.ts'
import { emit } from '../../../core/ledger/post.ts'
import type { SignerNodes } from '../../../core/signing/nodes.ts'
import { policyInForce, type PolicyInForce } from '../policy-in-force.ts'
import { presentItem } from '../present-item.ts'
import { findChange, type ChangeState, type PolicyChange } from './change.ts'
import { collectedOf, countCollected, type Collected, type Counted } from './collected.ts'
import { presentChange } from './shapes.ts'

export interface Services {
  registry: Registry
  database: Database
  signers: SignerNodes
}

const REASON_MAX = 2000
/** Number of nodes that must agree. */
const QUORUM = 2
/** States that no further step follows. */
const FINAL: ReadonlySet<ChangeState> = new Set([
  'in_force',
  'rejected',
  'vetoed',
  'refused',
  'expired',
  'ended',
])

/** Returns the compiled document of a change. */
export const nextOf = ({ registry }: Pick<Services, 'registry'>, change: PolicyChange): Policy =>
  compile(readDocument(change.document), policyRegistry(registry))

/** Returns the compiled document in force. */
export const currentOf = (
  { registry }: Pick<Services, 'registry'>,
  { document }: Pick<PolicyInForce, 'document'>,
): Policy => compile(document, policyRegistry(registry))

/** Seconds of Unix time by the clock of the environment. */
export const secondsOf = (database: Queryable): number =>
  Math.floor(database.now().getTime() / 1000)

/** Counts the statements about a change that changes the document in force. */
export function countNow(
  services: Services,
  change: PolicyChange,
  inForce: PolicyInForce,
  collected: readonly Collected[],
): Counted {
  const policy = currentOf(services, inForce)
  const now_s = secondsOf(services.database)
  return countCollected(nextOf(services, change), collected, {
    policy,
    blocked: inForce.blocked,
    now_s,
  })
}

/** Stores what is missing for a change. */
export const noteCounted = (
  tx: Queryable,
  { workspace_id: workspace, id }: PolicyChange,
  { needs, missing }: Counted,
): Promise<unknown> =>
  tx.query(
    `update policy_changes set needs = $3, missing = $4 where workspace_id = $1 and id = $2
      and state = 'open'`,
    [workspace, id, JSON.stringify(needs), JSON.stringify(missing)],
  )

const EVENTS: Partial<Record<ChangeState, 'policy.in_force' | 'policy.vetoed'>> = {
  in_force: 'policy.in_force',
  rejected: 'policy.vetoed',
  vetoed: 'policy.vetoed',
}

/**
 * Moves a change to another state, if it is still in the state that was read, and emits its event.
 * @returns whether this call moved it
 */
export async function move(
  tx: Queryable,
  change: PolicyChange,
  state: ChangeState,
  reason: string | null = null,
): Promise<boolean> {
  const { workspace_id: workspace, id } = change
  const moved = await tx.one(
    `update policy_changes set state = $3, reason = $4, is_due = true
     where workspace_id = $1 and id = $2 and state = $5 returning id`,
    [workspace, id, state, reason?.slice(0, REASON_MAX) ?? null, change.state],
  )
  const type = EVENTS[state]
  if (moved && state === 'in_force') await wakePolicy(tx, workspace)
  if (!moved || type === undefined) return moved !== undefined
  const after = await findChange(tx, workspace, id)
  if (after) await emit(tx, workspace, null, type, stringifyJson(presentChange(after)))
  return true
}

/** Presents the vetoes that two nodes have not judged yet. */
async function deliverVetoes(
  { database, signers }: Services,
  { workspace_id, workspace, id }: PolicyChange,
  collected: readonly Collected[],
): Promise<boolean> {
  const open = collected.filter(({ kind, isDelivered }) => kind === 'veto' && !isDelivered)
  let isDelivered = true
  for (const { text, signed } of open) {
    const item = { kind: 'statement', workspace, signed: text }
    const { held, refusals } = await presentItem(signers, item)
    if (held.length + refusals.length < QUORUM) {
      isDelivered = false
      continue
    }
    const { by, key } = signed.statement
    await database.query(
      `update policy_change_statements set delivered_at = $5
       where workspace_id = $1 and change_id = $2 and kind = 'veto' and person = $3 and key = $4`,
      [workspace_id, id, by, key, database.now()],
    )
  }
  return isDelivered
}

/** Returns the state of a change that the nodes hold, or have held. */
function stateAtNodes(
  change: PolicyChange,
  inForce: PolicyInForce | null,
): { state: ChangeState; reason: string | null } | null {
  if (inForce === null) return { state: 'ended', reason: 'the workspace has no policy in force' }
  const { number, hash, document } = inForce
  const isSuccessor = change.state === 'held' && document.previous === change.hash
  if (hash === change.hash || isSuccessor) return { state: 'in_force', reason: null }
  if (number >= change.number || hash !== change.previous)
    return { state: 'ended', reason: `policy ${number} with hash ${hash} came into force` }
  const pending = inForce.pending.find((each) => each.hash === change.hash)
  if (pending && pending.held.length >= QUORUM)
    return {
      state: 'held',
      reason:
        pending.vetoed_by === null
          ? null
          : `${pending.vetoed_by}, whom it removes, has vetoed it: the operators of two nodes must confirm it`,
    }
  if (change.state === 'held' && !pending)
    return { state: 'vetoed', reason: 'a person vetoed it while the nodes held it' }
  return null
}

/** Stores which nodes hold a change, and when it comes into force there. */
async function noteHeld(
  database: Queryable,
  { workspace_id, id, hash, acts_at }: PolicyChange,
  inForce: PolicyInForce | null,
): Promise<void> {
  const pending = inForce?.pending.find((each) => each.hash === hash)
  const isInForce = inForce?.hash === hash
  if (!pending && !isInForce) return
  await database.query(
    `update policy_changes set held = $3, nodes_act_at = coalesce($4::bigint, nodes_act_at)
     where workspace_id = $1 and id = $2`,
    [
      workspace_id,
      id,
      JSON.stringify([...(pending?.held ?? inForce?.held ?? [])].sort()),
      pending ? Math.max(pending.acts_at, acts_at) : null,
    ],
  )
}

/** Presents a change whose approvals are complete, and returns what it has become. */
async function presentChangeTo(
  services: Services,
  change: PolicyChange,
  collected: readonly Collected[],
  inForce: PolicyInForce,
): Promise<{ state: ChangeState; reason: string | null } | null> {
  const { approvals, possessions } = countNow(services, change, inForce, collected)
  const { workspace, document } = change
  const item = { kind: 'change', workspace, document, possessions, approvals }
  const { refusals } = await presentItem(services.signers, item)
  const after = await policyInForce(services.signers, workspace)
  const found = stateAtNodes(change, after)
  await noteHeld(services.database, change, after)
  if (found !== null || refusals.length < QUORUM) return found
  const reason = refusals.map(({ text }) => text).join('; ')
  const has = (code: string) => refusals.filter((each) => each.code === code).length >= QUORUM
  if (has('VETOED')) return { state: 'vetoed', reason }
  // The pending change comes into force or is vetoed, or time passes; then the nodes judge this one again.
  if (refusals.some(({ code }) => code === 'PENDING' || code === 'NOT_YET'))
    return { state: 'approved', reason }
  return { state: 'refused', reason }
}

/** Returns the next state of a change; null if it stays as it is. */
async function nextState(
  services: Services,
  change: PolicyChange,
  collected: readonly Collected[],
): Promise<{ state: ChangeState; reason: string | null } | null> {
  const inForce = await policyInForce(services.signers, change.workspace)
  const found = stateAtNodes(change, inForce)
  await noteHeld(services.database, change, inForce)
  if (found !== null || inForce === null) return found
  if (change.state === 'approved') return presentChangeTo(services, change, collected, inForce)
  if (services.database.now() >= change.expires_at)
    return { state: 'expired', reason: 'its approvals were not complete in time' }
  const counted = countNow(services, change, inForce, collected)
  await noteCounted(services.database, change, counted)
  return counted.isComplete ? { state: 'approved', reason: null } : null
}

/** Largest number of steps of one call: open, approved, held and in force. */
const STEPS_MAX = 4

/**
 * Moves a change forward: presents what is complete to the signer nodes, and reads what they hold.
 * It can be repeated at any time, because the nodes accept the same item again.
 * @throws ApiError `SIGNERS_UNAVAILABLE` if no two nodes agree
 */
export async function advance(services: Services, workspace: string, id: string): Promise<void> {
  const { database } = services
  for (let step = 0; step < STEPS_MAX; step++) {
    const change = await findChange(database, workspace, id)
    if (!change) return
    const collected = await collectedOf(database, change)
    const isDelivered = await deliverVetoes(services, change, collected)
    if (FINAL.has(change.state)) {
      if (isDelivered) await close(database, change)
      return
    }
    const next = await nextState(services, change, collected)
    if (next === null) return
    if (next.state === change.state && next.reason === change.reason) return
    const { state, reason } = next
    await database.transaction((tx) => move(tx, change, state, reason))
  }
}

/** Notes that nothing is left to do for a change, unless a veto has arrived. */
const close = (database: Queryable, { workspace_id: workspace, id }: PolicyChange) =>
  database.query(
    `update policy_changes c set is_due = false where workspace_id = $1 and id = $2
      and not exists (select 1 from policy_change_statements s where s.workspace_id = $1
        and s.change_id = $2 and s.kind = 'veto' and s.delivered_at is null)`,
    [workspace, id],
  )

/** Does the same as {@link advance}, and leaves the work to the background job if nodes are silent. */
export async function tryAdvance(services: Services, workspace: string, id: string): Promise<void> {
  try {
    await advance(services, workspace, id)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'SIGNERS_UNAVAILABLE') throw error
  }
}
