import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'

/**
 * Returns the name of an installation, which documents and statements contain: lower-case hex
 * SHA-256 of `custody/nodes/v1\n` and the hex of each public identity key, one per line.
 * @param identities DER SPKI of the identity key of each node, in the order of the nodes
 */
export const nodesHash = (identities: readonly Uint8Array[]): string =>
  bytesToHex(sha256(utf8ToBytes(`custody/nodes/v1\n${identities.map(bytesToHex).join('\n')}\n`)))
