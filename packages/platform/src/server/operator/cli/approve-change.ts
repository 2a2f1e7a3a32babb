import {
  diff,
  documentHash,
  readDocument,
  readSigned,
  statementSentences,
  type PolicyDocument,
} from '@custody/policy'
import { printNotice } from '@custody/chains/terminal'
import { OperatorError } from '../command.ts'
import { callPlatform } from '../connect.ts'
import { judged, readSigningKey } from '../policy/files.ts'
import { APPROVAL_S, nowS, signerOf, signStatement, type Signer } from '../policy/statements.ts'
import { needsLine } from '../policy/text.ts'
import { need, type Outcome, type Values } from './typed.ts'

/** A policy change as the platform returns it. Nothing of it is trusted. */
interface ShownChange {
  id: string
  statement: {
    policy: { number: number; hash: string }
    next: { number: number; hash: string }
    acts_at: number
  }
  /** Document in force as a node returned it, and the proposed one, as JSON texts. */
  document: string | null
  next: string
}

interface Result {
  id: string
  state: string
  number: number
  needs: { group: string; k: number; have: number }[]
  missing: { person: string; key: string }[]
  acts_at: string
  reason: string | null
}

/** Returns both documents after comparing their hashes with the statement. @throws OperatorError */
function documentsOf({ statement, document, next }: ShownChange): {
  inForce: PolicyDocument
  proposed: PolicyDocument
} {
  if (document === null)
    throw new OperatorError('no signer node returned the policy document: try again later')
  const inForce = judged('document', () => readDocument(document))
  const proposed = judged('document', () => readDocument(next))
  if (documentHash(inForce) !== statement.policy.hash)
    throw new OperatorError(
      `ID: the change is for policy ${statement.policy.number} with hash ${statement.policy.hash}, which is not in force`,
    )
  if (documentHash(proposed) !== statement.next.hash || proposed.workspace !== inForce.workspace)
    throw new OperatorError('ID: the proposed document does not have the hash in the statement')
  return { inForce, proposed }
}

/** Returns whether a person's key is new in the proposed document. */
function isNewKey(inForce: PolicyDocument, values: Values): boolean {
  const { spki } = readSigningKey(need(values, 'key'))
  return !inForce.people.some(({ keys }) => keys.some((each) => each.spki === spki))
}

/** Signs an approval, a rejection, or the proof of a new key. */
async function signed(
  home: string,
  shown: ShownChange,
  { inForce, proposed }: { inForce: PolicyDocument; proposed: PolicyDocument },
  values: Values,
): Promise<Result> {
  const { id, statement } = shown
  const sign = (document: PolicyDocument, signer: Signer, fields: object) => {
    const value = readSigned(signStatement(document, signer, fields as never))
    printNotice(statementSentences(value.statement))
    return value.signature
  }
  if (isNewKey(inForce, values)) {
    if (values['reject'] !== undefined)
      throw new OperatorError('--reject: only a key of the policy in force can reject a change')
    const signer = signerOf(proposed, values)
    const signature = sign(proposed, signer, { kind: 'possession', policy: statement.next })
    const possession = { by: signer.person, key: signer.id, signature }
    return (await callPlatform(home, 'approval prove', { id, possession })) as unknown as Result
  }
  const signer = signerOf(inForce, values)
  const decision = values['reject'] === undefined ? 'approve' : 'reject'
  const at = nowS()
  const { policy, next, acts_at } = statement
  const times = { at, expires: at + APPROVAL_S, policy, next }
  const signature = sign(
    inForce,
    signer,
    decision === 'approve' ? { kind: 'change', ...times, acts_at } : { kind: 'veto', ...times },
  )
  const carried = { id, decision, by: signer.person, key: signer.id, at, expires: times.expires }
  return (await callPlatform(home, 'approval give', {
    id,
    decision: { ...carried, signature },
  })) as unknown as Result
}

/** Prints what a policy change changes, signs a person's decision, and sends it to the platform. */
export async function approveChange(
  home: string,
  shown: ShownChange,
  values: Values,
): Promise<Outcome> {
  const documents = documentsOf(shown)
  printNotice(diff(documents.inForce, documents.proposed).map(({ sentence }) => sentence))
  const result = await signed(home, shown, documents, values)
  return { result: { ...result }, text: lineOf(result) }
}

/** Returns what a change waits for, as a sentence. */
export function lineOf(result: Result): string {
  const { id, state, number, needs, missing, acts_at, reason } = result
  const what = `policy change ${id} (policy ${number})`
  const because = reason === null ? '' : `: ${reason}`
  if (state === 'open') {
    const proofs = missing.map(({ person, key }) => `${key} of ${person}`).join(', ')
    const without = proofs === '' ? '' : `; proofs of possession are missing: ${proofs}`
    return `${what} waits; approvals so far: ${needsLine(needs)}${without}`
  }
  if (state === 'approved') return `${what} is complete and is presented to the nodes${because}`
  if (state === 'held') return `${what} is held by the nodes and comes into force at ${acts_at}`
  return state === 'in_force' ? `${what} is in force` : `${what} is ${state}${because}`
}
