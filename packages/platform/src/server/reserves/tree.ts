// The tree of liabilities. It is implemented independently of the client's code that verifies it;
// both follow docs/production/proof-of-reserves.md.
import { createHash, createHmac } from 'node:crypto'
import { canonicalJson } from '@custody/request-auth'
import type { Height } from './chains.ts'

const SUM_LIMIT = 1n << 128n
export const DEPTH_MAX = 32

export interface TreeNode {
  hash: Buffer
  sum: bigint
}
/** Levels of the tree from the padded leaves up to the root node. */
export interface Tree {
  levels: TreeNode[][]
  depth: number
  top: TreeNode
}
export interface Sibling {
  side: 'left' | 'right'
  hash: string
  sum: string
}

function sumBytes(sum: bigint): Buffer {
  if (sum < 0n || sum >= SUM_LIMIT)
    throw new RangeError('a sum of liabilities must be at least 0 and below 2^128')
  return Buffer.from(sum.toString(16).padStart(32, '0'), 'hex')
}

const digest = (tag: string, ...parts: Buffer[]): Buffer => {
  const hash = createHash('sha256').update(`custody/reserves/${tag}/v1\n`)
  for (const part of parts) hash.update(part)
  return hash.digest()
}

const contextOf = (snapshot: string, asset: string): Buffer =>
  digest('context', Buffer.from(canonicalJson({ asset, snapshot })))

/**
 * Returns the node of a leaf.
 * @param blind 32 bytes that identify the owner of the leaf, but only to someone who has the secret
 */
export const leafOf = (
  snapshot: string,
  asset: string,
  blind: Buffer,
  nonce: Buffer,
  balance: bigint,
): TreeNode => ({
  hash: digest('leaf', contextOf(snapshot, asset), blind, nonce, sumBytes(balance)),
  sum: balance,
})

/**
 * Returns the secret that a sub-account receives; it reveals nothing else about the snapshot's
 * secret.
 */
export const secretOf = (secret: Buffer, subAccountId: string): Buffer =>
  createHmac('sha256', secret).update(subAccountId).digest()

export const blindOf = (ownSecret: Buffer, workspace: string, subAccount: string): Buffer =>
  createHmac('sha256', ownSecret)
    .update(canonicalJson([workspace, subAccount]))
    .digest()

function parentOf(left: TreeNode, right: TreeNode): TreeNode {
  const sum = left.sum + right.sum
  sumBytes(sum)
  return {
    hash: digest('node', left.hash, sumBytes(left.sum), right.hash, sumBytes(right.sum)),
    sum,
  }
}

/**
 * Builds the tree.
 * @param leaves leaves in their order; they are padded with empty ones to a power of two
 */
export function treeOf(snapshot: string, asset: string, leaves: readonly TreeNode[]): Tree {
  const depth = Math.max(1, Math.ceil(Math.log2(Math.max(1, leaves.length))))
  if (depth > DEPTH_MAX) throw new RangeError('there are too many leaves')
  const empty = { hash: digest('empty', contextOf(snapshot, asset)), sum: 0n }
  const levels: TreeNode[][] = [
    [...leaves, ...Array.from({ length: 2 ** depth - leaves.length }, () => empty)],
  ]
  for (let level = 0; level < depth; level++) {
    const below = levels[level] as TreeNode[]
    levels.push(
      Array.from({ length: below.length / 2 }, (_, at) =>
        parentOf(below[2 * at] as TreeNode, below[2 * at + 1] as TreeNode),
      ),
    )
  }
  return { levels, depth, top: (levels[depth] as TreeNode[])[0] as TreeNode }
}

/** Returns the sibling nodes on the path from a leaf to the root node. */
export function siblingsOf({ levels, depth }: Tree, place: number): Sibling[] {
  return Array.from({ length: depth }, (_, level) => {
    const at = Math.floor(place / 2 ** level)
    const { hash, sum } = (levels[level] as TreeNode[])[at ^ 1] as TreeNode
    return { side: at % 2 === 0 ? 'right' : 'left', hash: hash.toString('hex'), sum: String(sum) }
  })
}

export interface RootHeader {
  asset: string
  network: string
  from: Height
  to: Height
  snapshot: string
  time: string
  leaves: number
  depth: number
  owed: string
  top: string
}
export const rootOf = (header: RootHeader): string =>
  digest('root', Buffer.from(canonicalJson(header))).toString('hex')
