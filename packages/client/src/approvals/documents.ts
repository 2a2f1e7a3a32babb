import {
  checkDocument,
  documentHash,
  PolicyError,
  readPolicyFile,
  type PolicyDocument,
} from '@custody/policy'
import { refuse } from './errors.ts'
import type { DocumentSource } from './types.ts'

/**
 * Reads a policy document.
 * @throws ApprovalError `DOCUMENT`
 */
function readSource(source: DocumentSource): PolicyDocument {
  try {
    if (typeof source === 'string') return readPolicyFile(source).document
    if (typeof source !== 'object' || source === null)
      return refuse('DOCUMENT', 'a policy document must be a text or an object')
    return checkDocument('document' in source ? source.document : source)
  } catch (error) {
    if (error instanceof PolicyError)
      return refuse('DOCUMENT', `a policy document is not valid: ${error.message}`)
    throw error
  }
}

/** Returns documents by their hashes. @throws ApprovalError `DOCUMENT` */
export const documentsByHash = (
  sources: readonly DocumentSource[],
): ReadonlyMap<string, PolicyDocument> =>
  new Map(
    sources.map((source) => {
      const document = readSource(source)
      return [documentHash(document), document] as const
    }),
  )
