// Public types of approvals. They name no type of another package, so the packed declarations are
// complete.
import type { components } from '../api.d.ts'
import type { Trust } from '../trust/trust.ts'

type Statement = components['schemas']['ApprovalStatement']

/** What a transfer does, as people approve it. Amounts are in the smallest unit, as digits. */
export type ApprovalFacts = components['schemas']['ApprovalFacts']

/** A policy document: its text, the text of a policy file, or either as parsed JSON. */
export type DocumentSource = string | object

/** What is needed to verify which policy document the signer nodes have in force. */
export interface PolicyQuestion {
  /** Response of `GET /dac/v1/policy`. */
  policy: unknown
  trust: Trust
  /**
   * Greatest age of a node's statement in seconds, by default 300. For that long after a change, a
   * platform can return the document before it.
   */
  max_age_s?: number | undefined
  /** Present time in Unix seconds; by default that of this computer. */
  now_s?: number | undefined
}

/** A policy document that at least two signer nodes state to be in force. */
export interface StatedPolicy {
  number: number
  hash: string
  document: Record<string, unknown>
  /** Signer nodes whose statements were verified. */
  stated_by: number[]
  /** Time of the oldest of these statements in Unix seconds, by the clock of its node. */
  at: number
}

/** What is needed to verify an approval offline. */
export interface ApprovalQuestion {
  /** Response of `GET /dac/v1/approvals/{id}`, of an open or closed transfer. */
  approval: unknown
  trust: Trust
  /**
   * Policy documents that you have of their authors. The one in the statement must be among them;
   * earlier ones explain decisions from before a change.
   */
  documents: readonly DocumentSource[]
  /** Public keys in PEM of the API keys whose requests you accept. Absent: no signature is verified. */
  callers?: Readonly<Record<string, string>> | undefined
  /** ID of the transfer that you requested. */
  id?: string | undefined
  /** Present time in Unix seconds; by default that of this computer. */
  now_s?: number | undefined
}

/** A person's decision whose signature was verified. Times in Unix seconds. */
export interface VerifiedDecision {
  by: string
  /** ID of the person's key in the document. */
  key: string
  decision: 'approve' | 'reject'
  at: number
  expires: number
  /**
   * `valid`: it was valid at the time of the verification, or of its signature if the transfer is
   * closed. `superseded`: it was signed under an earlier document, so it does not count. `ignored`:
   * it does not verify under any document that is known here, so it does not count either.
   */
  status: 'valid' | 'expired' | 'superseded' | 'ignored'
  /** Why it is ignored; null for any other status. */
  reason: string | null
}

/** One quorum of a transfer. `have` counts verified approvals only. */
export interface VerifiedNeed {
  group: string
  k: number
  have: number
  /**
   * Members of the group whose approval could still count. If the document lists no owner of the API
   * key, the requester may be any of them, and their own approval does not count at the signer nodes.
   */
  may_approve: string[]
}

/** A transfer that requires approvals, with everything that was verified. */
export interface VerifiedApproval {
  id: string
  /** The platform's word, which nothing proves: `open`, `approved`, `rejected`, `expired` or `ended`. */
  state: string
  action: Statement['action']
  facts: ApprovalFacts
  /** The facts as sentences. */
  sentences: string[]
  /** All fields of the signed statement except `by`, `key`, `at`, `expires` and `decision`. */
  statement: Statement
  /**
   * `is_own`: you passed the document; otherwise the platform returned it. `stated_by`: signer nodes
   * whose statement that it is in force was verified; at least two, or empty. Only `approvals.verify`
   * without documents reads these statements.
   */
  policy: {
    number: number
    hash: string
    document: Record<string, unknown>
    is_own: boolean
    stated_by: number[]
  }
  /** The signed request of the caller, from which the facts were derived. */
  request: {
    api_key: string
    /**
     * Person whom the document lists as owner of the API key. Null: it lists none. Then only the
     * signer nodes know whether the key's enrolment names one, so no approval is counted here.
     */
    person: string | null
    /** Unix seconds. */
    issued_at: number
    /** The caller's signature was verified with a key in `callers`. */
    is_signature_verified: boolean
  }
  decisions: VerifiedDecision[]
  /** People with a valid approval, and with a valid rejection. */
  approved_by: string[]
  rejected_by: string[]
  /** `allow` rule of the document whose quorums `needs` contains; null if none fits. */
  rule: string | null
  /**
   * The rule is for own addresses only, and no other one fits. Only the signer nodes know whether
   * the destination is an own address, so `is_complete` is false.
   */
  requires_own_address: boolean
  needs: VerifiedNeed[]
  /**
   * Valid approvals reach all quorums of `needs`, and there is no valid rejection. Windows, fees,
   * own addresses and suspended keys are judged by the signer nodes only.
   */
  is_complete: boolean
}

/** How a decision is signed. */
export interface DecisionOptions {
  /** ID of the person or machine in the document; by default the one who has the key. */
  person?: string
  /** Seconds after which the decision stops counting, at most 7 days; by default one day. */
  valid_s?: number
  /** Present time in Unix seconds; by default that of this computer. */
  now_s?: number
}

/** A decision, as `POST /dac/v1/approvals/{id}` takes it. Times in Unix seconds. */
export interface SignedDecision {
  by: string
  key: string
  decision: 'approve' | 'reject'
  at: number
  expires: number
  signature: string
}
