import {
  currentDecisions,
  cut,
  readDetail,
  readFacts,
  verifyPayment,
  type ApprovedAction,
  type DetailedApproval,
  type ListedApproval,
  type Place,
  type VerifiedPayment,
} from '@custody/client/approvals/parts'
import {
  actSentences,
  formatUnits,
  quote,
  type ActFacts,
  type Passkey,
  type PolicyDocument,
} from '@custody/policy'
import { ApproverError } from '../errors.ts'
import type { ApprovalDetailView, ApprovalView, FactView } from '../views.ts'
import type { Documents } from './documents.ts'
import { judged } from './judged.ts'

/**
 * Returns the document with a hash.
 * @throws ApproverError `DOCUMENT` that states how to add it
 */
export function documentWith(
  documents: Documents,
  { number, hash }: { number: number; hash: string },
): PolicyDocument {
  const document = documents.find(hash)
  if (document) return document
  throw new ApproverError(
    'DOCUMENT',
    `policy document ${cut(number)} with hash ${cut(hash)} is missing here: open its file in "Sign a document" and keep it for approvals`,
  )
}

/**
 * Verifies everything about a transfer that a person is about to decide.
 * @throws ApproverError with the reason why it must not be signed
 */
export const verifyApproval = (
  place: Place,
  documents: Documents,
  id: string,
  detail: DetailedApproval,
): VerifiedPayment =>
  judged(() =>
    verifyPayment(
      place,
      () => documentWith(documents, detail.statement.policy),
      id,
      readDetail(detail),
    ),
  )

/** Returns the passkeys of a person that work at an origin. */
export const passkeysOf = ({ people }: PolicyDocument, person: string, origin: string): Passkey[] =>
  (people.find(({ id }) => id === person)?.keys ?? []).flatMap((key) =>
    key.kind === 'passkey' && key.origins.includes(origin) ? [key] : [],
  )

/** Returns facts as rows. @param planned fee that the platform states, which is not verified */
function factRows(action: ApprovedAction, facts: ActFacts, planned: unknown): FactView[] {
  const text = (name: string, value: string | null): FactView[] =>
    value === null ? [] : [{ name, value, kind: 'text' }]
  const units = (digits: string | null, decimals: number, asset: string) =>
    digits === null ? null : `${formatUnits(BigInt(digits), decimals)} ${asset}`
  const { asset, decimals, standing } = facts
  return [
    ...text('Action', action),
    ...text('Amount', units(facts.amount, decimals, asset)),
    { name: 'Destination', value: facts.to, kind: 'address' },
    ...text('Tag', facts.tag === null ? 'none' : quote(facts.tag)),
    ...text('Network', facts.network),
    ...(facts.contract === null
      ? text('Token', `none: ${asset} is the coin of ${facts.network}`)
      : [{ name: 'Token contract', value: facts.contract, kind: 'address' as const }]),
    ...text('Largest fee', units(facts.fee_max, facts.fee_decimals, facts.fee_asset)),
    ...text('Planned fee', plannedFee(facts, planned)),
    ...text('Sub-account', quote(facts.sub_account)),
    ...text('Resource', facts.resource),
    ...(standing === null
      ? []
      : [
          ...text('Smallest forward', units(standing.min_amount, decimals, asset)),
          ...text('Largest sum of 24 hours', units(standing.daily_cap, decimals, asset)),
          ...text('Ends', new Date(standing.ends_at * 1000).toISOString()),
        ]),
  ]
}

/** Returns the planned fee for display; null: none is stated. No approval signs it. */
const plannedFee = (facts: ActFacts, planned: unknown): string | null =>
  typeof planned === 'string' && /^[0-9]{1,78}$/.test(planned)
    ? `${formatUnits(BigInt(planned), facts.fee_decimals)} ${facts.fee_asset}, as the platform states; not signed`
    : null

/** Longest text of the platform that is displayed, in characters. */
const STATED_MAX = 200

/** Returns what the platform states besides the facts. No approval signs it. */
function statedRows({ memo, requested_by: by }: DetailedApproval): FactView[] {
  const stated = (name: string, text: unknown): FactView[] =>
    typeof text === 'string' && text !== ''
      ? [
          {
            name,
            value: `${quote(text.slice(0, STATED_MAX))}, as the platform states; not signed`,
            kind: 'text',
          },
        ]
      : []
  return [...stated('Memo', memo), ...stated('Requested by', by?.name ?? by?.api_key)]
}

const needsOf = ({ needs }: ListedApproval): ApprovalView['needs'] =>
  needs.map(({ group, k, have }) => ({ group, k, have }))

/** Returns an entry of a list. Facts of a transfer are verified; documents only in detail. */
export function listedView(place: Place, listed: ListedApproval): ApprovalView {
  const { id, state, expires_at } = listed
  const isChange = listed.action === 'policy_change'
  const view = { id, state, needs: needsOf(listed), expires_at, is_change: isChange }
  if (isChange)
    return {
      ...view,
      sentences: [`Policy document ${listed.change?.number} is proposed. Review what it changes.`],
      refusal: null,
    }
  try {
    const { action, facts } = judged(() => readFacts(place, listed.action, listed.facts))
    return { ...view, sentences: actSentences(action, facts), refusal: null }
  } catch (error) {
    if (!(error instanceof ApproverError)) throw error
    return { ...view, sentences: [], refusal: error.message }
  }
}

/** Person and page whose passkeys may sign, and the present time in Unix seconds. */
export interface Own<T = VerifiedPayment> {
  person: string
  origin: string
  now_s: number
  /** Stores what was verified, and returns its handle. */
  review: (verified: T) => string
}

/**
 * Returns a transfer with all facts, or with the reason why it must not be signed.
 * @param own person and origin whose passkeys may sign
 */
export function detailView(
  place: Place,
  documents: Documents,
  id: string,
  detail: DetailedApproval,
  own: Own,
): ApprovalDetailView {
  const view = {
    id,
    state: detail.state,
    needs: needsOf(detail),
    expires_at: detail.expires_at,
    is_change: false,
  }
  try {
    const verified = verifyApproval(place, documents, id, detail)
    const { document, facts, action, base } = verified
    return {
      ...view,
      sentences: actSentences(action, facts),
      facts: [...factRows(action, facts, detail.planned_fee), ...statedRows(detail)],
      policy: base.policy,
      decisions: judged(() => currentDecisions(verified, detail.have, own.now_s)).map(
        ({ by, decision }) => ({ by, decision }),
      ),
      keys: passkeysOf(document, own.person, own.origin).map(({ id: key, alg, credential }) => ({
        id: key,
        alg,
        credential,
      })),
      refusal: null,
      review: own.review(verified),
    }
  } catch (error) {
    if (!(error instanceof ApproverError)) throw error
    const refused = {
      review: null,
      sentences: [],
      facts: [],
      policy: null,
      decisions: [],
      keys: [],
    }
    return { ...view, ...refused, refusal: error.message }
  }
}
