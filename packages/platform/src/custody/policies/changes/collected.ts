import {
  countQuorum,
  PolicyError,
  readSigned,
  verifyStatement,
  type Policy,
  type SignedStatement,
} from '@custody/policy'
import type { Need } from '../../approvals/judgement.ts'
import type { Queryable } from '../../../core/database/pool.ts'
import type { KeyOf } from './change.ts'

type Kind = 'change' | 'possession' | 'veto'

/** A signed statement about a change. */
export interface Collected {
  kind: Kind
  signed: SignedStatement
  /** As the nodes get it. */
  text: string
  isDelivered: boolean
}

interface Owned {
  workspace_id: string
  id: string
}

/** Returns the statements about a change, the latest first. */
export async function collectedOf(
  database: Queryable,
  { workspace_id: workspace, id }: Owned,
): Promise<Collected[]> {
  const rows = await database.query<{ kind: Kind; signed: string; is_delivered: boolean }>(
    `select kind, signed, delivered_at is not null is_delivered from policy_change_statements
     where workspace_id = $1 and change_id = $2 order by created_at desc, kind, person, key`,
    [workspace, id],
  )
  return rows.map(({ kind, signed, is_delivered: isDelivered }) => ({
    kind,
    signed: readSigned(signed),
    text: signed,
    isDelivered,
  }))
}

/** Stores a verified statement in place of an earlier one of the same kind and key. */
export async function storeStatement(
  tx: Queryable,
  { workspace_id: workspace, id }: Owned,
  signed: SignedStatement,
): Promise<void> {
  const { kind, by, key } = signed.statement
  await tx.query(
    `insert into policy_change_statements (workspace_id, change_id, kind, person, key, signed, created_at)
     values ($1, $2, $3, $4, $5, $6, $7)
     on conflict (workspace_id, change_id, kind, person, key) do update
       set signed = excluded.signed, delivered_at = null, created_at = excluded.created_at`,
    [workspace, id, kind, by, key, JSON.stringify(signed), tx.now()],
  )
}

/** What is missing for a change, and the statements that count. */
export interface Counted {
  needs: Need[]
  missing: KeyOf[]
  isComplete: boolean
  /** JSON texts. */
  approvals: string[]
  possessions: string[]
}

/** The document in force, and when statements are counted. */
export interface Present {
  policy: Policy
  /** Suspended and revoked keys, as `keyName` names them. */
  blocked: ReadonlySet<string>
  /** Unix seconds. */
  now_s: number
}

function isValid(policy: Policy, { signed }: Collected, context: Omit<Present, 'policy'>): boolean {
  try {
    verifyStatement(policy, signed, { now_s: context.now_s, suspended: context.blocked })
    return true
  } catch (error) {
    if (error instanceof PolicyError) return false
    throw error
  }
}

/** Returns the keys of a document that the one in force does not contain. */
export function newKeys(current: Policy, next: Policy): KeyOf[] {
  const known = new Set(
    [...current.people.values()].flatMap((keys) => [...keys.values()].map(({ spki }) => spki)),
  )
  return [...next.people].flatMap(([person, keys]) =>
    [...keys.values()].flatMap(({ id, spki }) => (known.has(spki) ? [] : [{ person, key: id }])),
  )
}

/** Counts the statements about a change. Those that do not hold any more are left out. */
export function countCollected(
  next: Policy,
  collected: readonly Collected[],
  present: Present,
): Counted {
  const { policy, blocked } = present
  const approvals = collected.filter(
    (each) => each.kind === 'change' && isValid(policy, each, present),
  )
  const possessions = collected.filter(
    (each) =>
      each.kind === 'possession' &&
      isValid(next, each, { now_s: present.now_s, blocked: new Set() }),
  )
  const signers = approvals.map(({ signed: { statement } }) => ({
    person: statement.by,
    key: statement.key,
  }))
  const { needs, isMet } = countQuorum(policy, policy.document.change.approvals, signers, blocked)
  const missing = newKeys(policy, next).filter(
    ({ person, key }) =>
      !possessions.some(
        ({ signed: { statement } }) => statement.by === person && statement.key === key,
      ),
  )
  return {
    needs,
    missing,
    isComplete: isMet && missing.length === 0,
    approvals: approvals.map(({ text }) => text),
    possessions: possessions.map(({ text }) => text),
  }
}
