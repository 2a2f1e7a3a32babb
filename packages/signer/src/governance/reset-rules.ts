import {
  canonicalText,
  compile,
  documentHash,
  lint,
  PolicyError,
  readDocument,
  readSigned,
  type Governance,
  type Place,
  type Policy,
  type PolicyErrorCode,
  type PolicyRegistry,
  type Verify,
} from '@custody/policy'
import type { SignedResetWord } from './word.ts'

/**
 * Time in seconds between the statement of the last of three operators and the effect of a reset, in
 * every mode: seven days. In this time the people of the policy can end the reset.
 */
export const RESET_WAIT_S = 7 * 24 * 60 * 60

/** The document by which this node's operator wants to replace the one in force. */
export interface Reset {
  readonly hash: string
  readonly number: number
  /** Hash of the document in force that it replaces. */
  readonly previous: string
  readonly document: string
  readonly possessions: readonly string[]
  /** Unix seconds at which this node's operator has entered it. */
  readonly given_at_s: number
  /** When this node had the statements of all three nodes; null: some are missing. Unix seconds. */
  readonly complete: { readonly at_s: number; readonly words: readonly SignedResetWord[] } | null
}

/** The document of a reset as an operator enters it, or as a peer has it in force. */
export interface ResetBody {
  readonly workspace: string
  readonly document: string
  readonly possessions: readonly string[]
}

interface Rules {
  readonly registry: PolicyRegistry
  readonly place: Omit<Place, 'workspace'>
  readonly verify: Verify
}

const refuse = (code: PolicyErrorCode, path: string, message: string): never => {
  throw new PolicyError(code, path, message)
}

/**
 * Returns the reset that an operator enters. Like a first document, it contains a proof of possession
 * by each of its keys, and it names the document in force as its predecessor.
 * @param now_s Unix seconds
 * @throws PolicyError the first fault; `PENDING` while a change is pending, which ends resets
 */
export function resetOf(
  governance: Governance,
  body: ResetBody,
  rules: Rules,
  now_s: number,
): Reset {
  const { policy, next } = governance
  if (next !== null)
    refuse(
      'PENDING',
      '',
      `The change to policy ${next.policy.document.number} is pending, so the policy can still be changed by its people`,
    )
  const { document, hash } = resetPolicy(governance, body, rules, now_s)
  for (const field of ['mode', 'nodes'] as const)
    if (document[field] !== rules.place[field])
      refuse('OTHER_WORKSPACE', field, 'is not that of this installation')
  // Only errors count, and a node does not know the origins of the control panel.
  const unknown = { panelOrigins: null, enrolled: null }
  const context = { registry: rules.registry, previous: policy.document, ...unknown }
  const fault = lint(document, context).find(({ severity }) => severity === 'error')
  if (fault) throw new PolicyError('LINT', fault.path, fault.message)
  for (const { id, keys } of document.people)
    for (const { id: key, spki } of keys)
      if (governance.revoked.has(spki))
        refuse('KEY_REVOKED', 'people', `${key} of ${id} is revoked`)
  return {
    hash,
    number: document.number,
    previous: policy.hash,
    document: canonicalText(document),
    possessions: body.possessions,
    given_at_s: now_s,
    complete: null,
  }
}

/**
 * Returns the policy of a reset, which follows the document in force.
 * @param now_s Unix seconds
 * @throws PolicyError `OTHER_POLICY` if it follows another document; `POSSESSION`
 */
export function resetPolicy(
  { policy }: Governance,
  { workspace, document: text, possessions }: ResetBody,
  { registry, verify }: Pick<Rules, 'registry' | 'verify'>,
  now_s: number,
): Policy {
  const document = readDocument(text)
  if (document.workspace !== workspace)
    refuse('OTHER_WORKSPACE', 'workspace', `is ${document.workspace}, not ${workspace}`)
  const { number } = policy.document
  if (document.number !== number + 1)
    refuse('OTHER_POLICY', 'number', `must be ${number + 1}, because policy ${number} is in force`)
  if (document.previous !== policy.hash)
    refuse('OTHER_POLICY', 'previous', `must be ${policy.hash}, the hash of policy ${number}`)
  const next = compile(document, registry)
  const proofs = possessions.map(readSigned)
  for (const [person, keys] of next.people)
    for (const { id } of keys.values()) {
      const proof = proofs.find(
        ({ statement: { kind, by, key } }) => kind === 'possession' && by === person && key === id,
      )
      if (!proof)
        return refuse('POSSESSION', 'possessions', `the proof of ${id} of ${person} is missing`)
      verify(next, proof, { now_s, suspended: new Set() })
    }
  return next
}

/** Returns whether the seven days of a reset have passed. @param now_s Unix seconds */
export const isReady = ({ complete }: Reset, now_s: number): boolean =>
  complete !== null && now_s >= complete.at_s + RESET_WAIT_S

/** Returns the hash of a document's text. @throws PolicyError */
export const hashOfText = (text: string): string => documentHash(readDocument(text))
