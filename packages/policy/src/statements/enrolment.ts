import { canonicalJson } from '@custody/request-auth/web'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { Policy } from '../evaluation/compile.ts'
import type { EnrolmentFacts } from '../facts.ts'
import type { StatementOf } from './shapes.ts'

type Approval = Extract<StatementOf<'approval'>, { action: 'enrolment' }>

/** An approval of an enrolment, without the fields of its place and of its signer. */
export type EnrolmentApproval = Omit<
  Approval,
  'v' | 'mode' | 'workspace' | 'nodes' | 'by' | 'key' | 'at' | 'expires'
>

/**
 * Returns what each person signs to approve an enrolment under a document. `subject` is the SHA-256 of
 * the canonical JSON of the facts.
 */
export const enrolmentApproval = (
  { document: { number }, hash }: Policy,
  facts: EnrolmentFacts,
): EnrolmentApproval => ({
  kind: 'approval',
  policy: { number, hash },
  id: facts.api_key,
  subject: bytesToHex(sha256(utf8ToBytes(canonicalJson(facts)))),
  decision: 'approve',
  action: 'enrolment',
  facts,
})
