import { loadRegistry, policyRegistry, type Registry } from '@custody/chains'
import type { Trust } from '@custody/client'
import { nodesHash, type PolicyDocument, type PolicyRegistry } from '@custody/policy'
import { createPublicKey } from 'node:crypto'
import { ApproverError } from '../errors.ts'

/** The installation, as the trust file pins it. */
export interface Place {
  mode: PolicyDocument['mode']
  workspace: string
  sub_account: string
  /** Hash of the identity keys of the signer nodes. */
  nodes: string
  chains: Registry
  registry: PolicyRegistry
}

/** Returns the installation of a trust file, which the client has validated. */
export function placeOf(trust: Trust): Place {
  const chains = loadRegistry(trust.network)
  return {
    mode: trust.network,
    workspace: trust.workspace,
    sub_account: trust.sub_account,
    nodes: nodesHash(
      [...trust.nodes]
        .sort((a, b) => a.node - b.node)
        .map(({ identity }) => createPublicKey(identity).export({ type: 'spki', format: 'der' })),
    ),
    chains,
    registry: policyRegistry(chains),
  }
}

/**
 * Checks that a document or a statement is for this installation.
 * @throws ApproverError `OTHER_PLACE`
 */
export function assertPlace(
  place: Place,
  what: string,
  value: { mode: string; workspace: string; nodes: string },
): void {
  for (const field of ['mode', 'workspace', 'nodes'] as const)
    if (value[field] !== place[field])
      throw new ApproverError(
        'OTHER_PLACE',
        `${what} is for another installation: its ${field} is ${value[field]}, and that of the trust file is ${place[field]}`,
      )
}
