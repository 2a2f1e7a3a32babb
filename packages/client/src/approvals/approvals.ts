/**
 * Verification and signature of approvals without trust in the platform. It runs in Node and in
 * browsers.
 */
import type { Trust } from '../trust/trust.ts'
import { decide } from './decide.ts'
import { requireStated } from './in-force.ts'
import { placeOf } from './place.ts'
import type { StatementSigner } from './signer.ts'
import type {
  ApprovalQuestion,
  DecisionOptions,
  PolicyQuestion,
  SignedDecision,
  StatedPolicy,
  VerifiedApproval,
} from './types.ts'
import { verifyAt } from './verify-approval.ts'

export { ApprovalError, type ApprovalErrorCode } from './errors.ts'
export { keySigner, type StatementSigner } from './signer.ts'
export type { Trust }
export type * from './types.ts'

/**
 * Verifies a transfer that requires approvals, and all decisions about it, without the platform. The
 * result is what may be signed, or what was signed. A closed transfer is verified as of the times of
 * its decisions.
 *
 * @throws ApprovalError with the reason why it must not be signed, or why it proves nothing;
 *   VerificationError `TRUST`
 */
export async function verifyApproval({
  trust,
  ...question
}: ApprovalQuestion): Promise<VerifiedApproval> {
  return verifyAt(await placeOf(trust), question)
}

/**
 * Verifies that at least two signer nodes of the trust file state that a document is in force for the
 * workspace, without trust in the platform.
 * @throws ApprovalError `DOCUMENT`, `OTHER_PLACE` or `NOT_STATED`; VerificationError `TRUST`;
 *   TypeError if a time is not a whole number of seconds
 */
export async function verifyPolicy(question: PolicyQuestion): Promise<StatedPolicy> {
  return requireStated(question)
}

/**
 * Signs a decision about a transfer, for `approvals.give` of the client.
 * @param verified result of {@link verifyApproval} or of `approvals.verify`
 * @returns the decision, and the signed statement as sentences
 * @throws ApprovalError `CLOSED` if the transfer is not open, or `SIGNER`
 */
export function signDecision(
  verified: VerifiedApproval,
  decision: 'approve' | 'reject',
  signer: StatementSigner,
  options?: DecisionOptions,
): Promise<{ decision: SignedDecision; sentences: string[] }> {
  return decide(verified, decision, signer, options)
}
