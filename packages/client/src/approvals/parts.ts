/**
 * The steps of a verification, for the approver page, which has passkeys and documents of its own.
 * This entry is not part of the packed SDK.
 */
export { ApprovalError, cut } from './errors.ts'
export { currentDecisions, distinct } from './decisions.ts'
export { statedDocument, statedStops } from './in-force.ts'
export { assertPlace, placeOf, placeWith, type Place } from './place.ts'
export {
  decisionStatement,
  readFacts,
  verifyPayment,
  type ApprovedAction,
  type VerifiedPayment,
} from './payment.ts'
export { readDetail } from './read-detail.ts'
export type { CallerRequest, DetailedApproval, GivenDecision, ListedApproval } from './shapes.ts'
