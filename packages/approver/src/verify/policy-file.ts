import {
  checkDocument,
  PolicyError,
  readSigned,
  type PolicyDocument,
  type SignedStatement,
} from '@custody/policy'
import { AuthError, parseJson } from '@custody/request-auth/web'
import { ApproverError } from '../errors.ts'

/** A policy document with the signed statements that belong to it, as its file contains them. */
export interface PolicyFile {
  document: PolicyDocument
  possessions: SignedStatement[]
  /** Signed approvals of the change, unchanged. */
  approvals: unknown[]
}

const FIELDS = ['document', 'possessions', 'approvals']

const bad = (message: string): never => {
  throw new ApproverError('FILE', message)
}

/** Returns the result of a call that judges a document or a statement. @throws ApproverError */
export function judged<T>(call: () => T): T {
  try {
    return call()
  } catch (error) {
    if (error instanceof PolicyError) throw new ApproverError(error.code, error.message)
    throw error
  }
}

function listOf(value: unknown, field: string): unknown[] {
  if (value === undefined) return []
  return Array.isArray(value) ? value : bad(`${field} must be a list of signed statements`)
}

function parseObject(text: string): Record<string, unknown> {
  try {
    // JSON.parse accepts repeated keys, of which a reader of the file may see the other one.
    parseJson(text)
  } catch (error) {
    if (!(error instanceof AuthError)) throw error
    bad(`the file ${error.message}`)
  }
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    bad('the file must contain a JSON object')
  return value as Record<string, unknown>
}

/**
 * Parses a policy file: `{"document": …, "possessions": […], "approvals": […]}`, or a document alone.
 * @throws ApproverError
 */
export function parseFile(text: string): PolicyFile {
  const value = parseObject(text)
  if (value['kind'] === 'custody-policy')
    return { document: judged(() => checkDocument(value)), possessions: [], approvals: [] }
  if (value['document'] === undefined)
    bad('the file must contain a policy document, or an object with the field "document"')
  const unknown = Object.keys(value).find((name) => !FIELDS.includes(name))
  if (unknown !== undefined) bad(`${unknown} is not a field of a policy file`)
  const approvals = listOf(value['approvals'], 'approvals')
  for (const each of approvals) judged(() => readSigned(JSON.stringify(each)))
  return {
    document: judged(() => checkDocument(value['document'])),
    possessions: listOf(value['possessions'], 'possessions').map((each) =>
      judged(() => readSigned(JSON.stringify(each))),
    ),
    approvals,
  }
}

/** Returns the text of a policy file. */
export const fileText = ({ document, possessions, approvals }: PolicyFile): string =>
  `${JSON.stringify(
    { document, possessions, ...(approvals.length === 0 ? {} : { approvals }) },
    null,
    2,
  )}\n`
