import { policyRegistry } from '@custody/chains'
import { compile, countQuorum, PolicyError, readSigned, verifyStatement } from '@custody/policy'
import { stringifyJson } from '@custody/request-auth'
import { z } from 'zod'
import { TIME_MAX } from '../../../core/bounds.ts'
import type { Need } from '../../approvals/judgement.ts'
import type { Queryable } from '../../../core/database/pool.ts'
import { ApiError } from '../../../core/errors.ts'
import { wakePolicy } from '../../../core/engine/lease.ts'
import { emit } from '../../../core/ledger/post.ts'
import type { Loop } from '../../../core/engine/loops/loop.ts'
import { FIRST_ID, inTurn } from '../in-turn.ts'
import { policyInForce, timeOf, type PolicyInForce } from '../policy-in-force.ts'
import { presentItem, type Presented } from '../present-item.ts'
import { personId, policyHash } from '../shapes.ts'
import type { Services, Verified } from './signed.ts'

/** Data of the events about stops. */
export const stopEventShape = z.object({
  hash: policyHash.meta({ description: 'Hash of the signed stop' }),
  sub_account: z.string().max(200).nullable(),
  by: personId,
  reason: z.string().max(200),
  at: z.string().max(TIME_MAX),
})

type StopState = 'new' | 'stopped' | 'ending' | 'ended' | 'refused'

/** A row of `policy_stops`. `signed_at`: Unix seconds. */
export interface Stop {
  workspace_id: string
  /** Name of the workspace. */
  workspace: string
  hash: string
  state: StopState
  sub_account: string | null
  person: string
  reason: string
  signed_at: number
  signed: string
}

/** Number of nodes whose refusal is final. */
const QUORUM = 2

/** Returns a stop that was sent over the API; undefined if there is none with the hash. */
export const findStop = (
  database: Queryable,
  workspace: string,
  hash: string,
): Promise<Stop | undefined> =>
  database.one<Stop>(
    `select s.workspace_id, w.name workspace, s.hash, s.state, s.sub_account, s.person, s.reason,
       s.signed_at::float8, s.signed
     from policy_stops s join workspaces w on w.id = s.workspace_id
     where s.workspace_id = $1 and s.hash = $2`,
    [workspace, hash],
  )

/** Stores a verified stop, which is then presented to the nodes. A repetition changes nothing. */
export async function storeStop(
  database: Queryable,
  workspace: string,
  { signed: { statement }, text, hash }: Verified,
): Promise<void> {
  if (statement.kind !== 'stop') throw new Error('the statement is not a stop')
  const { sub_account, by, reason, at } = statement
  await database.query(
    `insert into policy_stops (workspace_id, hash, state, sub_account, person, reason, signed_at,
       signed, created_at)
     values ($1, $2, 'new', $3, $4, $5, $6, $7, $8) on conflict (workspace_id, hash) do nothing`,
    [workspace, hash, sub_account, by, reason, at, text, database.now()],
  )
}

const EVENTS: Partial<Record<StopState, 'policy.stopped' | 'policy.resumed'>> = {
  stopped: 'policy.stopped',
  ended: 'policy.resumed',
}

/** Moves a stop to another state, once, and emits its event. */
async function move(
  { database }: Services,
  { workspace_id, hash, state: before, sub_account, person, reason, signed_at }: Stop,
  state: StopState,
): Promise<void> {
  await database.transaction(async (tx) => {
    const moved = await tx.one(
      `update policy_stops set state = $3 where workspace_id = $1 and hash = $2 and state = $4
       returning hash`,
      [workspace_id, hash, state, before],
    )
    if (moved && state === 'ended') await wakePolicy(tx, workspace_id)
    // The end of a stop that the nodes refuse leaves it as it was.
    const type = before === 'ending' && state === 'stopped' ? undefined : EVENTS[state]
    if (!moved || type === undefined) return
    const data = { hash, sub_account, by: person, reason, at: timeOf(signed_at) }
    await emit(tx, workspace_id, null, type, stringifyJson(data))
  })
}

/** Returns the signed approvals of the end of a stop, as JSON texts. */
async function approvalsOf(database: Queryable, { workspace_id, hash }: Stop): Promise<string[]> {
  const rows = await database.query<{ signed: string }>(
    `select signed from policy_resumes where workspace_id = $1 and stop_hash = $2
     order by created_at, person, key`,
    [workspace_id, hash],
  )
  return rows.map(({ signed }) => signed)
}

/** Counts the approvals of the end of a stop that hold under the document in force. */
export async function countResumes(
  { database, registry }: Pick<Services, 'registry'> & { database: Queryable },
  stop: Stop,
  { document, blocked }: PolicyInForce,
): Promise<{ needs: Need[]; isMet: boolean; valid: string[] }> {
  const policy = compile(document, policyRegistry(registry))
  const now_s = Math.floor(database.now().getTime() / 1000)
  const valid = (await approvalsOf(database, stop)).filter((text) => {
    try {
      verifyStatement(policy, readSigned(text), { now_s, suspended: blocked })
      return true
    } catch (error) {
      if (error instanceof PolicyError) return false
      throw error
    }
  })
  const signers = valid.map((text) => {
    const { by: person, key } = readSigned(text).statement
    return { person, key }
  })
  return { ...countQuorum(policy, document.resume.approvals, signers, blocked), valid }
}

/** Stores an approval, and whether the approvals are complete with it. */
export async function storeResume(
  { database, registry }: Services,
  stop: Stop,
  { signed, text, inForce }: Verified,
): Promise<void> {
  const { by, key } = signed.statement
  await database.transaction(async (tx) => {
    await tx.query(
      'select hash from policy_stops where workspace_id = $1 and hash = $2 for update',
      [stop.workspace_id, stop.hash],
    )
    await tx.query(
      `insert into policy_resumes (workspace_id, stop_hash, person, key, signed, created_at)
       values ($1, $2, $3, $4, $5, $6)
       on conflict (workspace_id, stop_hash, person, key) do update
         set signed = excluded.signed, created_at = excluded.created_at`,
      [stop.workspace_id, stop.hash, by, key, text, tx.now()],
    )
    const { isMet } = await countResumes({ database: tx, registry }, stop, inForce)
    if (isMet)
      await tx.query(
        `update policy_stops set state = 'ending' where workspace_id = $1 and hash = $2
          and state = 'stopped'`,
        [stop.workspace_id, stop.hash],
      )
  })
}

const NOTHING: Presented = { held: [], refusals: [] }

/**
 * Presents a stop, or the end of a stop, to the nodes. It can be repeated at any time. Of the
 * approvals of an end only those are presented that hold under the document in force, because nodes
 * refuse an end with one that does not. If the others no longer suffice, the stop stays.
 * @returns what the nodes say; empty if nothing is due
 * @throws ApiError `SIGNERS_UNAVAILABLE` if no two nodes agree on the document in force
 */
export async function advanceStop(services: Services, stop: Stop): Promise<Presented> {
  const { signers } = services
  const { workspace, signed } = stop
  if (stop.state === 'new') {
    const presented = await presentItem(signers, { kind: 'statement', workspace, signed })
    if (presented.held.length > 0) await move(services, stop, 'stopped')
    else if (presented.refusals.length >= QUORUM) await move(services, stop, 'refused')
    return presented
  }
  if (stop.state !== 'ending') return NOTHING
  const inForce = await policyInForce(signers, workspace)
  const counted = inForce && (await countResumes(services, stop, inForce))
  if (!counted?.isMet) {
    await move(services, stop, 'stopped')
    return NOTHING
  }
  const item = { kind: 'resumed', workspace, stop: signed, approvals: counted.valid }
  const presented = await presentItem(signers, item)
  if (presented.held.length > 0) await move(services, stop, 'ended')
  else if (presented.refusals.length >= QUORUM) await move(services, stop, 'stopped')
  return presented
}

/** Returns the error if no node has recorded something. */
export function undelivered({ refusals: [refusal] }: Presented): ApiError {
  return refusal
    ? new ApiError('APPROVAL_REFUSED', `signature: ${refusal.text}`, { field: 'signature' })
    : new ApiError(
        'SIGNERS_UNAVAILABLE',
        'no signer node has responded; it is presented to them as soon as one does',
      )
}

/** Stops that one run processes. */
const STOPS_MAX = 100

/** Creates the loop that presents stops and their ends again, after a crash or without nodes. */
export function policyStopsLoop(services: Services): Loop {
  const { database } = services
  return {
    name: 'policy stops',
    everyMs: 2000,
    due: "exists (select 1 from policy_stops where state in ('new', 'ending'))",
    run: inTurn({
      first: { workspace_id: FIRST_ID, hash: '' },
      max: STOPS_MAX,
      read: ({ workspace_id, hash }, max) =>
        database.query<{ workspace_id: string; hash: string }>(
          `select workspace_id, hash from policy_stops
           where state in ('new', 'ending') and (workspace_id, hash) > ($1::uuid, $2)
           order by workspace_id, hash limit $3`,
          [workspace_id, hash, max],
        ),
      process: async ({ workspace_id, hash }) => {
        const stop = await findStop(database, workspace_id, hash)
        if (stop) await advanceStop(services, stop)
      },
    }),
  }
}
