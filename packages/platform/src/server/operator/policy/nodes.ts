import {
  readDocument,
  type EnrolmentFacts,
  type PolicyDocument,
  type TankOrder,
} from '@custody/policy'
import { reasonOf } from '@custody/chains/reason'
import { setTimeout as pause } from 'node:timers/promises'
import type { NodePeer } from '../../../core/signing/nodes.ts'
import { OperatorError } from '../command.ts'
import { callSigner } from '../connect.ts'

/** A stop in force, as a node reports it. `at`: Unix seconds. */
export interface StopView {
  hash: string
  /** Null: the whole workspace. */
  sub_account: string | null
  by: string
  at: number
}

/** The pending document, as a node reports it. Times in Unix seconds. */
interface NextView {
  number: number
  hash: string
  document: string
  seen_at: number
  acts_at: number
  vetoed_by: string | null
  confirmed_by: number[]
}

/** What a node states about a reset that waits. Times in Unix seconds. */
interface ResetView {
  /** The reset that this node's operator has entered; null: none. */
  number: number | null
  hash: string | null
  /** Statements of operators that this node knows. */
  given_by: { node: number; hash: string; given_at: number }[]
  /** When it comes into force; null: the operators of all nodes have not entered the same one. */
  acts_at: number | null
}

/** What a node holds about the policy of a workspace. */
export interface PolicyView {
  node: number
  workspace: string
  /** Values of `mode` and `nodes` that documents of this installation contain. */
  place: Pick<PolicyDocument, 'mode' | 'nodes'>
  /** First documents that this node and its peers hold. */
  first: { node: number; hash: string }[]
  /** Null: no document is in force at this node. */
  number: number | null
  hash: string | null
  document: string | null
  next?: NextView | null
  stops?: StopView[]
  /** A reset that waits; absent in earlier versions of the node. */
  reset?: ResetView | null
  /** Enrolments that lack approvals at this node; absent in earlier versions of the node. */
  enrolments?: EnrolmentFacts[]
  /** API keys of the full role that are enrolled; absent in earlier versions of the node. */
  api_keys?: string[]
  /** Persons of the enrolments of `api_keys` that name one; absent in earlier versions of the node. */
  persons?: { api_key: string; person: string }[]
  /** Orders about gas tanks that lack approvals at this node; absent in earlier versions of the node. */
  orders?: TankOrder[]
  suspensions?: { target: { person: string; key: string } }[]
  /** Public keys (SPKI). */
  revoked?: string[]
}

/** The document that most nodes have in force. */
export interface InForce {
  view: PolicyView
  document: PolicyDocument
  hash: string
  /** Nodes that have it in force. */
  held: number[]
}

const HELD_WAIT_MS = 10_000
const HELD_PAUSE_MS = 200

/** Queries the nodes. @throws OperatorError if no node responds */
export async function policyViews(
  signers: readonly NodePeer[],
  workspace: string,
): Promise<{ views: PolicyView[]; problems: string[] }> {
  if (signers.length === 0)
    throw new OperatorError(
      'no signer node runs on this machine: run "custody signer policy …" on the host of each node (docs/policies.md)',
    )
  const settled = await Promise.allSettled(
    signers.map((signer) => callSigner(signer, 'policy-show', { workspace })),
  )
  const views = settled.flatMap((each) =>
    each.status === 'fulfilled' ? [each.value as PolicyView] : [],
  )
  const problems = settled.flatMap((each, at) =>
    each.status === 'rejected' ? [`signer ${signers[at]?.node}: ${reasonOf(each.reason)}`] : [],
  )
  if (views.length === 0)
    throw new OperatorError(`no signer node returned its policy: ${problems.join('; ')}`)
  return { views, problems }
}

/**
 * Returns the persons of enrolments, by API key, on which all nodes that list the key agree: if one
 * node knows no person or another one, the key has no owner in signatures with that node.
 */
export function personsOf(views: readonly PolicyView[]): ReadonlyMap<string, string> {
  const persons = views.map((view) => {
    const named = new Map((view.persons ?? []).map(({ api_key, person }) => [api_key, person]))
    return new Map((view.api_keys ?? []).map((key) => [key, named.get(key)]))
  })
  const found = new Map<string, string>()
  for (const key of new Set(persons.flatMap((each) => [...each.keys()]))) {
    const stated = new Set(persons.flatMap((each) => (each.has(key) ? [each.get(key)] : [])))
    const [person] = stated
    if (stated.size === 1 && person !== undefined) found.set(key, person)
  }
  return found
}

/** Returns the document that most nodes have in force, of equally many the later one; or null. */
export function inForceOf(views: readonly PolicyView[]): InForce | null {
  const groups = Map.groupBy(
    views.filter(({ hash }) => hash !== null),
    ({ hash }) => hash as string,
  )
  const [best] = [...groups].sort(
    ([, a], [, b]) => b.length - a.length || (b[0]?.number ?? 0) - (a[0]?.number ?? 0),
  )
  if (!best) return null
  const [hash, [view, ...others]] = best as [string, [PolicyView, ...PolicyView[]]]
  const held = [view, ...others].map(({ node }) => node)
  return { view, hash, held, document: readDocument(view.document as string) }
}

/** Queries the nodes for the document in force. @throws OperatorError if there is none */
export async function requireInForce(
  signers: readonly NodePeer[],
  workspace: string,
): Promise<InForce> {
  const { views } = await policyViews(signers, workspace)
  const inForce = inForceOf(views)
  if (!inForce)
    throw new OperatorError(
      `--workspace: the workspace ${workspace} has no policy in force at the signer nodes: install one with "npx custody policy install"`,
    )
  return inForce
}

/** Returns the place in which the nodes agree. @throws OperatorError if they do not agree */
export function placeOf(views: readonly PolicyView[]): PolicyView['place'] {
  const [first, ...others] = views
  const other = others.find(
    ({ place }) => place.mode !== first?.place.mode || place.nodes !== first.place.nodes,
  )
  if (other)
    throw new OperatorError(
      `signer ${other.node} and signer ${first?.node} have different identity keys of the nodes on record: find the cause before you continue`,
    )
  return (first as PolicyView).place
}

/**
 * Waits until all nodes that respond meet a condition, or for 10 seconds, because nodes read from
 * each other.
 * @returns the nodes that meet it
 */
export async function nodesWith(
  signers: readonly NodePeer[],
  workspace: string,
  meets: (view: PolicyView) => boolean,
): Promise<number[]> {
  for (let waitedMs = 0; ; waitedMs += HELD_PAUSE_MS) {
    const { views } = await policyViews(signers, workspace)
    const nodes = views.filter(meets).map(({ node }) => node)
    if (nodes.length === views.length || waitedMs >= HELD_WAIT_MS) return nodes
    await pause(HELD_PAUSE_MS)
  }
}

/**
 * Presents a signed item to each node. One node is sufficient, because the nodes read it from each
 * other.
 * @returns a sentence for each node that refused or did not respond
 * @throws OperatorError if no node accepted it
 */
export async function presentItem(
  signers: readonly NodePeer[],
  item: Record<string, unknown>,
): Promise<string[]> {
  const settled = await Promise.allSettled(
    signers.map((signer) => callSigner(signer, 'policy-present', { item })),
  )
  const problems = settled.flatMap((each, at) =>
    each.status === 'rejected' ? [`signer ${signers[at]?.node}: ${reasonOf(each.reason)}`] : [],
  )
  if (problems.length === signers.length)
    throw new OperatorError(`no signer node accepted it: ${problems.join('; ')}`)
  return problems
}
