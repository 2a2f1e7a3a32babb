import type { Registry } from '@custody/chains'
import { canonicalText, type Governance, type TankOrder } from '@custody/policy'
import type { KeyObject } from 'node:crypto'
import type { Store } from '../store/index.ts'
import type { PolicyExchange } from './exchange.ts'
import { enrolmentFactsOf, lacksApproval } from './enrolments.ts'
import { isBehindKnown, type Held } from './held.ts'
import type { Policies } from './policies.ts'
import { awaitsApproval, drainToApprove, stakeToApprove } from './tank-orders.ts'
import { signHeld, type SignedHeldWord } from './word.ts'

interface Parts {
  config: { node: number; identity: KeyObject }
  registry: Registry
  store: Store
  governance: { policies: Policies; exchange: PolicyExchange }
}

/** Greatest number of enrolments, and of orders, without approvals that are listed. */
const UNAPPROVED_MAX = 100

/** Greatest number of API keys that are listed. */
const LISTED_KEYS_MAX = 1_000

/**
 * Returns what this node holds about the policy of a workspace, with its signed statements about the
 * document in force and the pending one. Times in Unix seconds.
 * @throws Refusal `RECORD_UNREADABLE`
 */
export function policyView(parts: Parts, workspace: string): Record<string, unknown> {
  const { config, governance: held } = parts
  const own = held.policies.held(workspace)
  const { governance, known } = own
  const common = {
    node: config.node,
    workspace,
    first: held.exchange.firstsOf(workspace),
    reset: held.exchange.resets.of(workspace),
    enrolments: unapproved(parts, workspace, own),
    ...enrolledKeys(parts, workspace),
    orders: unapprovedOrders(parts, workspace, own),
    restored_below: known !== null && isBehindKnown(own) ? known.number : null,
  }
  if (governance === null) return { ...common, number: null, hash: null, document: null, held: [] }
  const { policy, next, stops, suspensions, revoked } = governance
  return {
    ...common,
    number: policy.document.number,
    hash: policy.hash,
    document: canonicalText(policy.document),
    next: next && {
      number: next.policy.document.number,
      hash: next.policy.hash,
      document: canonicalText(next.policy.document),
      seen_at: next.seen_at_s,
      acts_at: next.acts_at_s,
      vetoed_by: next.vetoedBy,
      confirmed_by: next.confirmedBy,
    },
    stops,
    suspensions: suspensions.map(({ ends_at_s: ends_at, ...each }) => ({ ...each, ends_at })),
    revoked: [...revoked],
    held: wordsOf(parts, workspace, governance),
  }
}

/** Returns this node's signed statements about the document in force and the pending one. */
function wordsOf(
  { config: { node, identity }, store, governance: { policies } }: Parts,
  workspace: string,
  { policy, next }: Governance,
): SignedHeldWord[] {
  const common = { node, workspace, height: store.record.height }
  const inForce = policies.held(workspace).chain.at(-1)!
  const documents = [
    { policy, seen_at: inForce.seen_at_s, acts_at: inForce.acts_at_s },
    ...(next ? [{ policy: next.policy, seen_at: next.seen_at_s, acts_at: next.acts_at_s }] : []),
  ]
  return documents.map(({ policy: { document, hash }, seen_at, acts_at }) =>
    signHeld(identity, { ...common, number: document.number, hash, seen_at, acts_at }),
  )
}

/**
 * Returns the API keys that can request payments, so that documents can be compared with them, and
 * the persons of their enrolments.
 */
function enrolledKeys({ store }: Parts, workspace: string) {
  const found: string[] = []
  const persons: { api_key: string; person: string }[] = []
  for (const enrolment of store.state.enrolments.values()) {
    if (enrolment.workspace !== workspace || enrolment.revoked || enrolment.role !== 'full')
      continue
    const { api_key, person } = enrolment
    found.push(api_key)
    if (person !== undefined) persons.push({ api_key, person })
    if (found.length >= LISTED_KEYS_MAX) break
  }
  return { api_keys: found, persons }
}

/** Returns what people approve of each enrolment that lacks approvals and is not revoked. */
function unapproved({ store }: Parts, workspace: string, held: Held) {
  const found = []
  for (const enrolment of store.state.enrolments.values()) {
    if (enrolment.workspace !== workspace || enrolment.revoked) continue
    if (found.length >= UNAPPROVED_MAX) break
    if (lacksApproval(held, enrolment)) found.push(enrolmentFactsOf(enrolment))
  }
  return found
}

/** Returns what people approve of each order in time that lacks approvals. */
function unapprovedOrders({ store, registry }: Parts, workspace: string, held: Held): TankOrder[] {
  if (held.governance?.policy.document.orders === undefined) return []
  const now_s = store.seconds()
  const isOpen = (each: { workspace: string; network: string; expires_at: number }): boolean =>
    each.workspace === workspace &&
    each.expires_at >= now_s &&
    registry.network(each.network) !== undefined
  const orders = [
    ...[...store.state.drains.values()]
      .filter(isOpen)
      .map((each) => drainToApprove(registry, each)),
    ...[...store.state.tankStakes.values()]
      .filter(isOpen)
      .flatMap((each) => stakeToApprove(registry, each) ?? []),
  ]
  return orders
    .filter((each) => awaitsApproval(held, store.state, each, now_s))
    .slice(0, UNAPPROVED_MAX)
}
