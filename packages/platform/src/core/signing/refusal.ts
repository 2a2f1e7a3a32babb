const PREFIX = 'the signer nodes reject it: '

/** Returns the reason of a transaction that fails because the signer nodes refuse it. */
export const refusalReason = ({ code, message }: { code: string; message: string }): string =>
  `${PREFIX}${code}: ${message}`

/**
 * Whether a transaction failed because the policy of its workspace refused it, before anything was
 * signed for it.
 * @param reason its `failure_reason`
 */
export const isPolicyRefusal = (reason: string | null): boolean =>
  reason?.startsWith(`${PREFIX}POLICY_`) ?? false

/**
 * Refusals by a policy that end when a window has room, when people end a stop, or when they approve the
 * enrolment of the caller's API key or the order of the operators.
 */
const HELD = new Set(['POLICY_WINDOW', 'POLICY_STOPPED', 'ENROLMENT_APPROVAL', 'ORDER_APPROVAL'])

/** Whether a policy does not allow a transaction now, but may allow it unchanged later. */
export const isHeldByPolicy = (code: string | undefined): boolean =>
  code !== undefined && HELD.has(code)
