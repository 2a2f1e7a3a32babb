// What the platform answers to the panel. Shapes of the public API come from the SDK.
import type { Asset, Decimal, Timestamp, Transaction } from '@custody/client'

export type * from '@custody/client'

export type Role = 'owner' | 'admin' | 'operator' | 'viewer'
export interface Person {
  id: string; email: string; name: string; has_password: boolean; has_totp: boolean; recovery_codes_left: number; passkeys: number
}
export interface Membership { name: string; role: Role; sub_accounts: string[] }
export interface Session {
  person: Person | null; workspaces: Membership[]; passkeys_available: boolean; network: 'local' | 'mainnet'; version: string
}
export interface Invitation { workspace: string; role: Role; email: string | null; is_first: boolean; expires_at: Timestamp }
export interface OpenSession {
  id: string; created_at: Timestamp; last_seen_at: Timestamp; ip: string | null; user_agent: string | null; is_current: boolean
}
export interface Passkey { id: string; name: string; created_at: Timestamp; last_used_at: Timestamp | null }

export interface Member {
  id: string; email: string; name: string; role: Role; last_seen_at: Timestamp | null; passkeys: number; has_totp: boolean
}
export interface OpenInvitation { id: string; email: string | null; role: Role; created_at: Timestamp; expires_at: Timestamp }
export interface ApiUser {
  api_key: string; label: string | null; sub_account: string; role: 'full' | 'read-only'; rate_limit: number | null; ip_allow_list: string[]
  created_at: Timestamp; last_used_at: Timestamp | null; revoked_at: Timestamp | null; key_fingerprint: string
  person: { id: string; email: string; name: string } | null; enrolment: 'pending' | 'enrolled' | 'unknown'
}
export interface Command { where: string; command: string }
export interface AuditEntry {
  seq: number; at: Timestamp; actor: { type: string; id: string | null; name: string | null }; ip: string | null; action: string
  object: string | null; details: Record<string, unknown>; hash: string
}
export interface Health {
  nodes: { node: number; reachable: boolean; head?: string | null; height?: number | null; reason?: string }[]
  chains: { network: string; height: number | null; tip_age_s: number | null; lag_blocks: number | null; ok: boolean; reason?: string }[]
  queue: { due: number; waiting: number; oldest_s: number | null; by_state: Record<string, number> }
  webhooks: { pending: number; oldest_s: number | null }
  alerts: { level: string; code: string; message: string }[]
}
export interface View { id: string; name: string; page: string; query: string }

export interface Overview {
  balances: { asset: string; balance: Decimal; pending: Decimal; usd: Decimal | null }[]
  total_usd: Decimal | null
  counts: { pending: number; held: number; frozen: number; failed_24h: number }
  tanks: { network: string; asset: string; status: 'low' | 'empty' | 'ok'; balance: Decimal }[]
  prepaid: { balance: Decimal; currency: 'USD'; status: 'ok' | 'low' | 'empty' } | null
}
export interface Series { metric: string; unit: string; points: { at: Timestamp; value: Decimal }[] }

export interface Story {
  transaction: Transaction
  states: { state: string; at: Timestamp; reason?: string | null }[]
  request: {
    api_key: string; label: string | null; person?: { name: string; email: string } | null; method: string; uri: string; body: string
    claims: Record<string, unknown>; received_at: Timestamp
  } | null
  screening: Record<string, unknown>[]
  signed_by: { purpose: string; nodes: number[] }[]
  attempts: { hash: string; state: string; fee: Decimal | null; at: Timestamp; replaced_by?: string | null }[]
  fee: { planned: Decimal | null; paid: Decimal | null; asset: string }
  confirmations: { now: number; needed: number }
  ledger: { at: Timestamp; account: string; amount: Decimal; asset: string; kind: string }[]
  events: { id: string; type: string; at: Timestamp }[]
  deliveries: { id: string; webhook: string; event: string; status: string; attempts: number; at: Timestamp }[]
  explorer_url: string | null
}

/** An asset's names, for showing. */
export type AssetNames = Pick<Asset, 'asset_name' | 'name' | 'ticker' | 'network' | 'decimals' | 'requires_tag' | 'type' | 'fee_asset'>
