import type { Registry } from '@custody/chains'
import { carriedApproval } from '@custody/policy'
import { findApproval, type FoundApproval } from '../../../custody/approvals/find-approval.ts'
import { decide } from '../../../custody/approvals/decide.ts'
import { presentDetail } from '../../../custody/approvals/read-approval.ts'
import type { WorkspacePolicies } from '../../../custody/approvals/workspace-policies.ts'
import type { Database } from '../../../core/database/pool.ts'
import type { Environment } from '../../../core/environment.ts'
import { ApiError } from '../../../core/errors.ts'
import { NodeRefused, NodeUnavailable, type SignerNodes } from '../../../core/signing/nodes.ts'
import { argument, OperatorError, type Command } from '../command.ts'
import { changeOf, giveChangeDecision, openChanges, showChange } from './changes.ts'

interface Services {
  environment: Environment
  registry: Registry
  database: Database
  signers: SignerNodes
  policies: WorkspacePolicies
}

const NODE_TIMEOUT_MS = 5000
const LISTED_MAX = 500

async function found(database: Database, input: Record<string, unknown>): Promise<FoundApproval> {
  const id = argument(input, 'id') ?? ''
  const owner = await database.one<{ workspace_id: string }>(
    'select workspace_id from approval_requests where transaction_id::text = $1',
    [id.toLowerCase()],
  )
  const match = owner && (await findApproval(database, owner.workspace_id, id))
  if (match) return match
  throw new OperatorError(
    `ID: no transfer, no forwarding rule and no policy change ${id} requires approvals; "npx custody approvals" lists those that do`,
  )
}

/** Returns the policy document that a node has in force; null if no node responds. */
async function documentOf({ signers }: Services, workspace: string): Promise<string | null> {
  for (const { node } of signers.peers) {
    const view = await signers
      .call<{ document: string | null }>(node, 'POST', '/policy', { workspace }, NODE_TIMEOUT_MS)
      .catch((error: unknown) => {
        // Another node may have it; a defect of this program must not look like silence.
        if (error instanceof NodeUnavailable || error instanceof NodeRefused) return null
        throw error
      })
    if (view?.document) return view.document
  }
  return null
}

/** Lists the transfers and policy changes that wait for approvals, transfers oldest first. */
export const listOpenApprovals: Command<Services> = async ({ database }, input) => {
  const rows = await database.query<FoundApproval>(
    `select r.transaction_id, r.statement, r.needs, r.expires_at, r.created_at
     from approval_requests r join workspaces w on w.id = r.workspace_id
     where r.state = 'open' and ($1::text is null or w.name = $1)
     order by r.created_at, r.transaction_id limit $2`,
    [argument(input, 'workspace'), LISTED_MAX + 1],
  )
  return {
    approvals: rows.slice(0, LISTED_MAX).map((row) => ({
      id: row.transaction_id,
      statement: row.statement,
      needs: row.needs,
      created_at: row.created_at.toISOString(),
      expires_at: row.expires_at.toISOString(),
    })),
    changes: await openChanges(database, argument(input, 'workspace')),
    more: rows.length > LISTED_MAX,
  }
}

/**
 * Returns a transfer or a policy change that requires approvals, with the policy document that
 * requires them.
 */
export const showApproval: Command<Services> = async (services, input) => {
  const change = await changeOf(services.database, input)
  if (change)
    return {
      ...(await showChange(services.database, change)),
      document: await documentOf(services, change.workspace),
    }
  const match = await found(services.database, input)
  return {
    ...(await presentDetail(services.database, match)),
    document: await documentOf(services, match.statement.workspace),
  }
}

/** Stores a person's signed decision about a transfer or a policy change. */
export const giveDecision: Command<Services> = async (services, input) => {
  const change = await changeOf(services.database, input)
  if (change) {
    const given = carriedApproval.safeParse(input['decision'])
    if (!given.success) throw new OperatorError('decision: has an unknown form')
    return giveChangeDecision(services, change, given.data)
  }
  const match = await found(services.database, input)
  const decision = carriedApproval.safeParse(input['decision'])
  if (!decision.success) throw new OperatorError('decision: has an unknown form')
  try {
    return { ...(await decide(services, match, { ...decision.data, id: match.id })) }
  } catch (error) {
    if (error instanceof ApiError) throw new OperatorError(error.message)
    throw error
  }
}
