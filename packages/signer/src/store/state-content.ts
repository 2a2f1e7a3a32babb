import type { ApiRole } from '@custody/request-auth/roles'
import type { Curve } from '@custody/chains'
import type { Proof } from '../envelope.ts'
import type { Body } from './entries/index.ts'

/** Content of the state, as far as it differs from the entries of the record. */

export interface Enrolment {
  api_key: string
  public_key_pem: string
  role: ApiRole
  workspace: string
  sub_account: number
  /** Name of the sub-account; null in records from before names were bound. */
  sub_account_name: string | null
  /** The API key signs only with approvals under this policy or a later one; absent: without any. */
  approval_policy?: number | undefined
  /** Person of policy documents who owns the API key; absent: the operator named none. */
  person?: string | undefined
  revoked: boolean
}
export interface NodeSignature {
  node: number
  signature: string
}
export interface KeyState {
  key_id: string
  curve: Curve
  public_key: string
  chain_code: string
  epoch: number
  workspace: string | null
  height: number
  /**
   * Session of the run that generated the share of this epoch; null if it came from an earlier
   * version or a backup without it.
   */
  session: string | null
  /**
   * The previous share, which still signs until both peers are known to have switched to the
   * current one.
   */
  previous: { epoch: number; session: string | null } | null
}
export interface Allocation {
  workspace: string
  curve: Curve
  key_id: string
  epoch: number
  certificates: NodeSignature[] | null
}
/** A sub-account's index; certified by all three nodes, or only recorded here. */
export interface SubAccountBinding {
  index: number
  certificates: NodeSignature[] | null
}
/** A caller's request as this node first parsed it. */
export type Seen = Body<'seen'> & { seen_at: number }
export interface StepEntry {
  height: number
  unsigned_hash: string
  consumes: string[]
  signed: { height: number; hash: string } | null
}
export interface Intent {
  key: string
  content: string | null
  transaction_id: string
  steps: Map<string, StepEntry[]>
}
/** The operator's order to drain a tank. */
export type DrainOrder = Body<'drain'>
/**
 * Rule 13: a caller's standing rule, whose request was seen before its expiry. Amounts as decimal
 * text.
 */
export type StandingRule = Body<'rule'>
/** The operator's order to move all funds of a workspace on a network. */
export type RecoverOrder = Body<'recover'>
/** The operator's order about a tank's stake. */
export type TankStakeOrder = Body<'tank-stake'>
export interface Ban {
  node: number
  /**
   * Fingerprint of the banned key; null for a ban from an earlier version, until this version adds
   * it.
   */
  identity: string | null
  at: number
  reason: string
  cause: 'cheat' | 'operator'
  /** Height of its entry in the record. */
  height: number
}
export interface PeerHead {
  height: number
  hash: string
  generation: number
  proof: Proof | null
}

/** Body of an entry by which this node recorded a peer's entry. */
type Taken = Body<'imported'>
export type ImportedEntry = {
  [K in Taken['kind']]: {
    height: number
    at: number
    kind: K
    body: Extract<Taken, { kind: K }>['body']
  }
}[Taken['kind']]
export type StepBody = Body<'step'> | Extract<Taken, { kind: 'step' }>['body']
