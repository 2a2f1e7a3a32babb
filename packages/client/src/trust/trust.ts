import { bytesToHex } from '@noble/hashes/utils.js'
import { ed25519OfPem } from '@custody/request-auth/web'
import { isMode, type NetworkMode } from '@custody/chains/mode'
import { VerificationError } from './errors.ts'

/**
 * Signer nodes that a caller trusts. The operator hands it over together with the API key, as a
 * JSON file, through a channel that is independent of the platform.
 */
export interface Trust {
  version: 1
  /** The mode for which the nodes certify keys. */
  network: NetworkMode
  workspace: string
  sub_account: string
  /** First element of every derivation path of the sub-account. */
  sub_account_index: number
  /**
   * The three signer nodes; `identity` is the PEM of a node's Ed25519 key, as in the platform's
   * peers.json.
   */
  nodes: readonly { node: number; identity: string }[]
}

/** A validated trust object with its keys parsed. */
export interface PinnedTrust extends Omit<Trust, 'nodes'> {
  /** Raw Ed25519 public keys. */
  identities: ReadonlyMap<number, Uint8Array>
}

export interface NodeSignature {
  node: number
  signature: string
}

const NODES = 3
const INDEX_MAX = 0x7fff_ffff

const wrong = (message: string): never => {
  throw new VerificationError('TRUST', `trust: ${message}`)
}

/**
 * Reads an Ed25519 key. Other kinds are rejected, because they would be verified by other rules.
 */
function identityOf(pem: unknown): Uint8Array {
  return (
    (typeof pem === 'string' ? ed25519OfPem(pem) : null) ??
    wrong('each node requires the PEM of its Ed25519 identity')
  )
}

/**
 * Validates a trust object.
 * @throws VerificationError `TRUST`
 */
export function readTrust(value: unknown): PinnedTrust {
  if (typeof value !== 'object' || value === null) return wrong('must be an object')
  const {
    version,
    network,
    workspace,
    sub_account: name,
    sub_account_index: index,
    nodes,
  } = value as Record<string, unknown>
  if (version !== 1) return wrong('must have version 1')
  if (!isMode(network)) return wrong('network must be local, mainnet or regtest-CHAIN_ID')
  if (typeof workspace !== 'string' || workspace === '' || typeof name !== 'string')
    return wrong('workspace and sub_account must be strings')
  // Index 0 is the workspace's gas tanks, which belong to no sub-account.
  if (typeof index !== 'number' || !Number.isInteger(index) || index < 1 || index > INDEX_MAX) {
    return wrong('sub_account_index must be a whole number from 1')
  }
  if (!Array.isArray(nodes) || nodes.length !== NODES) return wrong('must contain three nodes')
  const identities = new Map<number, Uint8Array>()
  const keys = new Set<string>()
  for (const { node, identity } of nodes as { node: unknown; identity: unknown }[]) {
    if (typeof node !== 'number' || !Number.isInteger(node))
      return wrong('each node requires its number')
    const key = identityOf(identity)
    identities.set(node, key)
    keys.add(bytesToHex(key))
  }
  if (identities.size !== NODES || keys.size !== NODES) {
    return wrong('the three nodes must differ: a number or identity appears twice')
  }
  return { version, network, workspace, sub_account: name, sub_account_index: index, identities }
}
