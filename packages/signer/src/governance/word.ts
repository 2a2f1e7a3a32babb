import { nodesHash as hashOfNodes } from '@custody/policy'
import { createPublicKey, type KeyObject } from 'node:crypto'
import type { z } from 'zod'
import { canonicalBytes, signBytes, verifyBytes } from '../canonical.ts'
import type { resetWordSchema } from '../store/entries/governance.ts'

const KEYS = ['node', 'workspace', 'number', 'hash', 'height', 'seen_at', 'acts_at'] as const

/**
 * A node's statement that it holds a document. Times in Unix seconds: when it first saw the document
 * complete, and from when on the document is in force at this node.
 */
export interface HeldWord {
  node: number
  workspace: string
  number: number
  hash: string
  /** Height of the entry in the node's record. */
  height: number
  seen_at: number
  acts_at: number
}
export type SignedHeldWord = HeldWord & { signature: string }

const bytesOf = (word: HeldWord): Buffer => canonicalBytes('policyHeld', KEYS, { ...word })

/** Signs a statement by the node's identity key. */
export const signHeld = (identity: KeyObject, word: HeldWord): SignedHeldWord => ({
  ...word,
  signature: signBytes(identity, bytesOf(word)),
})

/** Returns whether a node's identity key signed a statement. */
export const isHeldWord = (identity: KeyObject, { signature, ...word }: SignedHeldWord): boolean =>
  verifyBytes(identity, bytesOf(word), signature)

const IN_FORCE_KEYS = ['node', 'mode', 'nodes', 'workspace', 'number', 'hash', 'at'] as const

/**
 * A node's statement that it judges transactions of a workspace by a document. `nodes`: hash of the
 * identity keys of the installation. `at`: Unix seconds by the clock of the node.
 */
export interface InForceWord {
  node: number
  mode: string
  nodes: string
  workspace: string
  number: number
  hash: string
  at: number
}
/** `stops`: hashes of the stops that apply at the node, in ascending order, with a signature of their own. */
export type SignedInForceWord = InForceWord & {
  signature: string
  stops: readonly string[]
  stops_signature: string
}

/** Signs statements about the document in force and the stops by the node's identity key. */
export function signInForce(
  identity: KeyObject,
  word: InForceWord,
  hashes: readonly string[],
): SignedInForceWord {
  const stops = hashes.toSorted()
  const signed = (tag: 'policyInForce' | 'policyStops', keys: readonly string[]) =>
    signBytes(identity, canonicalBytes(tag, keys, { ...word, stops }))
  return {
    ...word,
    signature: signed('policyInForce', IN_FORCE_KEYS),
    stops,
    stops_signature: signed('policyStops', [...IN_FORCE_KEYS, 'stops']),
  }
}

const RESET_KEYS = ['node', 'workspace', 'number', 'hash', 'given_at'] as const

/** A node's statement that its operator has entered a reset. */
export type SignedResetWord = z.infer<typeof resetWordSchema>
type ResetWord = Omit<SignedResetWord, 'signature'>

const resetBytesOf = (word: ResetWord): Buffer =>
  canonicalBytes('policyReset', RESET_KEYS, { ...word })

/** Signs a statement about a reset by the node's identity key. */
export const signReset = (identity: KeyObject, word: ResetWord): SignedResetWord => ({
  ...word,
  signature: signBytes(identity, resetBytesOf(word)),
})

/** Returns whether a node's identity key signed a statement about a reset. */
export const isResetWord = (
  identity: KeyObject,
  { signature, ...word }: SignedResetWord,
): boolean => verifyBytes(identity, resetBytesOf(word), signature)

/** Returns the name of an installation, which documents and statements contain. */
export const nodesHash = (identities: ReadonlyMap<number, KeyObject>): string =>
  hashOfNodes(
    [...identities]
      .sort(([a], [b]) => a - b)
      .map(([, key]) => {
        const shared = key.type === 'private' ? createPublicKey(key) : key
        return shared.export({ type: 'spki', format: 'der' })
      }),
  )
