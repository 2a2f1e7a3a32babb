import { policyFileValue, PolicyError, readPolicyFile, type PolicyFile } from '@custody/policy'
import { ApproverError } from '../errors.ts'

/**
 * Parses a policy file, or a document alone.
 * @throws ApproverError
 */
export function parseFile(text: string): PolicyFile {
  try {
    return readPolicyFile(text)
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    const isSentence = error.code !== 'FILE' || error.path !== ''
    throw new ApproverError(error.code, isSentence ? error.message : `the file ${error.message}`)
  }
}

/** Returns the text of a policy file. */
export const fileText = (file: PolicyFile): string =>
  `${JSON.stringify(policyFileValue(file), null, 2)}\n`
