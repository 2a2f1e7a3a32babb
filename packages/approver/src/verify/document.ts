import {
  compile,
  documentHash,
  governanceSentences,
  lint,
  PolicyError,
  quote,
  ruleSentence,
  verifyStatement,
  type Policy,
  type PolicyDocument,
  type PolicyFile,
  type SignedStatement,
  type StatementOf,
} from '@custody/policy'
import { createHash } from 'node:crypto'
import { ApproverError } from '../errors.ts'
import type { DocumentView } from '../views.ts'
import { passkeysOf } from './approval.ts'
import { assertPlace, surroundingsOf, type Place } from './place.ts'
import { judged } from './judged.ts'

/** Returns the lower-case hex SHA-256 of a public key's DER SubjectPublicKeyInfo. */
export const fingerprintOf = (spki: string): string =>
  createHash('sha256').update(Buffer.from(spki, 'base64')).digest('hex')

/** Returns the statement by which a person proves that they hold a key of a document. */
export function possessionStatement(
  { mode, workspace, nodes, number }: PolicyDocument,
  hash: string,
  by: string,
  key: string,
): StatementOf<'possession'> {
  return {
    kind: 'possession',
    v: 1,
    mode,
    workspace,
    nodes,
    by,
    key,
    policy: { number, hash },
  }
}

/** Returns why a document must not be signed; null if it is for this installation and valid. */
function refusalOf(place: Place, document: PolicyDocument, hasError: boolean): string | null {
  try {
    assertPlace(place, 'the document', document)
  } catch (error) {
    if (error instanceof ApproverError) return error.message
    throw error
  }
  return hasError ? 'the document has errors' : null
}

/** Returns the fault of the proof of a key; null if it is valid. */
function faultOf(
  policy: Policy | null,
  proof: SignedStatement | undefined,
  now_s: number,
): string | null {
  if (proof === undefined) return 'missing'
  if (policy === null) return 'not verified'
  try {
    verifyStatement(policy, proof, { now_s, suspended: new Set() })
    return null
  } catch (error) {
    if (error instanceof PolicyError) return error.message
    throw error
  }
}

function peopleOf(
  { document, possessions }: PolicyFile,
  policy: Policy | null,
  now_s: number,
): DocumentView['people'] {
  return document.people.map(({ id, name, keys }) => ({
    id,
    name: quote(name),
    keys: keys.map((key) => ({
      id: key.id,
      kind: key.kind,
      alg: key.alg,
      fingerprint: fingerprintOf(key.spki),
      proof: faultOf(
        policy,
        possessions.find(
          ({ statement }) =>
            statement.kind === 'possession' && statement.by === id && statement.key === key.id,
        ),
        now_s,
      ),
    })),
  }))
}

/**
 * Returns everything that a person compares before they sign a document.
 * @param own person and origin whose passkeys may sign
 */
export function documentView(
  place: Place,
  file: PolicyFile,
  own: { person: string; origin: string; now_s: number },
): DocumentView {
  const { document } = file
  const findings = lint(document, surroundingsOf(place))
  const hasError = findings.some(({ severity }) => severity === 'error')
  const policy = hasError ? null : judged(() => compile(document, place.registry))
  const { number, mode, workspace } = document
  return {
    number,
    hash: documentHash(document),
    mode,
    workspace,
    refusal: refusalOf(place, document, hasError),
    people: peopleOf(file, policy, own.now_s),
    groups: Object.entries(document.groups).map(([name, members]) => ({
      name,
      members: [...members],
    })),
    governance: governanceSentences(document),
    rules: document.rules.map(ruleSentence),
    findings: findings.map(({ severity, path, message }) => ({ severity, path, message })),
    keys: passkeysOf(document, own.person, own.origin).map(({ id, alg, credential }) => ({
      id,
      alg,
      credential,
    })),
  }
}

/** Returns the file with a proof in place of an earlier one of the same key. */
export const withPossession = (file: PolicyFile, proof: SignedStatement): PolicyFile => ({
  ...file,
  possessions: [
    ...file.possessions.filter(
      ({ statement }) =>
        statement.by !== proof.statement.by || statement.key !== proof.statement.key,
    ),
    proof,
  ],
})
