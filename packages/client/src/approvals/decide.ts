import {
  PolicyError,
  statementBytes,
  statementSentences,
  verifyStatement,
  type PolicyDocument,
} from '@custody/policy'
import { base64 } from '@scure/base'
import { refuse } from './errors.ts'
import { decisionStatement } from './payment.ts'
import { assertSeconds } from './seconds.ts'
import type { StatementSigner } from './signer.ts'
import type { DecisionOptions, SignedDecision, VerifiedApproval } from './types.ts'
import { paymentOf } from './verify-approval.ts'

/** Validity of a decision after its signature, in seconds: one day. */
const VALID_S = 86_400

/** Returns the person and the key ID of a public key. @throws ApprovalError `SIGNER` */
function holderOf(
  { people, number }: PolicyDocument,
  { spki }: StatementSigner,
  person: string | undefined,
): { by: string; key: string } {
  for (const { id, keys } of people) {
    const key = keys.find((each) => each.kind === 'key' && each.spki === spki)
    if (key && (person === undefined || person === id)) return { by: id, key: key.id }
  }
  return refuse(
    'SIGNER',
    `the key with the spki ${spki} is not a key of ${person ?? 'a person'} in policy document ${number}`,
  )
}

/**
 * Signs a decision about a verified transfer.
 * @throws ApprovalError `CLOSED` if the transfer is not open, or `SIGNER`; TypeError if a time is not
 *   a whole number of seconds
 */
export async function decide(
  verified: VerifiedApproval,
  decision: 'approve' | 'reject',
  signer: StatementSigner,
  { person, valid_s = VALID_S, now_s = Math.floor(Date.now() / 1000) }: DecisionOptions = {},
): Promise<{ decision: SignedDecision; sentences: string[] }> {
  const payment = paymentOf(verified)
  assertSeconds('now_s', now_s)
  assertSeconds('valid_s', valid_s)
  if (verified.state !== 'open') refuse('CLOSED', `the transfer is ${verified.state}`)
  const { by, key } = holderOf(payment.document, signer, person)
  const fields = { by, key, decision, at: now_s, expires: now_s + valid_s }
  const statement = decisionStatement(payment, fields)
  const signature = base64.encode(await signer.sign(statementBytes(statement)))
  try {
    verifyStatement(payment.policy, { statement, signature }, { now_s, suspended: new Set() })
  } catch (error) {
    if (error instanceof PolicyError)
      return refuse('SIGNER', `the key did not sign: ${error.message}`)
    throw error
  }
  return { decision: { ...fields, signature }, sentences: statementSentences(statement) }
}
