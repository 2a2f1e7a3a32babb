import type { Registry } from '@custody/chains'
import { carriedApproval, type CarriedApproval } from '@custody/policy'
import type { Database } from '../../../core/database/pool.ts'
import type { Environment } from '../../../core/environment.ts'
import { ApiError } from '../../../core/errors.ts'
import type { SignerNodes } from '../../../core/signing/nodes.ts'
import {
  findChange,
  listChanges,
  type PolicyChange,
} from '../../../custody/policies/changes/change.ts'
import { collectedOf } from '../../../custody/policies/changes/collected.ts'
import { decideChange, provePossession } from '../../../custody/policies/changes/decide-change.ts'
import { proposeChange } from '../../../custody/policies/changes/propose-change.ts'
import { presentChange, presentChangeDetail } from '../../../custody/policies/changes/shapes.ts'
import { argument, OperatorError, type Command } from '../command.ts'

interface Services {
  environment: Environment
  registry: Registry
  database: Database
  signers: SignerNodes
}

const COMMENT = 'Proposed by the operator'
const IN_MAX_S = 99_999_999

/** Converts an error of the API to one that the operator sees. */
async function forOperator<T>(call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    if (error instanceof ApiError) throw new OperatorError(error.message)
    throw error
  }
}

/** Returns a proposed change of any workspace; undefined if there is none with the ID. */
export async function changeOf(
  database: Database,
  input: Record<string, unknown>,
): Promise<PolicyChange | undefined> {
  const id = (argument(input, 'id') ?? '').toLowerCase()
  const owner = await database.one<{ workspace_id: string }>(
    'select workspace_id from policy_changes where id::text = $1',
    [id],
  )
  return owner && findChange(database, owner.workspace_id, id)
}

/** Returns a change with what its approvals sign, and its state. */
export async function showChange(
  database: Database,
  change: PolicyChange,
): Promise<Record<string, unknown>> {
  const collected = await collectedOf(database, change)
  return {
    ...presentChangeDetail(change, collected),
    action: 'policy_change',
    next: change.document,
  }
}

/** Lists the changes of a workspace, or of all, that wait for approvals. */
export async function openChanges(
  database: Database,
  workspace: string | null,
): Promise<Record<string, unknown>[]> {
  const workspaces = await database.query<{ id: string }>(
    'select id from workspaces where $1::text is null or name = $1 order by name',
    [workspace],
  )
  const lists = await Promise.all(
    workspaces.map(({ id }) =>
      listChanges(database, id, ['open'], { at: null, id: null, count: 100 }),
    ),
  )
  return lists.flat().map((change) => ({ ...presentChange(change), workspace: change.workspace }))
}

/** Returns a change after something was stored about it. */
async function resultOf(database: Database, { workspace_id, id }: PolicyChange) {
  const after = await findChange(database, workspace_id, id)
  if (!after) throw new Error('the policy change is not there any more')
  return { ...presentChange(after) }
}

/** Stores a person's decision about a change. */
export async function giveChangeDecision(
  services: Services,
  change: PolicyChange,
  decision: CarriedApproval,
): Promise<Record<string, unknown>> {
  await forOperator(decideChange(services, change, decision))
  return resultOf(services.database, change)
}

const possession = carriedApproval.pick({ by: true, key: true, signature: true, passkey: true })

/** Stores the proof that a person holds a new key of a proposed document. */
export const provePossessionOf: Command<Services> = async (services, input) => {
  const change = await changeOf(services.database, input)
  if (!change) throw new OperatorError('ID: there is no such policy change')
  const proof = possession.safeParse(input['possession'])
  if (!proof.success) throw new OperatorError('possession: has an unknown form')
  await forOperator(provePossession(services, change, proof.data))
  return resultOf(services.database, change)
}

const objects = (value: unknown): object[] =>
  Array.isArray(value)
    ? value.filter((each): each is object => typeof each === 'object' && each !== null)
    : []

/** Proposes the next document of a workspace. */
export const proposePolicy: Command<Services & { checkout: { base: string } }> = async (
  services,
  input,
) => {
  const { database } = services
  const name = argument(input, 'workspace') ?? ''
  const workspace = await database.one<{ id: string }>(
    'select id from workspaces where name = $1',
    [name],
  )
  if (!workspace) throw new OperatorError(`--workspace: there is no workspace ${name}`)
  const { document } = input
  if (typeof document !== 'object' || document === null)
    throw new OperatorError('document: must be an object')
  const inS = input['in'] === undefined ? undefined : Number(input['in'])
  if (inS !== undefined && !(Number.isInteger(inS) && inS >= 0 && inS <= IN_MAX_S))
    throw new OperatorError('--in: must be a whole number of seconds')
  const comment = argument(input, 'comment') ?? COMMENT
  const change = await forOperator(
    proposeChange(services, {
      workspaceId: workspace.id,
      workspace: name,
      document,
      possessions: objects(input['possessions']),
      comment: comment.slice(0, 1000),
      inS,
      by: null,
    }),
  )
  return { ...presentChange(change), warnings: change.warnings }
}
