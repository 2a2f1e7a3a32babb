import {
  actFacts,
  compile,
  documentHash,
  PolicyError,
  type ActFacts,
  type Policy,
  type PolicyDocument,
  type StatementOf,
} from '@custody/policy'
import { parsedBy } from '@custody/request-auth/bodies'
import { compareRequest } from './compare-request.ts'
import { cut, refuse } from './errors.ts'
import { assertPlace, type Place } from './place.ts'
import type { DetailedApproval } from './shapes.ts'
import type { TokenClaims } from './token.ts'

/** Action of a transfer that people approve. */
export type ApprovedAction = 'transfer' | 'refund' | 'stake' | 'forward'
const ACTIONS: readonly string[] = ['transfer', 'refund', 'stake', 'forward']

/** A transfer whose facts, place and document were verified. */
export interface VerifiedPayment {
  document: PolicyDocument
  policy: Policy
  /** The signed statement without the fields of its signer. */
  base: Pick<StatementOf<'approval'>, 'mode' | 'workspace' | 'nodes' | 'policy' | 'id' | 'subject'>
  action: ApprovedAction
  facts: ActFacts
  /** What the request of the caller states. Its signature was not verified. */
  claims: TokenClaims
}

/**
 * Reads facts, and compares them with the registry of this package.
 * @throws ApprovalError `FACTS` or `REGISTRY`
 */
export function readFacts(
  place: Place,
  action: string,
  value: unknown,
): { action: ApprovedAction; facts: ActFacts } {
  if (!ACTIONS.includes(action)) refuse('FACTS', 'the action is not known here')
  const parsed = parsedBy(actFacts, value)
  if (!parsed?.success)
    return refuse('FACTS', 'the facts of the transfer have fields that are not known here')
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
    // The nodes sign no larger fee, and state exactly this one.
    ['largest fee', action === 'forward' ? null : place.feeCap(asset.network), facts.fee_max],
  ]
  for (const [field, own, theirs] of compared)
    if (own !== theirs)
      refuse(
        'REGISTRY',
        `the platform and this installation differ about ${facts.asset}: ${field} is ${cut(theirs)} there and ${String(own)} here. Do not approve the transfer: find the cause first`,
      )
  return { action: action as ApprovedAction, facts }
}

/**
 * Returns the compiled document with a hash.
 * @param find returns a document by its hash; undefined if it is not known
 * @throws ApprovalError `DOCUMENT` or `OTHER_PLACE`
 */
export function documentOf(
  place: Place,
  find: (hash: string) => PolicyDocument | undefined,
  { number, hash }: { number: number; hash: string },
): Policy {
  const document = find(hash)
  if (document === undefined)
    return refuse(
      'DOCUMENT',
      `policy document ${cut(number)} with hash ${cut(hash)} is missing here`,
    )
  assertPlace(place, 'the policy document', document)
  if (documentHash(document) !== hash || document.number !== number)
    refuse('DOCUMENT', 'the number of the policy document is not the one in the statement')
  try {
    return compile(document, place.registry)
  } catch (error) {
    if (error instanceof PolicyError) return refuse('DOCUMENT', error.message)
    throw error
  }
}

/**
 * Verifies everything that a person signs about a transfer: installation, document, facts and
 * request. It verifies neither the caller's signature nor the decisions of other people.
 * @param find returns a policy document by its hash; undefined if it is not known
 * @throws ApprovalError with the reason why it must not be signed
 */
export function verifyPayment(
  place: Place,
  find: (hash: string) => PolicyDocument | undefined,
  id: string,
  detail: DetailedApproval,
): VerifiedPayment {
  const { statement } = detail
  if (detail.id !== id || statement.id !== id)
    refuse('ID', 'the platform returned another transfer than the requested one')
  if (statement.v !== 1) refuse('SHAPE', 'the statement has a version that is not known here')
  assertPlace(place, 'the transfer', statement)
  const read = readFacts(place, statement.action, statement.facts)
  const policy = documentOf(place, find, statement.policy)
  const { subject } = statement
  const claims = compareRequest(place, detail.request, id, { ...read, subject })
  const { mode, workspace, nodes, number } = policy.document
  return {
    document: policy.document,
    policy,
    base: { mode, workspace, nodes, policy: { number, hash: policy.hash }, id, subject },
    ...read,
    claims,
  }
}

/** Returns the statement by which a person decides about a transfer. */
export const decisionStatement = (
  { base, action, facts }: Pick<VerifiedPayment, 'base' | 'action' | 'facts'>,
  {
    by,
    key,
    decision,
    at,
    expires,
  }: Pick<StatementOf<'approval'>, 'by' | 'key' | 'decision' | 'at' | 'expires'>,
): StatementOf<'approval'> =>
  ({
    kind: 'approval',
    v: 1,
    ...base,
    by,
    key,
    decision,
    at,
    expires,
    action,
    facts,
  }) as StatementOf<'approval'>
