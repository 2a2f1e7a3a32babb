import { canonicalJson } from '@custody/request-auth/web'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { Policy } from '../evaluation/compile.ts'
import type { EnrolmentFacts, OrderFacts } from '../facts.ts'
import type { OrderAction, StatementOf } from './shapes.ts'

type Approval<Action extends string> = Omit<
  Extract<StatementOf<'approval'>, { action: Action }>,
  'v' | 'mode' | 'workspace' | 'nodes' | 'by' | 'key' | 'at' | 'expires'
>

/** An approval of an enrolment, without the fields of its place and of its signer. */
export type EnrolmentApproval = Approval<'enrolment'>

/** An approval of an order about a gas tank, without the fields of its place and of its signer. */
export type OrderApproval = Approval<OrderAction>

/** An order about a gas tank, as operators have entered it at the nodes under one ID. */
export interface TankOrder {
  readonly order: string
  readonly action: OrderAction
  readonly facts: OrderFacts
}

const common = ({ document: { number }, hash }: Policy, id: string, facts: object) => ({
  kind: 'approval' as const,
  policy: { number, hash },
  id,
  subject: bytesToHex(sha256(utf8ToBytes(canonicalJson(facts)))),
  decision: 'approve' as const,
})

/**
 * Returns what each person signs to approve an enrolment under a document. `subject` is the SHA-256 of
 * the canonical JSON of the facts.
 */
export const enrolmentApproval = (policy: Policy, facts: EnrolmentFacts): EnrolmentApproval => ({
  ...common(policy, facts.api_key, facts),
  action: 'enrolment',
  facts,
})

/**
 * Returns what each person signs to approve an order about a gas tank under a document. `subject` is
 * the SHA-256 of the canonical JSON of the facts.
 */
export const orderApproval = (
  policy: Policy,
  { order, action, facts }: TankOrder,
): OrderApproval => ({ ...common(policy, order, facts), action, facts })
