import { bytesToHex, hexToBytes } from '@noble/hashes/utils.js'
import { blindOf, contextOf, leafOf, parentOf, type TreeNode } from './hashes.ts'
import { amountOf, assertFields, wrong, type Statement } from './statement.ts'

/**
 * A sub-account's leaf of one asset, and its siblings on the path to the top. Hex; amounts in the
 * smallest unit.
 */
interface LeafProof {
  asset: string
  balance: string
  nonce: string
  /** From the leaf upwards; `side` is the position of the sibling. */
  siblings: { side: 'left' | 'right'; hash: string; sum: string }[]
}

/** Proof for one sub-account, which only it can read: GET /dac/v1/reserves/{id}/proof. */
export interface ReservesProof {
  snapshot: string
  workspace: string
  sub_account: string
  secret: string
  leaves: LeafProof[]
}

export interface ProvenBalance {
  asset: string
  decimals: number
  /** Balance in the smallest unit. */
  balance: string
}

const HASH = /^[0-9a-f]{64}$/
const bytesOf = (value: unknown, what: string): Uint8Array =>
  typeof value === 'string' && HASH.test(value)
    ? hexToBytes(value)
    : wrong(`${what} must be 32 bytes in hex`)

function assertLeaf(statement: Statement, proof: ReservesProof, leaf: LeafProof): ProvenBalance {
  assertFields(leaf, ['asset', 'balance', 'nonce', 'siblings'], 'a leaf of the proof')
  const entry = statement.assets.find(({ asset }) => asset === leaf.asset)
  if (!entry) return wrong(`the statement has no liabilities in ${String(leaf.asset)}`)
  if (!Array.isArray(leaf.siblings) || leaf.siblings.length !== entry.depth) {
    wrong(`the ${leaf.asset} proof has another depth than ${entry.depth}`)
  }
  const balance = amountOf(leaf.balance, `the ${leaf.asset} balance`)
  const blind = blindOf(
    bytesOf(proof.secret, 'the secret of the proof'),
    proof.workspace,
    proof.sub_account,
  )
  let node: TreeNode = leafOf(
    contextOf(statement.id, leaf.asset),
    blind,
    bytesOf(leaf.nonce, `the ${leaf.asset} nonce`),
    balance,
  )
  for (const sibling of leaf.siblings) {
    assertFields(sibling, ['side', 'hash', 'sum'], `a sibling of the ${leaf.asset} proof`)
    const other = {
      hash: bytesOf(sibling.hash, `a sibling of the ${leaf.asset} proof`),
      sum: amountOf(sibling.sum, `a sum of the ${leaf.asset} proof`),
    }
    if (sibling.side !== 'left' && sibling.side !== 'right')
      wrong(`a sibling of the ${leaf.asset} proof has no position in the tree`)
    if (node.sum + other.sum > BigInt(entry.owed))
      wrong(`the ${leaf.asset} proof sums to more than the liabilities in the statement`)
    node = sibling.side === 'left' ? parentOf(other, node) : parentOf(node, other)
  }
  if (node.sum !== BigInt(entry.owed) || bytesToHex(node.hash) !== entry.top) {
    wrong(
      `the ${leaf.asset} balance of ${leaf.balance} is not included in the liabilities of the statement`,
      {
        expected: entry.top,
        actual: bytesToHex(node.hash),
      },
    )
  }
  return { asset: leaf.asset, decimals: entry.decimals, balance: leaf.balance }
}

/**
 * Verifies that each balance of a proof is in the tree that a statement binds.
 * @param owner expected owner; null: the owner that the proof names
 * @throws VerificationError `RESERVES`
 */
export function verifyProof(
  statement: Statement,
  proof: ReservesProof,
  owner: { workspace: string; sub_account: string } | null,
): ProvenBalance[] {
  assertFields(proof, ['snapshot', 'workspace', 'sub_account', 'secret', 'leaves'], 'the proof')
  if (proof.snapshot !== statement.id) {
    wrong('the proof belongs to another snapshot', {
      expected: statement.id,
      actual: String(proof.snapshot),
    })
  }
  if (owner && (proof.workspace !== owner.workspace || proof.sub_account !== owner.sub_account)) {
    wrong('the proof belongs to another sub-account', {
      expected: `${owner.workspace} / ${owner.sub_account}`,
      actual: `${String(proof.workspace)} / ${String(proof.sub_account)}`,
    })
  }
  if (
    typeof proof.workspace !== 'string' ||
    typeof proof.sub_account !== 'string' ||
    !Array.isArray(proof.leaves)
  ) {
    return wrong('the proof is malformed')
  }
  if (new Set(proof.leaves.map((leaf) => leaf?.asset)).size !== proof.leaves.length)
    wrong('the proof contains an asset twice')
  return proof.leaves.map((leaf) => assertLeaf(statement, proof, leaf))
}
