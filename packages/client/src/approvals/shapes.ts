import type { SignedStatement } from '@custody/policy'

/** The signed request of a caller, as the platform returns it. */
export interface CallerRequest {
  token: string
  method: string
  uri: string
  body: string
}

/** A decision as the platform returns it. Times in Unix seconds. */
export interface GivenDecision {
  by: string
  key: string
  decision: 'approve' | 'reject'
  at: number
  expires: number
  signature?: string | undefined
  passkey?: SignedStatement['passkey']
}

/** What the platform returns in lists. Nothing of it is trusted. */
export interface ListedApproval {
  id: string
  state: string
  action: string
  facts: unknown
  /** Of a policy change. */
  change?: { number: number; hash: string } | undefined
  needs: { group: string; k: number; have: number }[]
  have: GivenDecision[]
  expires_at: string
}

/** What the platform returns of one transfer. Nothing of it is trusted. */
export interface DetailedApproval extends ListedApproval {
  /** Network fee that the platform plans, in the smallest unit; no one signs it. */
  planned_fee?: unknown
  /** Memo of the transfer and who requested it; no one signs them. */
  memo?: unknown
  requested_by?: { api_key?: unknown; name?: unknown }
  statement: {
    v: number
    mode: string
    workspace: string
    nodes: string
    policy: { number: number; hash: string }
    id: string
    subject: string
    action: string
    facts: unknown
  }
  request: CallerRequest
}
