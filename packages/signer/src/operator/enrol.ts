import {
  AuthError,
  canonicalPublicKey,
  fingerprintOfKey,
  parsePublicKey,
} from '@custody/request-auth'
import { z } from 'zod'
import { subAccountIndexSchema, subAccountNameSchema } from '../enrolment/sub-accounts.ts'
import { Refusal } from '../errors.ts'
import type { NodeContext } from '../node-context.ts'
import type { Enrolment } from '../store/state.ts'
import { shaped } from '../transport/body.ts'

const keySchema = z.strictObject({ api_key: z.string().min(1).max(128) })
const enrolSchema = keySchema.extend({
  public_key_pem: z.string().max(16_384),
  role: z.enum(['full', 'read-only']),
  workspace: z.string().min(1).max(128),
  sub_account: subAccountNameSchema,
  index: subAccountIndexSchema.optional(),
})

/**
 * Returns an enrolment as a node reports it to its operator, who compares it with the entered
 * values and with the other nodes.
 */
export const reported = (
  { config }: NodeContext,
  { api_key, public_key_pem, role, workspace, sub_account, sub_account_name, revoked }: Enrolment,
) => ({
  node: config.node,
  api_key,
  key_fingerprint: fingerprintOfKey(parsePublicKey(public_key_pem)),
  role,
  workspace,
  sub_account: sub_account_name,
  sub_account_index: sub_account,
  revoked,
})

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
 * Rule 1: enrols a caller. Only these orders, which the operator enters, decide who may request
 * payments. The sub-account is identified by its name; only the nodes know its index.
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
  // Read after the await, because a revocation or the same enrolment may have been recorded during
  // it.
  const existing = store.state.enrolments.get(wanted.api_key)
  if (store.state.revoked.has(wanted.api_key))
    throw new Refusal('ENROLMENT_CONFLICT', 'The API key is permanently revoked')
  if (existing) {
    const same =
      canonicalPublicKey(existing.public_key_pem) === wanted.public_key_pem &&
      existing.role === wanted.role &&
      existing.workspace === wanted.workspace &&
      existing.sub_account === bound
    if (!same)
      throw new Refusal(
        'ENROLMENT_CONFLICT',
        'The API key is already enrolled with other values; an enrolment cannot be changed',
      )
  } else
    store.append('enrol', { ...wanted, sub_account: bound, sub_account_name: wanted.sub_account })
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
