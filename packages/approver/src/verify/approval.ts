import {
  actFacts,
  actSentences,
  compile,
  documentHash,
  formatUnits,
  PolicyError,
  verifyStatement,
  type ActFacts,
  type Passkey,
  type Policy,
  type PolicyDocument,
  type SignedStatement,
  type StatementOf,
} from '@custody/policy'
import { ApproverError } from '../errors.ts'
import type { ApprovalDetailView, ApprovalView, FactView } from '../views.ts'
import type { Documents } from './documents.ts'
import { assertPlace, type Place } from './place.ts'
import { judged } from './policy-file.ts'
import { compareRequest, type CallerRequest } from './request.ts'

/** Action of a transfer that people approve. */
type Action = 'transfer' | 'refund' | 'stake' | 'forward'
const ACTIONS: readonly string[] = ['transfer', 'refund', 'stake', 'forward']

/** A decision as the platform returns it. */
export interface GivenDecision {
  by: string
  key: string
  decision: 'approve' | 'reject'
  at: number
  expires: number
  signature?: string | undefined
  passkey?: SignedStatement['passkey']
}

/** What the platform returns in lists. Nothing of it is trusted. */
export interface ListedApproval {
  id: string
  state: string
  action: string
  facts: unknown
  /** Of a policy change. */
  change?: { number: number; hash: string } | undefined
  needs: { group: string; k: number; have: number }[]
  have: GivenDecision[]
  expires_at: string
}

/** What the platform returns of one transfer. Nothing of it is trusted. */
export interface DetailedApproval extends ListedApproval {
  statement: {
    v: number
    mode: string
    workspace: string
    nodes: string
    policy: { number: number; hash: string }
    id: string
    subject: string
    action: string
    facts: unknown
  }
  request: CallerRequest
}

/** A transfer whose facts, place and document were verified. */
export interface VerifiedApproval {
  document: PolicyDocument
  policy: Policy
  /** The signed statement without the fields of its signer. */
  base: Pick<StatementOf<'approval'>, 'mode' | 'workspace' | 'nodes' | 'policy' | 'id' | 'subject'>
  action: Action
  facts: ActFacts
  isCompared: boolean
}

const refuse = (code: string, message: string): never => {
  throw new ApproverError(code, message)
}

/**
 * Reads facts, and compares them with the registry of this installation.
 * @throws ApproverError `FACTS` or `REGISTRY`
 */
function readFacts(
  place: Place,
  action: string,
  value: unknown,
): { action: Action; facts: ActFacts } {
  if (!ACTIONS.includes(action)) refuse('FACTS', 'the action is not known to this page')
  const parsed = actFacts.safeParse(value)
  if (!parsed.success)
    return refuse('FACTS', 'the facts of the transfer have fields that this page does not know')
  const facts = parsed.data
  if (facts.sub_account !== place.sub_account)
    refuse('FACTS', `the transfer is of another sub-account than ${place.sub_account}`)
  const { registry } = place
  const asset = registry.asset(facts.asset)
  const fee = registry.asset(facts.fee_asset)
  if (asset === undefined || fee === undefined)
    return refuse(
      'REGISTRY',
      `the asset ${facts.asset} is not known to this installation: update it before you approve`,
    )
  const compared: [string, unknown, unknown][] = [
    ['network', asset.network, facts.network],
    ['contract', asset.contract, facts.contract],
    ['decimals', asset.decimals, facts.decimals],
    ['fee asset', asset.fee_asset, facts.fee_asset],
    ['decimals of the fee asset', fee.decimals, facts.fee_decimals],
    ['destination', registry.canonicalAddress(facts.network, facts.to), facts.to],
  ]
  for (const [field, own, theirs] of compared)
    if (own !== theirs)
      refuse(
        'REGISTRY',
        `the platform and this installation differ about ${facts.asset}: ${field} is ${String(theirs)} there and ${String(own)} here. Do not approve the transfer: find the cause first`,
      )
  return { action: action as Action, facts }
}

/**
 * Verifies everything about a transfer that a person is about to decide.
 * @throws ApproverError with the reason why it must not be signed
 */
export function verifyApproval(
  place: Place,
  documents: Documents,
  id: string,
  detail: DetailedApproval,
): VerifiedApproval {
  const { statement } = detail
  if (detail.id !== id || statement.id !== id)
    refuse('ID', 'the platform returned another transfer than the requested one')
  if (statement.v !== 1) refuse('VERSION', 'the statement has a version that this page cannot read')
  assertPlace(place, 'the transfer', statement)
  const { action, facts } = readFacts(place, statement.action, statement.facts)
  const document = documents.find(statement.policy.hash)
  if (document === undefined)
    return refuse(
      'DOCUMENT',
      `policy document ${statement.policy.number} with hash ${statement.policy.hash} is missing here: open its file in "Sign a document" and keep it for approvals`,
    )
  assertPlace(place, 'the policy document', document)
  if (
    documentHash(document) !== statement.policy.hash ||
    document.number !== statement.policy.number
  )
    refuse('DOCUMENT', 'the number of the policy document is not the one in the statement')
  const isCompared = compareRequest(place, detail.request, id, { action, facts })
  const { mode, workspace, nodes, number } = document
  return {
    document,
    policy: judged(() => compile(document, place.registry)),
    base: {
      mode,
      workspace,
      nodes,
      policy: { number, hash: statement.policy.hash },
      id,
      subject: statement.subject,
    },
    action,
    facts,
    isCompared,
  }
}

/** Returns the statement by which a person decides about a transfer. */
export const decisionStatement = (
  { base, action, facts }: VerifiedApproval,
  fields: Pick<StatementOf<'approval'>, 'by' | 'key' | 'decision' | 'at' | 'expires'>,
): StatementOf<'approval'> =>
  ({ kind: 'approval', v: 1, ...base, ...fields, action, facts }) as StatementOf<'approval'>

/** Returns the passkeys of a person that work at an origin. */
export const passkeysOf = ({ people }: PolicyDocument, person: string, origin: string): Passkey[] =>
  (people.find(({ id }) => id === person)?.keys ?? []).flatMap((key) =>
    key.kind === 'passkey' && key.origins.includes(origin) ? [key] : [],
  )

/** Returns decisions whose signatures verify. */
function verifiedDecisions(
  verified: VerifiedApproval,
  decisions: readonly GivenDecision[],
  now_s: number,
): ApprovalDetailView['decisions'] {
  return decisions.flatMap(({ by, key, decision, at, expires, signature, passkey }) => {
    const statement = decisionStatement(verified, { by, key, decision, at, expires })
    try {
      const proof = passkey ? { passkey } : { signature }
      verifyStatement(verified.policy, { statement, ...proof }, { now_s, suspended: new Set() })
      return [{ by, decision }]
    } catch (error) {
      if (error instanceof PolicyError) return []
      throw error
    }
  })
}

/** Returns facts as rows. */
function factRows(action: Action, facts: ActFacts): FactView[] {
  const text = (name: string, value: string | null): FactView[] =>
    value === null ? [] : [{ name, value, kind: 'text' }]
  const units = (digits: string | null, decimals: number, asset: string) =>
    digits === null ? null : `${formatUnits(BigInt(digits), decimals)} ${asset}`
  const { asset, decimals, standing } = facts
  return [
    ...text('Action', action),
    ...text('Amount', units(facts.amount, decimals, asset)),
    { name: 'Destination', value: facts.to, kind: 'address' },
    ...text('Tag', facts.tag ?? 'none'),
    ...text('Network', facts.network),
    ...(facts.contract === null
      ? text('Token', `none: ${asset} is the coin of ${facts.network}`)
      : [{ name: 'Token contract', value: facts.contract, kind: 'address' as const }]),
    ...text('Largest fee', units(facts.fee_max, facts.fee_decimals, facts.fee_asset)),
    ...text('Sub-account', facts.sub_account),
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
    const { action, facts } = readFacts(place, listed.action, listed.facts)
    return { ...view, sentences: actSentences(action, facts), refusal: null }
  } catch (error) {
    if (!(error instanceof ApproverError)) throw error
    return { ...view, sentences: [], refusal: error.message }
  }
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
  own: { person: string; origin: string; now_s: number },
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
    const { document, facts, action, base, isCompared } = verified
    return {
      ...view,
      sentences: actSentences(action, facts),
      facts: factRows(action, facts),
      is_compared: isCompared,
      policy: base.policy,
      decisions: verifiedDecisions(verified, detail.have, own.now_s),
      keys: passkeysOf(document, own.person, own.origin).map(({ id: key, alg, credential }) => ({
        id: key,
        alg,
        credential,
      })),
      refusal: null,
    }
  } catch (error) {
    if (!(error instanceof ApproverError)) throw error
    const refused = { sentences: [], facts: [], policy: null, decisions: [], keys: [] }
    return { ...view, ...refused, is_compared: false, refusal: error.message }
  }
}
