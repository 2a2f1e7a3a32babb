import { canonicalJson, JsonNumber, parseJson } from '@custody/request-auth/web'
import { inOurWords, parsedBy } from '@custody/request-auth/bodies'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import type { z } from 'zod'
import { PolicyError, pathOf } from '../error.ts'
import { LIMITS } from '../limits.ts'
import { policyDocument, type PolicyDocument } from './shape.ts'
import { refuseUnsupported } from './unsupported.ts'

/** First line of the bytes whose SHA-256 is the hash of a document. */
const DOMAIN = 'custody/policy/v1\n'

/** Replaces numbers of the strict parser by JavaScript's. Only plain integers are accepted. */
function withIntegers(value: unknown, path: readonly PropertyKey[]): unknown {
  if (value instanceof JsonNumber) {
    const number = Number(value.text)
    if (!/^(?:0|[1-9]\d{0,15})$/.test(value.text) || !Number.isSafeInteger(number))
      throw new PolicyError('FORMAT', pathOf(path), 'must be an integer without sign and exponent')
    return number
  }
  if (Array.isArray(value)) return value.map((each, at) => withIntegers(each, [...path, at]))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, withIntegers(each, [...path, key])]),
  )
}

/** The first of zod's issues; in a union the issue that leads deepest into the value. */
function issueOf(
  issues: readonly z.core.$ZodIssue[],
  path: readonly PropertyKey[] = [],
): { path: readonly PropertyKey[]; message: string } {
  const issue = issues[0]
  if (issue === undefined) return { path, message: 'is not valid' }
  const at = [...path, ...issue.path]
  if (issue.code === 'unrecognized_keys')
    return { path: [...at, issue.keys[0] as string], message: 'is not a field' }
  if (issue.code === 'invalid_key') return issueOf(issue.issues, at)
  return { path: at, message: issue.message }
}

/**
 * Checks an untrusted value against a schema.
 * @throws PolicyError `SHAPE` with the path of the first field that is not valid
 */
export function readShape<T>(schema: z.ZodType<T>, value: unknown): T {
  const result = parsedBy(schema, value, { error: inOurWords })
  if (result?.success) return result.data
  const { path, message } = issueOf(result?.error.issues ?? [])
  throw new PolicyError('SHAPE', pathOf(path), message)
}

/**
 * Parses untrusted strict JSON whose numbers are integers.
 * @param bytesMax largest number of UTF-8 bytes
 * @throws PolicyError `FORMAT`
 */
export function readJson(text: string, bytesMax: number): unknown {
  if (text.length > bytesMax || utf8ToBytes(text).length > bytesMax)
    throw new PolicyError('FORMAT', '', `The text is larger than ${bytesMax} bytes.`)
  let value: unknown
  try {
    value = parseJson(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'is not valid JSON'
    throw new PolicyError('FORMAT', '', `The text is refused: ${why}.`)
  }
  return withIntegers(value, [])
}

/**
 * Reads a policy document from its JSON text. The text need not be canonical.
 * @throws PolicyError `FORMAT`, `SHAPE` or `UNSUPPORTED`
 */
export function readDocument(text: string): PolicyDocument {
  return checkDocument(readJson(text, LIMITS.documentBytes))
}

/**
 * Checks a value that is a policy document as parsed JSON.
 * @throws PolicyError `FORMAT`, `SHAPE` or `UNSUPPORTED`
 */
export function checkDocument(value: unknown): PolicyDocument {
  refuseUnsupported(value)
  const document = readShape(policyDocument, value)
  canonicalText(document)
  return document
}

/**
 * Returns the canonical text (RFC 8785) of a document, which is what people compare and nodes store.
 * @throws PolicyError `FORMAT` if it is larger than 256 KiB
 */
export function canonicalText(document: PolicyDocument): string {
  const text = canonicalJson(document)
  if (utf8ToBytes(text).length > LIMITS.documentBytes)
    throw new PolicyError('FORMAT', '', `The text is larger than ${LIMITS.documentBytes} bytes.`)
  return text
}

/** Returns the hash of a document: lower-case hex SHA-256 of `custody/policy/v1\n` + canonical text. */
export function documentHash(document: PolicyDocument): string {
  return bytesToHex(sha256(utf8ToBytes(DOMAIN + canonicalText(document))))
}
