import { PolicyError, verifyStatement, type Policy, type SignedStatement } from '@custody/policy'
import { ApiError } from '../../core/errors.ts'

/**
 * Verifies a statement as the nodes do.
 * @throws ApiError `APPROVAL_REFUSED` that names the field
 */
export function assertVerified(
  policy: Policy,
  signed: SignedStatement,
  context: { now_s: number; suspended: ReadonlySet<string> },
): void {
  try {
    verifyStatement(policy, signed, context)
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    const { path, message } = error
    const field = path === '' ? 'signature' : path
    const text = path === '' ? `${field}: ${message}` : message
    throw new ApiError('APPROVAL_REFUSED', text, { field })
  }
}
