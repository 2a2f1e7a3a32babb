import { STATE_SCHEMAS } from '../database/state-schemas.ts'
import type { Waiting } from './waiting.ts'
import type { SignedVoid } from '../signing/void.ts'

export type TransactionKind = keyof typeof STATE_SCHEMAS
export type StateOf<K extends TransactionKind> = (typeof STATE_SCHEMAS)[K]['states'][number]
/** Field names allowed in the plan of this kind. */
type FieldOf<K extends TransactionKind> = (typeof STATE_SCHEMAS)[K]['plan'][number]
export type State = StateOf<TransactionKind>

/** Kinds that a caller requests with a signed request. */
export const ASKED_FOR: ReadonlySet<TransactionKind> = new Set([
  'WITHDRAWAL',
  'STAKE',
  'UNSTAKE',
  'RELEASE',
  'CONSOLIDATION',
])

/** Decisions about a transaction, stored with it as JSON; null clears a field. */
export type Plan<K extends TransactionKind = TransactionKind> = {
  [F in FieldOf<K>]?: string | null
}
/** A plan as read from the database. */
export type Noted<K extends TransactionKind = TransactionKind> = {
  [F in FieldOf<K>]?: string | undefined
}

/** A row of `transactions`. Amounts are decimal strings in the smallest unit. */
export interface TransactionRow<K extends TransactionKind = TransactionKind> {
  id: string
  kind: K
  workspace_id: string
  sub_account_id: string | null
  wallet_id: string | null
  parent_id: string | null
  asset: string
  network: string
  amount: string
  fee: string
  fee_asset: string
  source_type: string
  source_id: string | null
  destination_type: string
  destination_id: string | null
  address_tag: string | null
  memo: string | null
  sequence_id: string | null
  state: StateOf<K>
  status: 'pending' | 'confirmed' | 'failed'
  failure_reason: string | null
  last_error: string | null
  hash: string | null
  confirmations: number
  request: { api_key: string; token: string; method: string; uri: string; body: string } | null
  receipts: unknown[]
  plan: Noted<K>
  fee_rate: string | null
  fee_level: string | null
  created_at: Date
  updated_at: Date
  confirmed_at: Date | null
  attempts: number
  lease_token: string | null
  /** Whether an endpoint contradicted a final block of the network when the row was claimed. */
  isHalted?: boolean
  /** Voids that the signer nodes have signed for a failed transaction. */
  voids?: SignedVoid[]
  /** Absent if the row was not read from the database; see `present.ts`. */
  waiting?: Waiting | null
  /** Value in millionths of a US dollar; absent or null: no price was available. */
  amount_usd?: string | null
  /** Millionths of a US dollar; absent or null: no platform fee is charged. */
  platform_fee?: string | null
}

/** Whether a transfer was created by a standing rule. */
export const isForward = (row: { plan: { rule_id?: string | undefined } }): boolean =>
  row.plan.rule_id !== undefined
/** Whether the caller's own request asks for a transaction, not a standing rule. */
export const isOwnRequest = (row: Pick<TransactionRow, 'request' | 'plan'>): boolean =>
  row.request !== null && !isForward(row)
/**
 * Whether a transaction only merges coins of its wallet. Its coin is not spent before it is confirmed, so
 * that no payment depends on a transaction that may be replaced.
 */
export const isConsolidation = (row: Pick<TransactionRow, 'kind'>): boolean =>
  row.kind === 'CONSOLIDATION'
/** Explains why a signed forward cannot be sped up. */
export const NO_REPLACEMENT =
  'it was forwarded by a rule and is signed; the platform increases its fee itself if the operator enabled that'

/** Returns a row's plan merged with fields that are about to be written to it. */
export const planned = (row: Pick<TransactionRow, 'plan'>, change: Plan): Noted =>
  ({ ...row.plan, ...change }) as Noted
