import type { Trust } from '@custody/client'
import {
  challengeOf,
  PolicyError,
  statementSentences,
  verifyStatement,
  type Assertion,
  type Passkey,
  type Policy,
  type PolicyFile,
  type Statement,
} from '@custody/policy'
import type { Config } from '../config.ts'
import { ApproverError } from '../errors.ts'
import type { Documents } from '../verify/documents.ts'
import type { Place } from '../verify/place.ts'
import type { ChallengeView } from '../views.ts'
import type { Platform } from './platform.ts'

/** Validity of an approval after its signature, in seconds: one day. */
export const APPROVAL_S = 86_400

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** What the calls of the page need. */
export interface Services {
  config: Config
  place: Place
  /** The trust file, which pins the identity keys of the signer nodes. */
  trust: Trust
  documents: Documents
  platform: Platform
  /** Milliseconds of Unix time. */
  now: () => number
}

/** A statement that the page is about to sign. `file`: of a proof of possession. */
export interface Pending<S extends Statement = Statement> {
  statement: S
  policy: Policy
  file?: PolicyFile
}

export type Call = (input: Record<string, unknown>) => Promise<unknown>

export function textOf(input: Record<string, unknown>, field: string): string {
  const value = input[field]
  if (typeof value !== 'string') throw new ApproverError('INPUT', `${field} must be a text`)
  return value
}

export function idOf(input: Record<string, unknown>): string {
  const id = textOf(input, 'id')
  if (!ID.test(id))
    throw new ApproverError('INPUT', 'id must be the ID of a transfer or a policy change')
  return id
}

export const challengeView = (
  attempt: string,
  statement: Statement,
  key: Passkey,
): ChallengeView => ({
  attempt,
  sentences: statementSentences(statement),
  challenge: challengeOf(statement),
  rp_id: key.rp_id,
  credential: key.credential,
})

export const assertionOf = (input: Record<string, unknown>): Assertion => ({
  client_data: textOf(input, 'client_data'),
  authenticator_data: textOf(input, 'authenticator_data'),
  signature: textOf(input, 'signature'),
})

/** Verifies what the browser returned, as the signer nodes do. @throws ApproverError */
export function assertSigned(
  policy: Policy,
  statement: Statement,
  passkey: Assertion,
  now_s: number,
): void {
  try {
    verifyStatement(policy, { statement, passkey }, { now_s, suspended: new Set() })
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    throw new ApproverError(error.code, `the passkey did not sign it correctly: ${error.message}`)
  }
}
