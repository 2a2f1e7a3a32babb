import { ApprovalError } from '@custody/client/approvals/parts'
import { PolicyError } from '@custody/policy'
import { ApproverError } from '../errors.ts'

/** Returns the result of a call that judges what was read. @throws ApproverError */
export function judged<T>(call: () => T): T {
  try {
    return call()
  } catch (error) {
    if (error instanceof PolicyError || error instanceof ApprovalError)
      throw new ApproverError(error.code, error.message)
    throw error
  }
}
