// Shapes of the platform's responses to the panel. Shapes of the public API come from the SDK.
import type { ApiRole } from '@custody/request-auth/roles'
import type { Asset, Decimal, GasTank, Timestamp, Transaction } from '@custody/client'

export type * from '@custody/client'

export type Role = 'owner' | 'admin' | 'operator' | 'viewer'
interface Person {
  id: string
  email: string
  name: string
  has_password: boolean
  has_totp: boolean
  recovery_codes_left: number
  passkeys: number
}
interface Membership {
  name: string
  role: Role
  sub_accounts: string[]
}
export interface Session {
  person: Person | null
  workspaces: Membership[]
  passkeys_available: boolean
  network: 'local' | 'mainnet' | `regtest-${number}`
  version: string
  command: 'npx custody' | 'custody'
}
/** `workspace` null: the first owner enters its name, or the link sets new factors (`is_reset`). */
export interface Invitation {
  workspace: string | null
  role: Role
  email: string | null
  is_first: boolean
  is_reset: boolean
  expires_at: Timestamp
}
export interface OpenSession {
  id: string
  created_at: Timestamp
  last_seen_at: Timestamp
  ip: string | null
  user_agent: string | null
  is_current: boolean
}
export interface Passkey {
  id: string
  name: string
  created_at: Timestamp
  last_used_at: Timestamp | null
}

export interface Member {
  id: string
  email: string
  name: string
  role: Role
  last_seen_at: Timestamp | null
  passkeys: number
  has_totp: boolean
}
export interface OpenInvitation {
  id: string
  email: string | null
  role: Role
  created_at: Timestamp
  expires_at: Timestamp
  invited_by: string | null
}
/**
 * `api_key` null: it was requested, and the operator has not created it yet; `id` is then the
 * request's.
 */
export interface ApiUser {
  id: string
  api_key: string | null
  label: string | null
  sub_account: string
  role: ApiRole
  rate_limit: number | null
  ip_allow_list: string[]
  created_at: Timestamp
  last_used_at: Timestamp | null
  revoked_at: Timestamp | null
  key_fingerprint: string
  public_key_pem: string
  person: { id: string; email: string; name: string } | null
  enrolment: 'pending' | 'enrolled'
  /** Commands for the operator while it is pending. */
  commands: Command[]
}
export interface Command {
  where: string
  command: string
}
export interface AuditEntry {
  seq: number
  at: Timestamp
  actor: { type: 'person' | 'api_user' | 'operator'; id: string | null; name: string }
  session: string | null
  ip: string | null
  action: string
  object: string | null
  details: Record<string, unknown>
  prev_hash: string
  hash: string
}
export interface Health {
  nodes: {
    node: number
    reachable: boolean
    ready: boolean
    height: number | null
    head: string | null
    keys: number | null
  }[]
  chains: {
    network: string
    height: number | null
    tip: number | null
    lag_blocks: number | null
    tip_age_s: number | null
    ok: boolean
    reason: string | null
  }[]
  queue: { due: number; waiting: number; oldest_s: number | null; by_state: Record<string, number> }
  webhooks: { pending: number; oldest_s: number | null; disabled: number }
  alerts: { level: 'warning' | 'critical'; code: string; message: string }[]
}
export interface Settings {
  settings: { name: string; value: string; says: string }[]
  networks: {
    network: string
    name: string
    confirmations: number | null
    fee_cap: Decimal
    native_asset: string
  }[]
}
export interface View {
  id: string
  name: string
  page: string
  query: string
}

/**
 * `balance`: the total; `available`: the part that can be sent, without fees; `pending`: deposits
 * that are not credited yet.
 */
export interface Overview {
  balances: {
    asset: string
    network: string
    balance: Decimal
    available: Decimal
    pending: Decimal
    price_usd: Decimal | null
  }[]
  total_usd: Decimal
  tanks_low: GasTank[]
  prepaid: { balance: Decimal; reserved: Decimal; status: 'ok' | 'low' | 'empty'; tier: string }
}
export interface Attention {
  items: {
    cause: string
    count: number
    tone: 'bad' | 'warn' | 'frozen' | 'info'
    text: string
    link: string
  }[]
}
/** Open requests for approvals. */
export interface Waiting {
  transfers: number
  rules: number
  changes: number
}
export interface Series {
  metric: string
  unit: string
  points: { at: Timestamp; value: Decimal }[]
}

export interface TransactionTimeline {
  transaction: Transaction
  network: string
  /** Oldest first. */
  states: { state: string; at: Timestamp; reason: string | null }[]
  request: {
    api_key: string
    label: string | null
    person: { id: string; name: string; email: string } | null
    method: string
    uri: string
    body: string
    claims: Record<string, unknown>
    received_at: Timestamp
  } | null
  /** Nodes that received the request. */
  receipts: number[]
  screening: { provider: string; address: string; risk_level: string | null; at: Timestamp }[]
  holds: {
    address: string
    source: string
    risk_level: string
    held_at: Timestamp
    released_at: Timestamp | null
  }[]
  signed_by: { attempt: number; purpose: string; nodes: number[] }[]
  attempts: {
    attempt: number
    kind: string
    hash: string | null
    state: string
    fee_max: Decimal
    fee: Decimal | null
    at: Timestamp
    broadcast_at: Timestamp | null
    block_height: string | null
    replaced_by: string | null
  }[]
  /** `planned`: the estimate; once the transaction is built, its maximum fee. */
  fee: { planned: Decimal; paid: Decimal | null; asset: string }
  /** `needed` null: the chain's own finality. */
  confirmations: { now: number; needed: number | null }
  ledger: { at: Timestamp; entry: string; account: string; amount: Decimal; asset: string }[]
  /** Automatic transactions of the platform for this one, such as fuel. */
  related: { id: string; type: string; status: string; hash: string | null }[]
  events: { id: string; type: string; at: Timestamp }[]
  deliveries: {
    id: string
    webhook: string
    url: string
    event: string
    status: string
    attempts: number
    at: Timestamp
  }[]
  explorer_url: string | null
}

/** Names of an asset for display. */
export type AssetNames = Pick<
  Asset,
  'asset_name' | 'name' | 'ticker' | 'network' | 'decimals' | 'takes_tag' | 'type' | 'fee_asset'
>

export interface Webhook {
  id: string
  url: string
  events: string[]
  description: string | null
  format: 'standard' | 'classic'
  disabled: boolean
  disabled_reason: string | null
  failures: number
  previous_secret_until: Timestamp | null
  created_at: Timestamp
  updated_at: Timestamp
}
export interface NewSecret extends Webhook {
  secret: string
}
export interface Delivery {
  id: string
  webhook_id: string
  event_id: string
  type: string
  object: string
  status: 'pending' | 'delivered' | 'failed'
  tries: number
  tries_left: number
  next_try_at: Timestamp | null
  request: { body: string }
  attempts: {
    at: Timestamp
    url: string
    duration_ms: number
    status: number | null
    error: string | null
    answer: string | null
  }[]
  created_at: Timestamp
  updated_at: Timestamp
}
