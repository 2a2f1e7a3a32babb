export { CustodyClient } from './client.ts'
export type { CustodyClientOptions } from './methods/base.ts'
export type { WaitOptions } from './methods/transfers.ts'
export { paginate } from './paginate.ts'
export { CustodyError, IdempotencyMismatch } from './errors.ts'
export { isReplayed } from './replay.ts'
export type { RetryOptions } from './retry.ts'
export type {
  OnceOptions,
  RequestOptions,
  StreamEvent,
  StreamOptions,
  TransportOptions,
} from './transport.ts'
export { VerificationError, type VerificationCode } from './trust/errors.ts'
export type { CertifiedKey, Keys } from './trust/keys.ts'
export type { Trust } from './trust/trust.ts'
export type { VerifyApprovalOptions } from './approvals.ts'
export { ApprovalError, type ApprovalErrorCode } from './approvals/errors.ts'
export type {
  ProvenBalance,
  Statement as ReservesContent,
  VerifiedReserves,
} from './reserves/verify-reserves.ts'
export type { FailureProof, OwnRequest, Void } from './trust/proof.ts'
export { verifyWebhook, WebhookError, type WebhookEvent } from './webhook.ts'
export type * from './types.ts'
export type { components, operations } from './api.d.ts'
export {
  AuthError,
  JsonNumber,
  type NodeKey,
  type PrivateKey,
  type WebKey,
} from '@custody/request-auth/web'
