import { hasLocalChains } from '@custody/chains/mode'
import {
  canonicalText,
  LIMITS,
  PolicyError,
  readSigned,
  verifyStatement,
  type Difference,
  type Finding,
  type Policy,
  type SignedStatement,
} from '@custody/policy'
import { stringifyJson } from '@custody/request-auth'
import type { Environment } from '../../../core/environment.ts'
import type { Queryable } from '../../../core/database/pool.ts'
import { ApiError } from '../../../core/errors.ts'
import { emit } from '../../../core/ledger/post.ts'
import { analysisOf } from '../analysis/analysis.ts'
import { surroundingsOf } from '../lint-surroundings.ts'
import { policyInForce, type PolicyInForce } from '../policy-in-force.ts'
import { compiledOf, invalidDocument } from '../request-document.ts'
import { findChange, type PolicyChange } from './change.ts'
import { countCollected, newKeys, storeStatement, type Counted } from './collected.ts'
import { currentOf, secondsOf, tryAdvance, type Services as Progress } from './progress.ts'
import { DIFFERENCES_MAX, presentChange, WARNINGS_MAX } from './shapes.ts'

export interface Services extends Progress {
  environment: Environment
  checkout: { base: string }
}

/** Greatest number of changes of a workspace that are not decided. */
const OPEN_MAX = 4
/** Time for the collection of approvals in seconds, which is added to the delay on mainnet. */
const COLLECTION_S = 3600
const OPEN = "('open', 'approved', 'held')"

/** A proposal of a caller or of the operator. */
export interface ProposalInput {
  /** ID and name of the workspace. */
  workspaceId: string
  workspace: string
  document: object
  /** Signed proofs of possession, as a policy file contains them. */
  possessions: readonly object[]
  comment: string
  /** Time until the change comes into force, in seconds; undefined: the delay of the document in force. */
  inS?: number | undefined
  /** API key; null: a command of the operator. */
  by: string | null
}

/**
 * Returns the document in force, and the proposed one after the checks that cost little.
 * @throws ApiError `INVALID_REQUEST` that names the field of the document
 */
async function successor(services: Services, { workspace, document }: ProposalInput) {
  const next = compiledOf(services.registry, workspace, document)
  const inForce = await policyInForce(services.signers, workspace)
  if (inForce === null)
    throw invalidDocument(
      '',
      'the workspace has no policy in force: the operator installs the first document with "npx custody policy install"',
    )
  for (const field of ['mode', 'nodes'] as const)
    if (next.document[field] !== inForce.document[field])
      throw invalidDocument(
        field,
        `must be ${inForce.document[field]}, as in the document in force`,
      )
  if (next.document.number !== inForce.number + 1)
    throw invalidDocument('number', `must be ${inForce.number + 1}`)
  if (next.document.previous !== inForce.hash)
    throw invalidDocument('previous', `must be ${inForce.hash}, the hash of the document in force`)
  return { next, inForce }
}

/** What is known of a proposed document after its analysis. */
interface Reviewed {
  findings: readonly Finding[]
  differences: readonly Difference[]
}

/**
 * Lints a proposed document and compares it with the one in force, in the analysis thread. The
 * workspace's part of that thread bounds what it costs others.
 * @throws ApiError `INVALID_REQUEST` that names the field of the document
 */
async function reviewed(
  services: Services,
  { workspaceId }: ProposalInput,
  { next, inForce }: { next: Policy; inForce: PolicyInForce },
): Promise<Reviewed> {
  const job = {
    kind: 'review',
    next: next.document,
    previous: inForce.document,
    surroundings: await surroundingsOf(services, workspaceId),
  } as const
  const { findings, differences } = await analysisOf(services.registry).run(workspaceId, job)
  const fault = findings.find(({ severity }) => severity === 'error')
  if (fault) throw invalidDocument(fault.path, fault.message)
  return { findings, differences }
}

/**
 * Returns the proofs of a request after their verification.
 * @throws ApiError `INVALID_REQUEST` that names the field
 */
function possessionsOf(
  inputs: readonly object[],
  { next, current, now_s }: { next: Policy; current: Policy; now_s: number },
): SignedStatement[] {
  const required = newKeys(current, next)
  return inputs.flatMap((input, at) => {
    const invalid = (message: string) =>
      new ApiError('INVALID_REQUEST', `possessions[${at}].${message}`, {
        field: `possessions[${at}]`,
      })
    try {
      const signed = readSigned(stringifyJson(input))
      const { statement } = signed
      if (statement.kind !== 'possession') throw invalid('statement.kind: must be possession')
      verifyStatement(next, signed, { now_s, suspended: new Set() })
      // A policy file may contain proofs of keys that are in force; they are not required.
      const { by, key } = statement
      return required.some((each) => each.person === by && each.key === key) ? [signed] : []
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      throw invalid(error.message)
    }
  })
}

/** Everything that a new row contains. */
interface Draft {
  input: ProposalInput
  next: Policy
  inForce: PolicyInForce
  reviewed: Reviewed
  possessions: readonly SignedStatement[]
  counted: Counted
  acts_at: number
}

async function insert(tx: Queryable, id: string, draft: Draft): Promise<void> {
  const { input, next, inForce, counted, acts_at } = draft
  const now = tx.now()
  const differences = draft.reviewed.differences
    .slice(0, DIFFERENCES_MAX)
    .map(({ path, tendency, sentence }) => ({ path, tendency, sentence }))
  const warnings = draft.reviewed.findings
    .filter(({ severity }) => severity === 'warning')
    .slice(0, WARNINGS_MAX)
    .map(({ path, message }) => ({ path, message }))
  await tx.query(
    `insert into policy_changes (workspace_id, id, state, number, hash, previous, document, changes,
       warnings, comment, acts_at, needs, missing, proposed_by, expires_at, created_at)
     values ($1, $2, 'open', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
    [
      input.workspaceId,
      id,
      next.document.number,
      next.hash,
      inForce.hash,
      canonicalText(next.document),
      JSON.stringify(differences),
      JSON.stringify(warnings),
      input.comment,
      acts_at,
      JSON.stringify(counted.needs),
      JSON.stringify(counted.missing),
      input.by,
      new Date(now.getTime() + LIMITS.approvalS * 1000),
      now,
    ],
  )
}

/** Returns the change that proposes a document already; undefined if there is none. */
const proposedBefore = (tx: Queryable, { workspaceId }: ProposalInput, { hash }: Policy) =>
  tx.one<{ id: string }>(
    `select id from policy_changes where workspace_id = $1 and hash = $2 and state in ${OPEN}`,
    [workspaceId, hash],
  )

/** @throws ApiError `POLICY_CHANGE_LIMIT` */
async function assertRoom(tx: Queryable, { workspaceId }: ProposalInput): Promise<void> {
  const row = await tx.one<{ count: number }>(
    `select count(*)::int count from policy_changes where workspace_id = $1 and state in ${OPEN}`,
    [workspaceId],
  )
  if ((row?.count ?? 0) >= OPEN_MAX)
    throw new ApiError(
      'POLICY_CHANGE_LIMIT',
      `the workspace has ${OPEN_MAX} policy changes that are not decided: approve, reject or wait for one of them first`,
    )
}

/** Returns everything that a new row contains, after the analysis of the document. */
async function draftOf(
  services: Services,
  input: ProposalInput,
  o: Pick<Draft, 'next' | 'inForce' | 'possessions'>,
): Promise<Draft> {
  const { next, inForce, possessions } = o
  const review = await reviewed(services, input, o)
  const now_s = secondsOf(services.database)
  const { mode, change } = inForce.document
  const waitS = input.inS ?? change.delay_s + (hasLocalChains(mode) ? 0 : COLLECTION_S)
  const collected = possessions.map((signed) => ({
    kind: 'possession' as const,
    signed,
    text: JSON.stringify(signed),
    isDelivered: false,
  }))
  const policy = currentOf(services, inForce)
  const counted = countCollected(next, collected, { policy, blocked: inForce.blocked, now_s })
  return { input, ...o, reviewed: review, counted, acts_at: now_s + waitS }
}

/**
 * Stores a proposal. A document that is proposed already is not proposed twice; its proofs are added.
 * @throws ApiError `INVALID_REQUEST`, `POLICY_CHANGE_LIMIT` or `SIGNERS_UNAVAILABLE`
 */
export async function proposeChange(
  services: Services,
  input: ProposalInput,
): Promise<PolicyChange> {
  const { database, environment } = services
  const { next, inForce } = await successor(services, input)
  const now_s = secondsOf(database)
  const current = currentOf(services, inForce)
  const possessions = possessionsOf(input.possessions, { next, current, now_s })
  // Before the analysis, which costs more than all other checks together.
  const isProposed = (await proposedBefore(database, input, next)) !== undefined
  if (!isProposed) await assertRoom(database, input)
  const draft = isProposed ? null : await draftOf(services, input, { next, inForce, possessions })
  const id = await database.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
      `policy changes ${input.workspaceId}`,
    ])
    const before = await proposedBefore(tx, input, next)
    if (!before && draft === null) return null
    if (!before) await assertRoom(tx, input)
    const own = before?.id ?? environment.uuid()
    if (!before && draft !== null) await insert(tx, own, draft)
    for (const signed of possessions)
      await storeStatement(tx, { workspace_id: input.workspaceId, id: own }, signed)
    const found = await findChange(tx, input.workspaceId, own)
    if (!before && found)
      await emit(
        tx,
        input.workspaceId,
        null,
        'policy.proposed',
        stringifyJson(presentChange(found)),
      )
    return own
  })
  // The change that proposed the document was decided in the meantime.
  if (id === null) return proposeChange(services, input)
  await tryAdvance(services, input.workspaceId, id)
  const found = await findChange(database, input.workspaceId, id)
  if (!found) throw new Error('a policy change was not stored')
  return found
}
