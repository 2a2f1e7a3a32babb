import {
  documentHash,
  keyName,
  PolicyError,
  readDocument,
  type PolicyDocument,
} from '@custody/policy'
import { networkMode } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { KEY_MAX } from '../../core/bounds.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import { agreedOf, askAll, disagreement } from './node-answers.ts'

const hash = z.string().regex(/^[0-9a-f]{64}$/)
const seconds = z.int().min(0)

const pendingShape = z.object({
  number: z.int(),
  hash,
  document: z.string(),
  acts_at: seconds,
  vetoed_by: z.string().max(64).nullable(),
})
const stopShape = z.object({
  hash,
  sub_account: z.string().max(200).nullable(),
  by: z.string().max(64),
  at: seconds,
})
/** A reset, as a node returns it: statements of operators that it knows. */
const resetShape = z.object({
  given_by: z.array(z.object({ node: z.int().min(1).max(3), hash })).max(1000),
  hash: hash.nullable(),
  acts_at: seconds.nullable(),
})
const identitySignature = z
  .string()
  .max(KEY_MAX)
  .regex(/^[0-9a-f]{128}$/)
/** A node's signed statements about the document in force and the stops. The caller verifies them. */
const inForceShape = z.object({
  node: z.int().min(1).max(3),
  mode: networkMode,
  nodes: hash,
  workspace: z.string().max(200),
  number: z.int().min(1),
  hash,
  at: seconds,
  signature: identitySignature,
  /** Absent in earlier versions of the node, like its signature. */
  stops: z.array(hash).max(1000).optional(),
  stops_signature: identitySignature.optional(),
})
type Statement = z.output<typeof inForceShape>

/** Response of a node to `POST /policy` (packages/signer/README.md). */
const viewShape = z.object({
  number: z.int().nullable(),
  hash: hash.nullable(),
  document: z.string().nullable(),
  next: pendingShape.nullish(),
  stops: z.array(stopShape).max(1000).optional(),
  /** Absent in earlier versions of the node. */
  reset: resetShape.nullish(),
  /** Absent in earlier versions of the node; null: it would refuse to sign. */
  in_force: inForceShape.nullish(),
  suspensions: z
    .array(z.object({ target: z.object({ person: z.string().max(64), key: z.string().max(64) }) }))
    .optional(),
  /** Public keys (SPKI). */
  revoked: z.array(z.string().max(500)).optional(),
})
type View = z.output<typeof viewShape>
type Pending = z.output<typeof pendingShape>

/** A document that nodes hold as pending. */
type Proposal = Omit<Pending, 'document'> & { document: PolicyDocument; held: number[] }

/**
 * A document by which operators want to replace the one in force. `given_by`: nodes whose operators
 * have entered it; `acts_at`: Unix seconds from which it is in force, null while one is missing.
 */
interface Reset {
  hash: string
  given_by: number[]
  acts_at: number | null
}

/** The policy of a workspace, as at least two nodes have it in force. */
export interface PolicyInForce {
  number: number
  hash: string
  document: PolicyDocument
  /** Nodes that have it in force. */
  held: number[]
  /** The signed statements of these nodes. */
  statements: Statement[]
  pending: Proposal[]
  /** Stops at any of these nodes. `at`: Unix seconds. */
  stops: z.output<typeof stopShape>[]
  resets: Reset[]
  /** Suspended and revoked keys at any of these nodes, as `keyName` names them. */
  blocked: ReadonlySet<string>
  /** Suspended keys at any of these nodes, as `keyName` names them. */
  suspended: ReadonlySet<string>
}

/** Reads a document that a node returned; null if its text does not have the hash. */
export function documentOf(text: string, expected: string): PolicyDocument | null {
  try {
    const document = readDocument(text)
    return documentHash(document) === expected ? document : null
  } catch (error) {
    if (error instanceof PolicyError) return null
    throw error
  }
}

/** Returns the pending documents of nodes, each once. */
function pendingOf(views: readonly { node: number; view: View }[]): Proposal[] {
  const proposals = new Map<string, Proposal>()
  for (const { node, view } of views) {
    if (!view.next) continue
    const known = proposals.get(view.next.hash)
    const document = known?.document ?? documentOf(view.next.document, view.next.hash)
    if (known) known.held.push(node)
    else if (document) proposals.set(view.next.hash, { ...view.next, document, held: [node] })
  }
  return [...proposals.values()]
}

/** Returns the nodes' statements about the document that they hold, each by the node that it names. */
const statementsOf = (views: readonly { node: number; view: View }[]): Statement[] =>
  views.flatMap(({ node, view: { in_force: stated, hash: own } }) =>
    stated?.node === node && stated.hash === own ? [stated] : [],
  )

/** Returns the resets that wait at nodes, each once. */
function resetsOf(views: readonly { view: View }[]): Reset[] {
  const resets = views.flatMap(({ view }) => (view.reset ? [view.reset] : []))
  const given = Map.groupBy(
    resets.flatMap(({ given_by }) => given_by),
    (each) => each.hash,
  )
  return [...given].map(([of, words]) => {
    const times = resets.flatMap(({ hash: own, acts_at }) =>
      own === of && acts_at !== null ? [acts_at] : [],
    )
    const given_by = [...new Set(words.map(({ node }) => node))].sort((a, b) => a - b)
    return { hash: of, given_by, acts_at: times.length > 0 ? Math.max(...times) : null }
  })
}

/**
 * Queries the signer nodes for the policy of a workspace.
 * @param workspace name of the workspace
 * @returns null if it has none
 * @throws ApiError `SIGNERS_UNAVAILABLE` if no two nodes agree
 */
export async function policyInForce(
  signers: SignerNodes,
  workspace: string,
): Promise<PolicyInForce | null> {
  const answers = await askAll(signers, viewShape, '/policy', { workspace })
  const agreed = agreedOf(answers, ({ hash: each }) => each ?? '')
  if (!agreed) throw disagreement(answers)
  const { value, nodes } = agreed
  if (value.hash === null) return null
  const views = answers.flatMap((answer) =>
    'value' in answer && answer.value.hash === value.hash
      ? [{ node: answer.node, view: answer.value }]
      : [],
  )
  const document = views
    .map(({ view }) => documentOf(view.document ?? '', value.hash as string))
    .find((each) => each !== null)
  if (!document) throw disagreement(answers)
  const stops = new Map(
    views.flatMap(({ view }) => (view.stops ?? []).map((each) => [each.hash, each] as const)),
  )
  const suspensions = views.flatMap(({ view }) => view.suspensions ?? [])
  return {
    number: document.number,
    hash: value.hash,
    document,
    held: nodes,
    statements: statementsOf(views),
    pending: pendingOf(views),
    stops: [...stops.values()],
    resets: resetsOf(views),
    blocked: blockedKeysOf(
      document,
      suspensions,
      views.flatMap(({ view }) => view.revoked ?? []),
    ),
    suspended: new Set(suspensions.map(({ target: { person, key } }) => keyName(person, key))),
  }
}

/** Returns the names of suspended and revoked keys. @param revoked public keys (SPKI) */
export function blockedKeysOf(
  { people }: PolicyDocument,
  suspensions: readonly { target: { person: string; key: string } }[],
  revoked: readonly string[],
): Set<string> {
  const names = suspensions.map(({ target: { person, key } }) => keyName(person, key))
  for (const { id: person, keys } of people)
    for (const { id, spki } of keys) if (revoked.includes(spki)) names.push(keyName(person, id))
  return new Set(names)
}

/** Converts Unix seconds to a time of the API. */
export const timeOf = (at_s: number): string => new Date(at_s * 1000).toISOString()
