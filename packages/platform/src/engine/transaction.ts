import { FORMS } from '../database/forms.ts'
import type { Waiting } from './waiting.ts'
import type { SignedVoid } from '../signing/void.ts'

export type TransactionKind = keyof typeof FORMS
export type StateOf<K extends TransactionKind> = (typeof FORMS)[K]['states'][number]
/** What a plan of this kind may hold. */
export type FieldOf<K extends TransactionKind> = (typeof FORMS)[K]['plan'][number]
export type State = StateOf<TransactionKind>

/** Kinds that a caller asks for by a signed request. */
export const ASKED_FOR: ReadonlySet<TransactionKind> = new Set([
  'WITHDRAWAL',
  'STAKE',
  'UNSTAKE',
  'RELEASE',
])

/** What was decided about a transaction, kept with it as JSON; null takes a field away. */
export type Plan<K extends TransactionKind = TransactionKind> = {
  [F in FieldOf<K>]?: string | null
}
/** A plan as it is read from the database. */
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
  /** The voids that the nodes have signed for a transaction that failed. */
  voids?: SignedVoid[]
  /** Millionths of a USD; absent or null: nothing is charged for it. */
  /** Absent where the row was not read from the database; see `present.ts`. */
  waiting?: Waiting | null
  amount_usd?: string | null
  platform_fee?: string | null
}

/** A transfer that a standing rule has made. */
export const isForward = (row: { plan: { rule_id?: string | undefined } }): boolean =>
  row.plan.rule_id !== undefined
/** Why a signed forward cannot be sped up. */
export const NO_REPLACEMENT =
  'it was forwarded by a rule and is signed; the platform increases its fee itself if the operator enabled that'

/** A row's plan together with fields that are about to be written to it. */
export const planned = (row: Pick<TransactionRow, 'plan'>, change: Plan): Noted =>
  ({ ...row.plan, ...change }) as Noted
