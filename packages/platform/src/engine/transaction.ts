import type { SignedVoid } from '../signing/void.ts'

export type TransactionKind = 'WITHDRAWAL' | 'DEPOSIT' | 'SWEEP' | 'FUEL' | 'TANK_DEPOSIT' | 'DRAIN' | 'STAKE' | 'UNSTAKE' | 'RELEASE' | 'LEND' | 'LEND_BACK'

/** Kinds that a caller asks for by a signed request. */
export const ASKED_FOR: ReadonlySet<TransactionKind> = new Set(['WITHDRAWAL', 'STAKE', 'UNSTAKE', 'RELEASE'])

/** What was decided about a transaction, kept with it as JSON. Amounts are decimal strings in the smallest unit, flags are '1'. */
export type Plan = Record<string, string | null>

/** The same as it is read: what was set to null reads as null. */
export type Noted = Record<string, string | undefined>

/** A row of `transactions`. Amounts are decimal strings in the smallest unit. */
export interface TransactionRow {
  id: string; kind: TransactionKind; workspace_id: string; sub_account_id: string | null; wallet_id: string | null; parent_id: string | null
  asset: string; network: string; amount: string; fee: string; fee_asset: string
  source_type: string; source_id: string | null; destination_type: string; destination_id: string | null; address_tag: string | null
  memo: string | null; sequence_id: string | null; state: string; status: 'pending' | 'confirmed' | 'failed'
  failure_reason: string | null; last_error: string | null; hash: string | null; confirmations: number
  request: { api_key: string; token: string; method: string; uri: string; body: string } | null
  receipts: unknown[]; plan: Noted; fee_rate: string | null; fee_level: string | null
  created_at: Date; updated_at: Date; confirmed_at: Date | null; attempts: number; lease_token: string | null
  /** The nodes' own, of one that failed. */
  voids?: SignedVoid[]
  /** Millionths of a USD; absent or null: nothing is charged for it. */
  amount_usd?: string | null; platform_fee?: string | null
}

/** A transfer that a standing rule has made. */
export const isForward = (row: Pick<TransactionRow, 'plan'>): boolean => row.plan['rule_id'] !== undefined
/** Why a signed forward cannot be sped up. */
export const NO_REPLACEMENT = 'it was forwarded by a rule and is signed; the platform itself bumps it where the operator turned that on'

/** A row's plan with what is about to be written to it. */
export const planned = (row: Pick<TransactionRow, 'plan'>, change: Plan): Noted => ({ ...row.plan, ...change }) as Noted
