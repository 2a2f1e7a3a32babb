// The hashes of a proof of reserves, as docs/production/proof-of-reserves.md specifies them:
// SHA-256 with a separate tag for each kind of input, and parts of fixed length, so that two
// different inputs never have the same bytes.
import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '@noble/hashes/utils.js'
import { canonicalJson } from '@custody/request-auth/web'

/** Exclusive upper limit of sums, which are encoded as sixteen bytes. */
export const SUM_LIMIT: bigint = 1n << 128n
export const DEPTH_MAX = 32

/**
 * A node of the tree: 32 bytes and the sum of all leaves below it, in the asset's smallest unit.
 */
export interface TreeNode {
  hash: Uint8Array
  sum: bigint
}

const CONTEXT = utf8ToBytes('custody/reserves/context/v1\n')
const LEAF = utf8ToBytes('custody/reserves/leaf/v1\n')
const NODE = utf8ToBytes('custody/reserves/node/v1\n')
const ROOT = utf8ToBytes('custody/reserves/root/v1\n')

/**
 * Encodes a sum in big-endian.
 * @throws RangeError if it is negative or does not fit
 */
function sumBytes(sum: bigint): Uint8Array {
  if (sum < 0n || sum >= SUM_LIMIT) throw new RangeError('a sum must be at least 0 and below 2^128')
  return hexToBytes(sum.toString(16).padStart(32, '0'))
}

/** Returns the context that binds a leaf to one asset of one snapshot. */
export const contextOf = (snapshot: string, asset: string): Uint8Array =>
  sha256(concatBytes(CONTEXT, utf8ToBytes(canonicalJson({ asset, snapshot }))))

/** Returns the identifier of a leaf's owner, which reveals nothing without the secret. */
export const blindOf = (secret: Uint8Array, workspace: string, subAccount: string): Uint8Array =>
  hmac(sha256, secret, utf8ToBytes(canonicalJson([workspace, subAccount])))

export const leafOf = (
  context: Uint8Array,
  blind: Uint8Array,
  nonce: Uint8Array,
  balance: bigint,
): TreeNode => ({
  hash: sha256(concatBytes(LEAF, context, blind, nonce, sumBytes(balance))),
  sum: balance,
})

/**
 * Returns the parent of two nodes.
 * @throws RangeError if the sum of both does not fit
 */
export function parentOf(left: TreeNode, right: TreeNode): TreeNode {
  const sum = left.sum + right.sum
  sumBytes(sum)
  return {
    hash: sha256(concatBytes(NODE, left.hash, sumBytes(left.sum), right.hash, sumBytes(right.sum))),
    sum,
  }
}

/** Data that a root binds in addition to the top of the tree. */
export interface RootHeader {
  asset: string
  network: string
  from: Height
  to: Height
  snapshot: string
  time: string
  leaves: number
  depth: number
  /** Sum of all balances, an integer in the smallest unit, decimal. */
  owed: string
  /** Hash of the tree's top, hex. */
  top: string
}
/** A block. The balances were read between two of them. */
export interface Height {
  height: number
  hash: string
}

export const rootOf = ({
  asset,
  network,
  from,
  to,
  snapshot,
  time,
  leaves,
  depth,
  owed,
  top,
}: RootHeader): string =>
  bytesToHex(
    sha256(
      concatBytes(
        ROOT,
        utf8ToBytes(
          canonicalJson({ asset, network, from, to, snapshot, time, leaves, depth, owed, top }),
        ),
      ),
    ),
  )

export const sha256Hex = (text: string): string => bytesToHex(sha256(utf8ToBytes(text)))
