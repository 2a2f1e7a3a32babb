import type { Trust } from '@custody/client'
import { statedDocument, statedStops } from '@custody/client/approvals/parts'
import {
  checkDocument,
  compile,
  diff,
  documentHash,
  quote,
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
  /** Statements of signer nodes about the document in force; absent in earlier versions. */
  statements?: unknown
}

/** Returns the document that the platform states to be in force. @throws ApproverError */
export function policyOf(place: Place, { document }: PolicyState): Policy {
  if (document === null || document === undefined)
    throw new ApproverError('DOCUMENT', 'the workspace has no policy in force')
  const checked = judged(() => checkDocument(document))
  assertPlace(place, 'the policy document', checked)
  return judged(() => compile(checked, place.registry))
}

/**
 * Returns why no stop can be ended under a document; null if two signer nodes of the trust file have
 * signed in the last minutes that they judge by it. Otherwise the platform could return an earlier
 * document, which contains keys that the people have removed.
 */
export function unstatedReason(
  place: Place,
  trust: Trust,
  state: PolicyState,
  now_s: number,
): string | null {
  const stated = judged(() => statedDocument(place, { policy: state, trust, now_s }))
  return stated === null
    ? 'fewer than two signer nodes of the trust file have stated in the last minutes that the policy document is in force'
    : null
}

/** Texts of stops that are displayed, and end, only with their file. */
const WITHOUT_TEXT = {
  text: 'A stop that was not sent over the API.',
  refusal: 'its signed text is in the file of "custody policy stop": end it with that command',
}

/**
 * Completes the platform's list of stops by what the signer nodes of the trust file state: it refuses a
 * stop that none of them has, and adds those that the platform does not return.
 * @param views the platform's list
 */
export function asStated(
  place: Place,
  trust: Trust,
  { state, policy, now_s }: { state: PolicyState; policy: Policy; now_s: number },
  views: EmergencyView['stops'],
): EmergencyView['stops'] {
  const reference = { number: policy.document.number, hash: policy.hash }
  const stated = judged(() => statedStops(place, reference, { policy: state, trust, now_s }))
  // Earlier versions of the nodes state no stops.
  if (stated === null) return views
  const listed = new Set(views.map(({ hash }) => hash))
  return [
    ...views.map((view) =>
      stated.has(view.hash)
        ? view
        : { ...view, refusal: 'no signer node of the trust file states that this stop applies' },
    ),
    ...[...stated]
      .filter((hash) => !listed.has(hash))
      .map((hash) => ({
        hash,
        ...WITHOUT_TEXT,
        text: 'A stop that the platform does not return.',
      })),
  ]
}

/**
 * Returns a signed stop after verifying it. A stop stays in force after its statement has expired, so
 * it is verified as of its last valid second. A time in the future is refused, because the end of
 * such a stop would make the signer nodes ignore all stops until that time.
 * @throws ApproverError
 */
function verifiedStop(
  policy: Policy,
  hash: string,
  signed: string,
  now_s: number,
): StatementOf<'stop'> {
  const value = judged(() => readSigned(signed))
  const { statement } = value
  if (statement.kind !== 'stop' || statementHash(statement) !== hash)
    throw new ApproverError('STOP', 'the platform returned another statement than the stop')
  const valid_s = Math.min(now_s, statement.expires - 1)
  judged(() => verifyStatement(policy, value, { now_s: valid_s, suspended: new Set() }))
  return statement
}

const scopeText = (subAccount: string | null): string =>
  subAccount === null ? 'the whole workspace' : `sub-account ${quote(subAccount)}`

/**
 * Returns a stop as the page displays it.
 * @param signed null if the platform does not have its text
 */
export function stopView(
  policy: Policy,
  hash: string,
  signed: string | null,
  now_s: number,
): EmergencyView['stops'][number] {
  if (signed === null) return { hash, ...WITHOUT_TEXT }
  try {
    const { by, at, sub_account, reason } = verifiedStop(policy, hash, signed, now_s)
    const time = new Date(at * 1000).toISOString()
    return {
      hash,
      text: `${by} stopped ${scopeText(sub_account)} at ${time}. Reason: ${quote(reason)}.`,
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
