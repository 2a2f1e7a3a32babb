import {
  loadPaymentRegistry,
  loadRegistry,
  type PaymentRegistry,
  type Registry,
} from '@custody/chains/verify'
import { nodesHash, type PolicyDocument } from '@custody/policy'
import { readTrust, type Trust } from '../trust/trust.ts'
import { cut, refuse } from './errors.ts'

/** The installation, as the trust file pins it. */
export interface Place {
  mode: PolicyDocument['mode']
  workspace: string
  sub_account: string
  /** First element of the derivation paths of the sub-account. */
  sub_account_index: number
  /** Hash of the identity keys of the signer nodes. */
  nodes: string
  /** Assets, networks and addresses of this package. */
  registry: PaymentRegistry
  /**
   * Returns the largest fee of a transaction on a network, in the smallest unit of its native coin.
   * Undefined: the network is not known.
   */
  feeCap(network: string): string | undefined
}

/** DER of a SubjectPublicKeyInfo before the 32 bytes of an Ed25519 key (RFC 8410, section 4). */
const ED25519_SPKI = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00]

/**
 * Returns the installation of a trust file.
 * @param chains of the mode of the trust file
 * @param registry the same, as approvals need it
 * @throws VerificationError `TRUST`
 */
export function placeWith(trust: Trust, chains: Registry, registry: PaymentRegistry): Place {
  const { network, workspace, sub_account, sub_account_index, identities } = readTrust(trust)
  const keys = [...identities].sort(([a], [b]) => a - b)
  return {
    mode: network,
    workspace,
    sub_account,
    sub_account_index,
    nodes: nodesHash(keys.map(([, key]) => Uint8Array.of(...ED25519_SPKI, ...key))),
    registry,
    feeCap: (code) => chains.network(code)?.fee_cap,
  }
}

/**
 * Returns the installation of a trust file, with the registry of this package.
 * @throws VerificationError `TRUST`
 */
export async function placeOf(trust: Trust): Promise<Place> {
  const { network } = readTrust(trust)
  const chains = loadRegistry(network)
  return placeWith(trust, chains, await loadPaymentRegistry(chains))
}

/**
 * Checks that a document or a statement is for this installation.
 * @throws ApprovalError `OTHER_PLACE`
 */
export function assertPlace(
  place: Place,
  what: string,
  value: { mode: string; workspace: string; nodes: string },
): void {
  for (const field of ['mode', 'workspace', 'nodes'] as const)
    if (value[field] !== place[field])
      refuse(
        'OTHER_PLACE',
        `${what} is for another installation: its ${field} is ${cut(value[field])}, and that of the trust file is ${place[field]}`,
      )
}
