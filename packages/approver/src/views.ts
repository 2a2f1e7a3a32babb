/** What the server sends to the page. The page displays every text as a text node. */

/** One quorum of a transfer. */
export interface NeedView {
  group: string
  k: number
  have: number
}

/** A verified fact. `kind`: addresses are displayed in groups of four characters. */
export interface FactView {
  name: string
  value: string
  kind: 'text' | 'address'
}

/** A passkey of the person that this page can use. */
export interface KeyView {
  id: string
  alg: string
  credential: string
}

/** A transfer or a policy change that waits for approvals. */
export interface ApprovalView {
  id: string
  state: string
  is_change: boolean
  /** Verified facts as sentences; empty if the transfer was refused. */
  sentences: string[]
  needs: NeedView[]
  expires_at: string
  /** Why it must not be signed; null if everything was verified. */
  refusal: string | null
}

export interface ApprovalDetailView extends ApprovalView {
  /** Handle of what was verified, which a challenge signs; null if the transfer was refused. */
  review: string | null
  facts: FactView[]
  policy: { number: number; hash: string } | null
  /** Decisions whose signatures were verified. */
  decisions: { by: string; decision: 'approve' | 'reject' }[]
  keys: KeyView[]
}

/** A policy change. The page computes the differences from both documents. */
export interface ChangeView {
  id: string
  /** Handle of what was verified, which a challenge signs; null if the change was refused. */
  review: string | null
  state: string
  needs: NeedView[]
  expires_at: string
  /** Null, as the following three: the change was refused. */
  number: number | null
  hash: string | null
  /** The document in force. */
  previous: { number: number; hash: string } | null
  acts_at: string | null
  differences: { tendency: string; sentence: string }[]
  warnings: string[]
  /** All rules of the proposed document, as sentences. */
  rules: string[]
  /** Decisions whose signatures were verified. */
  decisions: { by: string; decision: 'approve' | 'reject' }[]
  /** Passkeys of the person in the document in force. */
  keys: KeyView[]
  /** Passkeys of the person that the change adds, and whose proofs are missing. */
  new_keys: KeyView[]
  refusal: string | null
}

/** What a person can do at once. Everything was verified, except where `refusal` states why not. */
export interface EmergencyView {
  /** Handle of what was verified, which the end of a stop and a veto sign. */
  review: string
  /** Document that the platform states to be in force. */
  number: number
  hash: string
  may_stop: boolean
  may_resume: boolean
  may_veto: boolean
  stops: { hash: string; text: string; refusal: string | null }[]
  pending: { number: number; hash: string; acts_at: string; differences: string[] }[]
  keys: KeyView[]
}

export interface StateView {
  person: string
  origin: string
  rp_id: string
  platform: string
  workspace: string
  sub_account: string
  mode: string
}

/** What `navigator.credentials.get` signs. */
export interface ChallengeView {
  attempt: string
  /** The statement as sentences. */
  sentences: string[]
  /** Base64url of 32 bytes. */
  challenge: string
  rp_id: string
  credential: string
}

/** Options of `navigator.credentials.create`. */
export interface CreationView {
  attempt: string
  challenge: string
  rp: { id: string; name: string }
  /** Base64url of random bytes. */
  user_id: string
  user_name: string
}

/** A created passkey, as the list `keys` of a person in a policy document contains it. */
export interface CreatedView {
  key: string
  fingerprint: string
}

export interface DocumentView {
  number: number
  hash: string
  mode: string
  workspace: string
  /** Why it must not be signed; null if it is for this installation and has no error. */
  refusal: string | null
  people: {
    id: string
    name: string
    keys: { id: string; kind: string; alg: string; fingerprint: string; proof: string | null }[]
  }[]
  groups: { name: string; members: string[] }[]
  governance: string[]
  rules: string[]
  findings: { severity: 'error' | 'warning'; path: string; message: string }[]
  keys: KeyView[]
}

export interface DecisionView {
  state: string
  needs: NeedView[]
}
