import type { PolicyDocument } from '@custody/policy'
import { signersOf } from '../trust/signatures.ts'
import { readTrust } from '../trust/trust.ts'
import { documentsByHash } from './documents.ts'
import { refuse } from './errors.ts'
import { assertPlace, placeOf, type Place } from './place.ts'
import { assertSeconds } from './seconds.ts'
import type { PolicyQuestion, StatedPolicy } from './types.ts'

/** Nodes that must state a document. Two nodes sign together, so each pair contains one of these. */
const NODES_NEEDED = 2
const MAX_AGE_S = 300
/** More stops than a node can hold. */
const STOPS_MAX = 1000
/** Seconds by which the clock of a node may be ahead. */
const AHEAD_S = 60

interface Reference {
  number: number
  hash: string
}

/** Returns the bytes that a node signs: packages/signer/README.md, POST /policy. */
const statementText = (
  { mode, nodes, workspace }: Place,
  { number, hash }: Reference,
  { node, at, stops }: { node: number; at: number; stops?: readonly unknown[] },
): string =>
  `custody/policy-${stops === undefined ? 'in-force' : 'stops'}/v1\n${JSON.stringify({
    node,
    mode,
    nodes,
    workspace,
    number,
    hash,
    at,
    // JSON leaves an absent field out.
    stops,
  })}`

/** Returns a response of `GET /dac/v1/policy` as an object with any fields. */
const fieldsOf = (policy: unknown): Record<string, unknown> =>
  typeof policy === 'object' && policy !== null ? (policy as Record<string, unknown>) : {}

/** A statement of a node in the response. */
interface Word {
  node: number
  at: number
  fields: Record<string, unknown>
}

/**
 * Returns the statements of a response that are of the last minutes, and whether a node of the trust
 * file has signed a text.
 * @param policy response of `GET /dac/v1/policy`
 * @throws TypeError if a time in the question is not a whole number of seconds
 */
function recentWords({ policy, trust, now_s, max_age_s = MAX_AGE_S }: PolicyQuestion): {
  words: Word[]
  isSigned: (node: number, text: string, signature: unknown) => boolean
} {
  const now = now_s ?? Math.floor(Date.now() / 1000)
  assertSeconds('now_s', now)
  assertSeconds('max_age_s', max_age_s)
  const pinned = readTrust(trust)
  const { statements } = fieldsOf(policy)
  const words = (Array.isArray(statements) ? statements.slice(0, 9) : []).flatMap((each) => {
    const fields = fieldsOf(each)
    const { node, at } = fields
    if (typeof node !== 'number' || typeof at !== 'number' || !Number.isSafeInteger(at)) return []
    return at > now + AHEAD_S || at < now - max_age_s ? [] : [{ node, at, fields }]
  })
  const isSigned = (node: number, text: string, signature: unknown): boolean =>
    signersOf(pinned, text, [{ node, signature }]).length === 1
  return { words, isSigned }
}

/**
 * Returns the nodes of the trust file that state that a document is in force, each with the newest of
 * its times. Of the response it uses only the numbers of the nodes, their times and signatures.
 */
function statementsAbout(
  place: Place,
  reference: Reference,
  question: PolicyQuestion,
): Map<number, number> {
  const { words, isSigned } = recentWords(question)
  const times = new Map<number, number>()
  for (const { node, at, fields } of words) {
    if (isSigned(node, statementText(place, reference, { node, at }), fields['signature']))
      times.set(node, Math.max(at, times.get(node) ?? 0))
  }
  return times
}

/**
 * Returns the hashes of all stops that a node of the trust file states to apply under a document; null
 * if fewer than two nodes state which apply.
 */
export function statedStops(
  place: Place,
  reference: Reference,
  question: PolicyQuestion,
): ReadonlySet<string> | null {
  const { words, isSigned } = recentWords(question)
  const stated = words.flatMap(({ node, at, fields: { stops, stops_signature: signature } }) => {
    if (!Array.isArray(stops) || stops.length > STOPS_MAX) return []
    if (!stops.every((each) => typeof each === 'string')) return []
    const text = statementText(place, reference, { node, at, stops })
    return isSigned(node, text, signature) ? [{ node, stops }] : []
  })
  if (new Set(stated.map(({ node }) => node)).size < NODES_NEEDED) return null
  return new Set(stated.flatMap(({ stops }) => stops))
}

/** Returns the document of a response with its hash. @throws ApprovalError `DOCUMENT` */
function documentOf(policy: unknown): [hash: string, document: PolicyDocument] {
  const { document } = fieldsOf(policy)
  if (typeof document !== 'object' || document === null)
    return refuse('DOCUMENT', 'the platform returned no policy document')
  const [entry] = documentsByHash([document])
  return entry ?? refuse('DOCUMENT', 'the platform returned no policy document')
}

/**
 * Returns the document of a response if at least two nodes state it; otherwise null.
 * @throws ApprovalError `DOCUMENT`; TypeError if a time is not a whole number of seconds
 */
export function statedDocument(place: Place, question: PolicyQuestion): StatedPolicy | null {
  const [hash, document] = documentOf(question.policy)
  const times = statementsAbout(place, { number: document.number, hash }, question)
  if (times.size < NODES_NEEDED) return null
  const stated_by = [...times.keys()].sort((a, b) => a - b)
  return { number: document.number, hash, document, stated_by, at: Math.min(...times.values()) }
}

/**
 * Returns the document of a response, which at least two nodes state.
 * @throws ApprovalError `DOCUMENT`, `OTHER_PLACE` or `NOT_STATED`; VerificationError `TRUST`;
 *   TypeError if a time is not a whole number of seconds
 */
export async function requireStated(question: PolicyQuestion): Promise<StatedPolicy> {
  const place = await placeOf(question.trust)
  assertPlace(place, 'the policy document', documentOf(question.policy)[1])
  const { max_age_s: age = MAX_AGE_S } = question
  const reason = `fewer than two signer nodes of the trust file have stated in the last ${age} seconds that the document is in force`
  return statedDocument(place, question) ?? refuse('NOT_STATED', reason)
}
