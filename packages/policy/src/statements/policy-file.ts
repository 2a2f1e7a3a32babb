import { parseJson } from '@custody/request-auth/web'
import { checkDocument } from '../document/read.ts'
import type { PolicyDocument } from '../document/shape.ts'
import { PolicyError } from '../error.ts'
import { readSigned, type SignedStatement } from './verify.ts'

/** A policy document with the signed statements that belong to it, as its file contains them. */
export interface PolicyFile {
  document: PolicyDocument
  /** Proofs that people hold the keys of the document. Only their shape is checked. */
  possessions: SignedStatement[]
  /** Approvals of the change. Only their shape is checked. */
  approvals: SignedStatement[]
}

const FIELDS = ['document', 'possessions', 'approvals']

const bad = (path: string, message: string): never => {
  throw new PolicyError('FILE', path, message)
}

/** Returns the statements of a list unchanged. @throws PolicyError `FILE` */
function statementsOf(value: unknown, field: string): SignedStatement[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) return bad(field, 'must be a list of signed statements')
  return value.map((each: unknown, at) => {
    try {
      readSigned(JSON.stringify(each))
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      bad(`${field}[${at}]`, error.message)
    }
    return each as SignedStatement
  })
}

function readObject(text: string): Record<string, unknown> {
  let value: unknown
  try {
    // JSON.parse accepts repeated keys, of which a reader of the file may see the other one.
    parseJson(text)
    value = JSON.parse(text)
  } catch (error) {
    bad('', `is not valid JSON (${error instanceof Error ? error.message : String(error)})`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    bad('', 'must contain a JSON object')
  return value as Record<string, unknown>
}

/**
 * Reads a policy file: `{"document": …, "possessions": […], "approvals": […]}`, or a document alone.
 * @throws PolicyError `FILE` if the file is not valid apart from its document, with a message that
 *   continues a sentence about the file; `FORMAT`, `SHAPE` or `UNSUPPORTED` if the document is not
 */
export function readPolicyFile(text: string): PolicyFile {
  const value = readObject(text)
  if (value['kind'] === 'custody-policy')
    return { document: checkDocument(value), possessions: [], approvals: [] }
  if (value['document'] === undefined)
    bad('', 'must contain a policy document, or an object with the field "document"')
  const unknown = Object.keys(value).find((name) => !FIELDS.includes(name))
  if (unknown !== undefined)
    bad(unknown, `is not a field of a policy file; its fields are ${FIELDS.join(', ')}`)
  return {
    document: checkDocument(value['document']),
    possessions: statementsOf(value['possessions'], 'possessions'),
    approvals: statementsOf(value['approvals'], 'approvals'),
  }
}

/** Returns the content of a policy file, in the order of its fields. */
export const policyFileValue = ({ document, possessions, approvals }: PolicyFile): object => ({
  document,
  possessions,
  ...(approvals.length === 0 ? {} : { approvals }),
})
