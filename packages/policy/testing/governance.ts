import { checkDocument, documentHash } from '../src/document/read.ts'
import type { PolicyDocument } from '../src/document/shape.ts'
import type { Governance, Present } from '../src/governance/governance.ts'
import { install, type Proposal, type Witnesses } from '../src/governance/documents.ts'
import type { Statement } from '../src/statements/shapes.ts'
import type { SignedStatement } from '../src/statements/verify.ts'
import { documentWith, keyOf, NOW, policyWith, type TestKey } from './documents.ts'
import { registry } from './registry.ts'
import { signWith, statementsOf } from './statements.ts'
import { propose } from './transitions.ts'

export const DAY_S = 86_400
export const PLACE = { mode: 'mainnet', workspace: 'acme', nodes: 'ab'.repeat(32) } as const

/** Returns a statement of a kind by a person, with the given fields, and its signature. */
export function signedBy(
  governance: Governance,
  by: string,
  kind: Statement['kind'],
  fields: object = {},
  key: TestKey = keyOf(by),
): SignedStatement {
  const base = statementsOf(governance.policy)[kind]
  return signWith(key, { ...base, by, key: key.key.id, ...fields } as Statement)
}

/** Returns a proof of possession of each key of a document that is in `keys`. */
export function possessionsOf(
  document: PolicyDocument,
  keys: (person: string) => readonly TestKey[] = (person) => [keyOf(person)],
): SignedStatement[] {
  const { mode, workspace, nodes, number } = document
  const policy = { number, hash: documentHash(document) }
  const common = { kind: 'possession' as const, v: 1 as const, mode, workspace, nodes, policy }
  return document.people.flatMap(({ id: by }) =>
    keys(by).map((key) => signWith(key, { ...common, by, key: key.key.id })),
  )
}

/** Returns the state after the first document, which has the given fields. */
export function installed(
  fields: Partial<Record<keyof PolicyDocument, unknown>> = {},
  present: Present = { now_s: NOW },
): Governance {
  const { document } = policyWith([], fields)
  return install({ document, possessions: possessionsOf(document) }, PLACE, { registry }, present)
}

/** Returns a successor of the document in force, with the given fields. */
export const successorOf = (
  { policy: { document, hash } }: Governance,
  fields: Partial<Record<keyof PolicyDocument, unknown>> = {},
): PolicyDocument =>
  checkDocument(
    documentWith([], { ...document, number: document.number + 1, previous: hash, ...fields }),
  )

/** Returns a proposal that the named people have approved. Times in Unix seconds. */
export function proposalOf(
  governance: Governance,
  document: PolicyDocument,
  by: readonly string[],
  fields: { at?: number; acts_at?: number; possessions?: readonly SignedStatement[] } = {},
): Proposal {
  const { at = NOW, possessions = [] } = fields
  const acts_at = fields.acts_at ?? at + DAY_S
  const next = { number: document.number, hash: documentHash(document) }
  const times = { at, expires: at + 3600, acts_at, next }
  const approvals = by.map((person) => signedBy(governance, person, 'change', times))
  return { document, possessions, approvals }
}

export const proposed = (
  governance: Governance,
  proposal: Proposal,
  now_s = NOW,
  witnesses: Witnesses = null,
): Governance => propose(governance, proposal, { registry }, { now_s }, witnesses)
