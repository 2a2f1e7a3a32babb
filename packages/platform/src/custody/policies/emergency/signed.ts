import { policyRegistry, type Registry } from '@custody/chains'
import {
  carriedApproval,
  compile,
  statementHash,
  type CarriedApproval,
  type Policy,
  type SignedStatement,
  type Statement,
} from '@custody/policy'
import { z } from 'zod'
import { assertionShape } from '../../approvals/present.ts'
import type { Database } from '../../../core/database/pool.ts'
import { ApiError } from '../../../core/errors.ts'
import { wholeNumber } from '../../../core/http/schemas.ts'
import type { SignerNodes } from '../../../core/signing/nodes.ts'
import { policyInForce, type PolicyInForce } from '../policy-in-force.ts'
import { presentItem } from '../present-item.ts'
import { assertVerified } from '../verified.ts'

export interface Services {
  registry: Registry
  database: Database
  signers: SignerNodes
}

const SECONDS_MAX = 9_999_999_999
const { by, key, signature } = carriedApproval.shape

/** Fields of every signed statement in a request. */
export const signerFields = {
  by,
  key,
  at: wholeNumber(0, SECONDS_MAX, 'Time of the signature, in Unix seconds'),
  expires: wholeNumber(
    0,
    SECONDS_MAX,
    'Time at which the statement stops counting, in Unix seconds: at most 7 days after `at`',
  ),
  signature,
  passkey: assertionShape.optional(),
}
export const SIGNER_EXAMPLE = {
  by: 'bob',
  key: 'k1',
  at: 1_795_600_000,
  expires: 1_795_686_400,
  signature:
    'kq3mT0bPzV7m0cB7aF2r1sXo9pQeYw8uG5hJ4nL6dKcRtZvM1iN0oPxS3fUyE2aWgHjB7kQ9lDzC5vXbN8mTAw==',
}

/** How each of these statements is signed, for descriptions. */
export const signingText = (domain: string, fields: string): string =>
  `\`signature\` is made with a key of the policy document in force over \`${domain}\`, a line feed, and the canonical JSON (RFC 8785) of the fields \`v\` (1), \`mode\`, \`workspace\`, \`nodes\`, \`by\`, \`key\`, \`at\`, \`expires\`${fields}. A passkey signs the SHA-256 of the same bytes as its challenge, and its assertion is sent as \`passkey\` instead. The API key only carries the statement: the signature of the person is the authority.`

type Signer = Omit<CarriedApproval, 'id' | 'decision'>
type Fields<T> = T extends unknown
  ? Omit<T, 'v' | 'mode' | 'workspace' | 'nodes' | 'by' | 'key' | 'at' | 'expires'>
  : never

/** A verified statement under the document in force. */
export interface Verified {
  signed: SignedStatement
  /** JSON text, as nodes get it. */
  text: string
  hash: string
  inForce: PolicyInForce
  policy: Policy
}

/**
 * Builds a statement from a request, and verifies it under the document in force.
 * @param workspace name of the workspace
 * @param fieldsOf returns what the statement contains besides its signer
 * @throws ApiError `APPROVAL_REFUSED`, `APPROVAL_CLOSED` without a policy, or `SIGNERS_UNAVAILABLE`
 */
export async function verifiedStatement(
  services: Services,
  workspace: string,
  { signature: own, passkey, ...signer }: Signer,
  fieldsOf: (inForce: PolicyInForce) => Fields<Statement>,
): Promise<Verified> {
  const inForce = await policyInForce(services.signers, workspace)
  if (inForce === null)
    throw new ApiError('APPROVAL_CLOSED', 'the workspace has no policy in force')
  const { mode, nodes } = inForce.document
  const { by: person, key: id, at, expires } = signer
  const common = { v: 1, mode, workspace, nodes, by: person, key: id, at, expires }
  const statement = { ...common, ...fieldsOf(inForce) } as Statement
  const signed = { statement, ...(passkey ? { passkey } : { signature: own }) }
  const policy = compile(inForce.document, policyRegistry(services.registry))
  const now_s = Math.floor(services.database.now().getTime() / 1000)
  assertVerified(policy, signed, { now_s, suspended: inForce.blocked })
  return { signed, text: JSON.stringify(signed), hash: statementHash(statement), inForce, policy }
}

/**
 * Presents a statement to the nodes.
 * @returns the nodes that have recorded it
 * @throws ApiError `APPROVAL_REFUSED` if they refuse it, `SIGNERS_UNAVAILABLE` if none responds
 */
export async function deliver(
  { signers }: Pick<Services, 'signers'>,
  workspace: string,
  { text }: Pick<Verified, 'text'>,
): Promise<number[]> {
  const { held, refusals } = await presentItem(signers, {
    kind: 'statement',
    workspace,
    signed: text,
  })
  if (held.length > 0) return held
  const [refusal] = refusals
  if (refusal)
    throw new ApiError('APPROVAL_REFUSED', `signature: ${refusal.text}`, { field: 'signature' })
  throw new ApiError('SIGNERS_UNAVAILABLE', 'no signer node has recorded the statement')
}

/** Nodes that have recorded a statement. */
export const recordedShape = z
  .array(z.int().min(1).max(3))
  .max(3)
  .meta({
    description: 'Signer nodes that have recorded it; they inform the others',
    examples: [[1, 2, 3]],
  })
