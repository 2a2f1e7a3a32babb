import {
  checkDocument,
  compile,
  diff,
  documentHash,
  readSigned,
  statementHash,
  verifyStatement,
  type Policy,
  type StatementOf,
} from '@custody/policy'
import { ApproverError } from '../errors.ts'
import type { EmergencyView } from '../views.ts'
import { passkeysOf } from './approval.ts'
import { assertPlace, type Place } from './place.ts'
import { judged } from './judged.ts'

/** What the platform returns about the policy. Nothing of it is trusted. */
export interface PolicyState {
  document: unknown
  pending: { document: unknown; acts_at: string }[]
  stops: { hash: string }[]
}

/** Returns the document that the platform states to be in force. @throws ApproverError */
export function policyOf(place: Place, { document }: PolicyState): Policy {
  if (document === null || document === undefined)
    throw new ApproverError('DOCUMENT', 'the workspace has no policy in force')
  const checked = judged(() => checkDocument(document))
  assertPlace(place, 'the policy document', checked)
  return judged(() => compile(checked, place.registry))
}

/** Returns a signed stop after verifying it. @throws ApproverError */
function verifiedStop(policy: Policy, hash: string, signed: string): StatementOf<'stop'> {
  const value = judged(() => readSigned(signed))
  const { statement } = value
  if (statement.kind !== 'stop' || statementHash(statement) !== hash)
    throw new ApproverError('STOP', 'the platform returned another statement than the stop')
  // A stop stays in force after it has expired.
  judged(() => verifyStatement(policy, value, { now_s: statement.at, suspended: new Set() }))
  return statement
}

const scopeText = (subAccount: string | null): string =>
  subAccount === null ? 'the whole workspace' : `sub-account ${subAccount}`

/** Returns a stop as the page displays it. `signed`: null if the platform does not have its text. */
export function stopView(
  policy: Policy,
  hash: string,
  signed: string | null,
): EmergencyView['stops'][number] {
  if (signed === null)
    return {
      hash,
      text: 'A stop that was not sent over the API.',
      refusal: 'its signed text is in the file of "custody policy stop": end it with that command',
    }
  try {
    const { by, at, sub_account, reason } = verifiedStop(policy, hash, signed)
    const time = new Date(at * 1000).toISOString()
    return {
      hash,
      text: `${by} stopped ${scopeText(sub_account)} at ${time}. Reason: ${reason}`,
      refusal: null,
    }
  } catch (error) {
    if (!(error instanceof ApproverError)) throw error
    return { hash, text: 'A stop that could not be verified.', refusal: error.message }
  }
}

/** Returns the pending changes whose documents are for this installation. */
export function pendingViews(
  place: Place,
  policy: Policy,
  { pending }: PolicyState,
): EmergencyView['pending'] {
  return pending.map(({ document, acts_at }) => {
    const next = judged(() => checkDocument(document))
    assertPlace(place, 'the pending document', next)
    return {
      number: next.number,
      hash: documentHash(next),
      acts_at,
      differences: diff(policy.document, next).map(({ sentence }) => sentence),
    }
  })
}

/** Returns what a person may do in an emergency, by their groups. */
export function rightsOf(
  { document, groups }: Policy,
  person: string,
): Pick<EmergencyView, 'may_stop' | 'may_resume' | 'may_veto'> {
  const isIn = (group: string): boolean => groups.get(group)?.includes(person) === true
  return {
    may_stop: isIn(document.stop.group),
    may_resume: document.resume.approvals.some(({ group }) => isIn(group)),
    may_veto: isIn(document.change.veto),
  }
}

/** Returns the passkeys of a person that may sign. */
export const keysOf = (policy: Policy, person: string, origin: string) =>
  passkeysOf(policy.document, person, origin)
