import { z } from 'zod'
import type { Approvals, PersonKey } from '../document/people.ts'
import { readJson, readShape } from '../document/read.ts'
import { PolicyError, type PolicyErrorCode } from '../error.ts'
import { keyName } from '../evaluation/approvals.ts'
import type { Policy } from '../evaluation/compile.ts'
import { isSignedBy, parseSpki } from '../keys.ts'
import { LIMITS } from '../limits.ts'
import { SHAPES, statementBytes, statementHash, type Statement } from './shapes.ts'
import { assertAssertion, assertion, isSignedByPasskey, type Assertion } from './webauthn.ts'

/** How a key has signed a statement. Exactly one field is present. */
export interface Proof {
  /** Of a key of the kind `key`: base64 of 64 bytes over the statement's bytes. */
  readonly signature?: string | undefined
  /** Of a passkey, whose challenge is the statement. */
  readonly passkey?: Assertion | undefined
}

/** Fields of {@link Proof} in wire formats. */
export const proofFields = {
  signature: z.string().max(100).optional(),
  passkey: assertion.optional(),
}

/** A statement with the proof of its signer. */
export interface SignedStatement extends Proof {
  readonly statement: Statement
}

const envelope = z.strictObject({
  statement: z.looseObject({
    kind: z.enum(Object.keys(SHAPES) as [Statement['kind'], ...Statement['kind'][]]),
  }),
  ...proofFields,
})

/**
 * Reads a signed statement from its JSON text. This checks its shape only.
 * @throws PolicyError `FORMAT` or `SHAPE`
 */
export function readSigned(text: string): SignedStatement {
  const { statement, ...proof } = readShape(envelope, readJson(text, LIMITS.statementBytes))
  try {
    return { statement: readShape(SHAPES[statement.kind], statement), ...proof }
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    const path = error.path === '' ? 'statement' : `statement.${error.path}`
    const message = error.message.slice(error.path === '' ? 0 : error.path.length + 2)
    throw new PolicyError(error.code, path, message)
  }
}

/** What verification needs besides the document. */
export interface StatementContext {
  /** Unix seconds. */
  readonly now_s: number
  /** Suspended keys, as `keyName` names them. */
  readonly suspended: ReadonlySet<string>
  /**
   * Returns whether the key has signed the statement. Absent: {@link isSignedByKey}. A signer node
   * passes a function that remembers results, because it verifies each approval several times. Its
   * proof has the form of the key's kind.
   */
  readonly isSigned?: (key: PersonKey, statement: Statement, proof: Proof) => boolean
}

/**
 * Returns whether a person's key has signed a statement. Of a passkey's assertion, this verifies the
 * signature only: {@link verifyStatement} checks what it has signed.
 */
export function isSignedByKey(
  key: PersonKey,
  statement: Statement,
  { signature, passkey }: Proof,
): boolean {
  if (key.kind === 'passkey') return passkey !== undefined && isSignedByPasskey(key, passkey)
  return (
    signature !== undefined &&
    isSignedBy(parseSpki(key.alg, key.spki, 'key'), statementBytes(statement), signature)
  )
}

const refuse = (code: PolicyErrorCode, path: string, message: string): never => {
  throw new PolicyError(code, path, message)
}

const isIn = (policy: Policy, group: string, person: string): boolean =>
  policy.groups.get(group)?.includes(person) === true

const isInOne = (policy: Policy, approvals: Approvals, person: string): boolean =>
  approvals.some(({ group }) => isIn(policy, group, person))

/** Statements that a suspended key may still sign: they only prevent something. */
const mayBeSuspended = (statement: Statement): boolean =>
  statement.kind === 'veto' ||
  statement.kind === 'stop' ||
  (statement.kind === 'approval' && statement.decision === 'reject')

/** Returns whether the document lets the signer make this statement. */
function isAllowed(policy: Policy, statement: Statement): boolean {
  const { change, stop, resume } = policy.document
  const { by } = statement
  switch (statement.kind) {
    case 'approval': // Which groups count depends on the act: `countApprovals`, `mayReject`.
    case 'possession':
      return true
    case 'change':
      return isInOne(policy, change.approvals, by)
    case 'veto':
      return isIn(policy, change.veto, by)
    case 'stop':
      return isIn(policy, stop.group, by)
    case 'resume':
      return isInOne(policy, resume.approvals, by)
    case 'suspend':
      return isIn(policy, stop.group, by) && statement.target.person !== by
    case 'revoke':
      return statement.target.person === by
  }
}

function assertPlace(policy: Policy, statement: Statement): void {
  const { document, hash } = policy
  for (const field of ['mode', 'workspace', 'nodes'] as const)
    if (statement[field] !== document[field])
      refuse('OTHER_WORKSPACE', field, 'is not that of the document')
  if (!('policy' in statement)) return
  if (statement.policy.hash !== hash || statement.policy.number !== document.number)
    refuse('OTHER_POLICY', 'policy', `is not the document ${document.number} with hash ${hash}`)
  if ('next' in statement && statement.next.number !== document.number + 1)
    refuse('OTHER_POLICY', 'next.number', `must be ${document.number + 1}`)
}

function assertTime(statement: Statement, now: number): void {
  if (!('expires' in statement)) return
  const { at, expires } = statement
  if (at > now + LIMITS.clockSkewS) refuse('NOT_YET', 'at', 'is in the future; check both clocks')
  if (expires <= at || expires > at + LIMITS.statementS)
    refuse('SHAPE', 'expires', `must be 1 to ${LIMITS.statementS} seconds after at`)
  if (now >= expires) refuse('EXPIRED', 'expires', 'the statement has expired')
}

/** Returns a person's key. @throws PolicyError `UNKNOWN_PERSON` or `UNKNOWN_KEY` */
function keyOf(policy: Policy, person: string, key: string, path = ''): PersonKey {
  const keys =
    policy.people.get(person) ??
    refuse('UNKNOWN_PERSON', `${path}${path ? 'person' : 'by'}`, `${person} is not in the document`)
  return keys.get(key) ?? refuse('UNKNOWN_KEY', `${path}key`, `${key} is not a key of ${person}`)
}

/**
 * Checks everything about a statement except its signature, and returns the key that must have
 * signed it.
 * @param policy the document in force; for a proof of possession the new document
 * @throws PolicyError with the code of the first rule that is not met
 */
export function assertStatement(
  policy: Policy,
  statement: Statement,
  { now_s, suspended }: StatementContext,
): PersonKey {
  assertPlace(policy, statement)
  assertTime(statement, now_s)
  const { by, key } = statement
  const found = keyOf(policy, by, key)
  if (suspended.has(keyName(by, key)) && !mayBeSuspended(statement))
    refuse('KEY_SUSPENDED', 'key', `${key} of ${by} is suspended`)
  if ('target' in statement) keyOf(policy, statement.target.person, statement.target.key, 'target.')
  if (!isAllowed(policy, statement))
    refuse('NOT_ALLOWED', 'by', `the document does not allow this statement of ${by}`)
  return found
}

/** Checks the form of a proof, and what a passkey has signed. @throws PolicyError */
function assertProof(key: PersonKey, statement: Statement, { signature, passkey }: Proof): void {
  const [field, other] = key.kind === 'key' ? ['signature', 'passkey'] : ['passkey', 'signature']
  const given = { signature, passkey } as Record<string, unknown>
  if (given[field] === undefined)
    refuse('SIGNATURE', field, `is missing: ${key.id} is a key of the kind ${key.kind}`)
  if (given[other] !== undefined)
    refuse('SIGNATURE', other, `must be absent: ${key.id} is a key of the kind ${key.kind}`)
  if (key.kind === 'passkey') assertAssertion(key, statement, passkey!)
}

/**
 * Checks that a key has signed a statement. This depends neither on the time nor on suspended keys.
 * @param key from {@link assertStatement}
 * @throws PolicyError `SIGNATURE`, or what a passkey's assertion lacks
 */
export function assertSigned(
  key: PersonKey,
  statement: Statement,
  proof: Proof,
  { isSigned = isSignedByKey }: Pick<StatementContext, 'isSigned'>,
): void {
  assertProof(key, statement, proof)
  if (!isSigned(key, statement, proof))
    refuse(
      'SIGNATURE',
      key.kind === 'key' ? 'signature' : 'passkey.signature',
      'does not verify with the key',
    )
}

/**
 * Verifies a statement.
 * @param policy the document in force; for a proof of possession the new document
 * @returns the hash of the statement, by which it is identified
 * @throws PolicyError with the code of the first rule that is not met
 */
export function verifyStatement(
  policy: Policy,
  { statement, ...proof }: SignedStatement,
  context: StatementContext,
): string {
  assertSigned(assertStatement(policy, statement, context), statement, proof, context)
  return statementHash(statement)
}
