import { distinct, type GivenDecision, type ListedApproval } from '@custody/client/approvals/parts'
import {
  checkDocument,
  compile,
  diff,
  documentHash,
  lint,
  PolicyError,
  ruleSentence,
  verifyStatement,
  type Passkey,
  type Policy,
  type PolicyDocument,
  type Statement,
} from '@custody/policy'
import { ApproverError } from '../errors.ts'
import type { ChangeView, KeyView } from '../views.ts'
import { documentWith, passkeysOf, type Own } from './approval.ts'
import { possessionStatement } from './document.ts'
import type { Documents } from './documents.ts'
import { assertPlace, surroundingsOf, type Place } from './place.ts'
import { judged } from './judged.ts'

/** What the platform returns of a policy change. Nothing of it is trusted. */
export interface DetailedChange {
  id: string
  state: string
  document: unknown
  statement: {
    v: number
    mode: string
    workspace: string
    nodes: string
    policy: { number: number; hash: string }
    next: { number: number; hash: string }
    acts_at: number
  }
  needs: ListedApproval['needs']
  missing: { person: string; key: string }[]
  have: GivenDecision[]
  expires_at: string
}

/** A change whose two documents were verified. */
export interface VerifiedChange {
  inForce: Policy
  next: Policy
  /** Unix seconds. */
  acts_at: number
}

const refuse = (code: string, message: string): never => {
  throw new ApproverError(code, message)
}

/** Returns the document in force that a change names. @throws ApproverError `DOCUMENT` */
function inForceOf(
  place: Place,
  documents: Documents,
  { policy }: DetailedChange['statement'],
): PolicyDocument {
  const document = documentWith(documents, policy)
  if (document.number !== policy.number)
    refuse('DOCUMENT', 'the number of the policy document is not the one in the statement')
  assertPlace(place, 'the policy document in force', document)
  return document
}

/**
 * Verifies both documents of a change.
 * @throws ApproverError with the reason why it must not be signed
 */
export function verifyChange(
  place: Place,
  documents: Documents,
  id: string,
  detail: DetailedChange,
): VerifiedChange {
  const { statement } = detail
  if (detail.id !== id) refuse('ID', 'the platform returned another change than the requested one')
  if (statement.v !== 1) refuse('VERSION', 'the statement has a version that this page cannot read')
  if (!Number.isSafeInteger(statement.acts_at) || statement.acts_at < 0)
    refuse('VERSION', 'the time of the change is not a whole number of seconds')
  assertPlace(place, 'the change', statement)
  const previous = inForceOf(place, documents, statement)
  const document = judged(() => checkDocument(detail.document))
  assertPlace(place, 'the proposed document', document)
  const { next } = statement
  if (documentHash(document) !== next.hash || document.number !== next.number)
    refuse('DOCUMENT', 'the proposed document does not have the hash and number in the statement')
  const fault = lint(document, { ...surroundingsOf(place), previous }).find(
    ({ severity }) => severity === 'error',
  )
  if (fault)
    refuse('DOCUMENT', `the proposed document has an error: ${fault.path}: ${fault.message}`)
  return {
    inForce: judged(() => compile(previous, place.registry)),
    next: judged(() => compile(document, place.registry)),
    acts_at: statement.acts_at,
  }
}

/** What a person does with a change. `prove`: they hold a key that it adds. */
export const CHOICES = ['approve', 'reject', 'prove'] as const
export type Choice = (typeof CHOICES)[number]

/** Returns the statement that a person signs about a change. */
export function changeStatement(
  { inForce, next, acts_at }: VerifiedChange,
  choice: Choice,
  signer: { by: string; key: string; at: number; expires: number },
): Statement {
  const { by, key } = signer
  if (choice === 'prove') return possessionStatement(next.document, next.hash, by, key)
  const { mode, workspace, nodes, number } = inForce.document
  const fields = {
    v: 1 as const,
    mode,
    workspace,
    nodes,
    ...signer,
    policy: { number, hash: inForce.hash },
    next: { number: next.document.number, hash: next.hash },
  }
  return choice === 'approve' ? { kind: 'change', ...fields, acts_at } : { kind: 'veto', ...fields }
}

/** Returns the passkeys of a person that only the proposed document contains. */
export const newPasskeysOf = (
  { inForce, next }: VerifiedChange,
  own: { person: string; origin: string },
): Passkey[] => {
  const known = new Set(
    [...inForce.people.values()].flatMap((keys) => [...keys.values()].map(({ spki }) => spki)),
  )
  return passkeysOf(next.document, own.person, own.origin).filter(({ spki }) => !known.has(spki))
}

/** Returns decisions whose signatures verify. */
const verifiedDecisions = (
  verified: VerifiedChange,
  decisions: readonly GivenDecision[],
  now_s: number,
): ChangeView['decisions'] =>
  judged(() => distinct(decisions)).flatMap(
    ({ by, key, decision, at, expires, signature, passkey }) => {
      const statement = changeStatement(verified, decision, { by, key, at, expires })
      try {
        const proof = passkey ? { passkey } : { signature }
        verifyStatement(verified.inForce, { statement, ...proof }, { now_s, suspended: new Set() })
        return [{ by, decision }]
      } catch (error) {
        if (error instanceof PolicyError) return []
        throw error
      }
    },
  )

const keyViews = (keys: readonly Passkey[]): KeyView[] =>
  keys.map(({ id, alg, credential }) => ({ id, alg, credential }))

/** Returns a change with what it changes, or with the reason why it must not be signed. */
export function changeView(
  place: Place,
  documents: Documents,
  id: string,
  detail: DetailedChange,
  own: Own<VerifiedChange>,
): ChangeView {
  const { state, expires_at, missing } = detail
  const needs = detail.needs.map(({ group, k, have }) => ({ group, k, have }))
  const view = { id, state, needs, expires_at }
  try {
    const verified = verifyChange(place, documents, id, detail)
    const { inForce, next, acts_at } = verified
    const isMissing = ({ id: key }: Passkey) =>
      missing.some((each) => each.person === own.person && each.key === key)
    const findings = lint(next.document, {
      ...surroundingsOf(place),
      previous: inForce.document,
    })
    return {
      ...view,
      number: next.document.number,
      hash: next.hash,
      previous: { number: inForce.document.number, hash: inForce.hash },
      acts_at: new Date(acts_at * 1000).toISOString(),
      differences: diff(inForce.document, next.document).map(({ tendency, sentence }) => ({
        tendency,
        sentence,
      })),
      warnings: findings.map(({ path, message }) => `${path}: ${message}`),
      rules: next.document.rules.map(ruleSentence),
      decisions: verifiedDecisions(verified, detail.have, own.now_s),
      keys: keyViews(passkeysOf(inForce.document, own.person, own.origin)),
      new_keys: keyViews(newPasskeysOf(verified, own).filter(isMissing)),
      refusal: null,
      review: own.review(verified),
    }
  } catch (error) {
    if (!(error instanceof ApproverError)) throw error
    const refused = { review: null, differences: [], warnings: [], rules: [], decisions: [] }
    const none = { number: null, hash: null, previous: null, acts_at: null }
    return { ...view, ...refused, ...none, keys: [], new_keys: [], refusal: error.message }
  }
}
