import { API_ROLES } from '@custody/request-auth/roles'
import {
  AuthError,
  canonicalPublicKey,
  fingerprintOfKey,
  parsePublicKey,
} from '@custody/request-auth'
import { personName } from '@custody/policy'
import { z } from 'zod'
import { subAccountIndexSchema, subAccountNameSchema } from '../enrolment/sub-accounts.ts'
import { Refusal } from '../errors.ts'
import { lacksApproval } from '../governance/enrolments.ts'
import type { NodeContext } from '../node-context.ts'
import type { Enrolment } from '../store/state.ts'
import { shaped } from '../transport/body.ts'

const keySchema = z.strictObject({ api_key: z.string().min(1).max(128) })
const enrolSchema = keySchema.extend({
  public_key_pem: z.string().max(16_384),
  role: z.enum(API_ROLES),
  workspace: z.string().min(1).max(128),
  sub_account: subAccountNameSchema,
  index: subAccountIndexSchema.optional(),
  person: personName.optional(),
})

/**
 * Returns an enrolment as a node reports it to its operator, who compares it with the entered
 * values and with the other nodes.
 */
export const reported = (parts: NodeContext, enrolment: Enrolment) => {
  const { api_key, public_key_pem, role, workspace, sub_account, sub_account_name, person } =
    enrolment
  return {
    node: parts.config.node,
    api_key,
    key_fingerprint: fingerprintOfKey(parsePublicKey(public_key_pem)),
    role,
    workspace,
    sub_account: sub_account_name,
    sub_account_index: sub_account,
    person,
    revoked: enrolment.revoked,
    needs_approval: needsApproval(parts, enrolment),
  }
}

/**
 * Returns whether an API key signs nothing until people approve its enrolment. If the node cannot read
 * the policy of the workspace, it signs nothing either.
 */
function needsApproval({ governance }: NodeContext, enrolment: Enrolment): boolean {
  if (enrolment.approval_policy === undefined) return false
  try {
    return lacksApproval(governance.policies.held(enrolment.workspace), enrolment)
  } catch (error) {
    if (error instanceof Refusal) return true
    throw error
  }
}

/**
 * Returns the number of the policy in force if it requires approvals of enrolments; else undefined.
 * @throws Refusal `POLICY_BEHIND` if this node may not have the latest policy of the workspace
 */
async function approvalPolicy(
  { governance: { policies, exchange } }: NodeContext,
  workspace: string,
): Promise<number | undefined> {
  if (policies.isNamed(workspace)) await exchange.prepare()
  const governance = policies.current(workspace)
  if (governance === null) return undefined
  exchange.assertCurrent(governance)
  const { number, enrolment } = governance.policy.document
  return enrolment === undefined ? undefined : number
}

/**
 * Returns the pinned identity keys of all three nodes, as this node has them. A caller pins the
 * same keys.
 */
const identitiesOf = ({ keyring }: NodeContext) =>
  [...keyring.identities]
    .sort(([a], [b]) => a - b)
    .map(([node, identity]) => ({
      node,
      identity: identity.export({ type: 'spki', format: 'pem' }) as string,
    }))

/** Returns the key in canonical form, which is recorded whatever form was entered. */
function readPublicKey(pem: string): string {
  try {
    return canonicalPublicKey(pem)
  } catch (error) {
    if (error instanceof AuthError)
      throw new Refusal('BAD_REQUEST_FIELD', `public_key_pem ${error.message}`)
    throw error
  }
}

/**
 * Returns whether an enrolment required approvals, and requires none or those of an earlier number if
 * it is entered again: the policy was changed or removed since.
 */
const isEased = ({ approval_policy: before }: Enrolment, required: number | undefined): boolean =>
  before !== undefined && (required === undefined || required < before)

/**
 * Rule 1: enrols a caller. Only these orders, which the operator enters, decide who may request
 * payments. The sub-account is identified by its name; only the nodes know its index. If the policy of
 * the workspace requires approvals of enrolments, the API key signs nothing until they are on record.
 */
export async function enrol(parts: NodeContext, body: unknown): Promise<unknown> {
  const { store, subAccounts, config } = parts
  const { index, ...typed } = shaped(enrolSchema, body)
  const wanted = { ...typed, public_key_pem: readPublicKey(typed.public_key_pem) }
  if (store.state.revoked.has(wanted.api_key))
    throw new Refusal('ENROLMENT_CONFLICT', 'The API key is permanently revoked')
  if (store.state.restoring)
    throw new Refusal(
      'RESTORING',
      'The node was restored and has not yet imported the records of its peers',
    )
  const bound = await subAccounts.bind(wanted.workspace, wanted.sub_account, index)
  const required = await approvalPolicy(parts, wanted.workspace)
  // Read after all awaits, because a revocation or the same enrolment may have been recorded during
  // it.
  const existing = store.state.enrolments.get(wanted.api_key)
  if (store.state.revoked.has(wanted.api_key))
    throw new Refusal('ENROLMENT_CONFLICT', 'The API key is permanently revoked')
  if (existing) {
    const same =
      canonicalPublicKey(existing.public_key_pem) === wanted.public_key_pem &&
      existing.role === wanted.role &&
      existing.workspace === wanted.workspace &&
      existing.sub_account === bound &&
      existing.person === wanted.person
    if (!same)
      throw new Refusal(
        'ENROLMENT_CONFLICT',
        'The API key is already enrolled with other values; an enrolment cannot be changed',
      )
  }
  if (!existing || isEased(existing, required))
    store.append('enrol', {
      ...wanted,
      sub_account: bound,
      sub_account_name: wanted.sub_account,
      ...(required === undefined ? {} : { approval_policy: required }),
    })
  const enrolment = store.state.enrolments.get(wanted.api_key) as Enrolment
  return {
    enrolled: true,
    new: !existing,
    mode: config.mode,
    ...reported(parts, { ...enrolment, sub_account_name: wanted.sub_account }),
    identities: identitiesOf(parts),
  }
}

/**
 * Revokes an API key permanently, including a key that this node does not know, because a key that
 * was enrolled while the node was unavailable must not be added later.
 */
export function revoke(parts: NodeContext, body: unknown): unknown {
  const { store, config } = parts
  const { api_key } = shaped(keySchema, body)
  if (!store.state.revoked.has(api_key)) store.append('revoke', { api_key })
  const existing = store.state.enrolments.get(api_key)
  return {
    revoked: true,
    known: existing !== undefined,
    ...(existing ? reported(parts, existing) : { node: config.node, api_key }),
  }
}

/**
 * Returns what this node has stored about an API key, including its public key, for a node that
 * missed the enrolment.
 */
export function enrolment(parts: NodeContext, body: unknown): unknown {
  const { api_key } = shaped(keySchema, body)
  const existing = parts.store.state.enrolments.get(api_key)
  if (!existing) throw new Refusal('NOT_ENROLLED', 'The API key is not enrolled at this node')
  return {
    ...reported(parts, existing),
    public_key_pem: canonicalPublicKey(existing.public_key_pem),
  }
}
