import { claimedNonceAndSubject, type SignedRequest } from '@custody/request-auth'
import { z } from 'zod'
import { HASH_MAX, ID_MAX, KEY_MAX, NAMED_MAX, SIGNED_MAX } from '../bounds.ts'
import type { Signing } from './signing.ts'
import { NodeRefused, type SignerNodes } from './nodes.ts'

/**
 * Record that a node signs for a void; documented in packages/signer/README.md under POST /void.
 */
const recordShape = z
  .object({
    node: z.int().min(1).max(3),
    intent: z.string().max(SIGNED_MAX),
    transaction_id: z.string().max(ID_MAX),
    rule: z.string().max(ID_MAX).nullable().meta({
      description: 'The standing rule whose forward was voided; null: a request of the caller',
    }),
    height: z.int().min(0),
    voided_at: z.int().min(0),
    signed: z.array(z.string().max(HASH_MAX)).meta({
      maxItems: NAMED_MAX,
      description: 'Hashes of the transactions that the node signed for it, without fuel and loans',
    }),
    unfinished: z.int().min(0).meta({
      description: 'Transactions that entered signing and whose outcome the node does not know',
    }),
  })
  .meta({ id: 'VoidRecord' })
/** A void with a node's signature; a caller verifies it with the nodes' identity keys. */
export const voidShape = z
  .object({
    record: recordShape,
    signature: z.string().max(KEY_MAX).meta({
      description:
        'Ed25519, lower-case hex, over custody/void/v2, a line feed, and the JSON of the record',
    }),
  })
  .meta({ id: 'Void' })
export type SignedVoid = z.infer<typeof voidShape>

function isVoid(signers: SignerNodes, node: number, reported: SignedVoid): boolean {
  const { intent, transaction_id, rule, height, voided_at, signed, unfinished } = reported.record
  const text = `custody/void/v2\n${JSON.stringify({ node, intent, transaction_id, rule, height, voided_at, signed, unfinished })}`
  return reported.record.node === node && signers.verify(node, text, reported.signature)
}

/** What nodes answered to a void. `signed`: hashes that they have signed and that may be included. */
export interface VoidOutcome {
  held: number
  needed: number
  signed: string[]
  voids: SignedVoid[]
}

/**
 * Transactions of an intent that are known to be dead: the hashes of those that were signed, and the number of
 * those of which no signature is known. `harmless`: hashes of other transactions, which pay addresses of the workspace.
 */
export interface Dead {
  hashes: readonly string[]
  unsigned: number
  harmless: readonly string[]
}

type Intent =
  | { request: SignedRequest }
  | { transaction_id: string }
  | { forward: { rule: string; id: string } }
interface VoidAnswer {
  voided?: boolean
  record?: unknown
  signature?: unknown
}

/**
 * Error codes of a node that cannot process the request and therefore could never sign for it. Such
 * a node accepts a void by the request's API key and nonce.
 */
const UNREADABLE = new Set(['BAD_ORDER', 'TOO_LARGE', 'NOT_AUTHENTIC', 'NOT_ENROLLED'])

const VOID_TIMEOUT_MS = 5000
const VOIDS_NEEDED = 2

/**
 * Returns the hashes of transactions that a node has already signed and that pay a recipient; null
 * if it refused for another reason. Fuel is not included: it goes to a platform address, and a
 * transaction with its nonce excludes it.
 */
function payingHashes(error: unknown): string[] | null {
  if (!(error instanceof NodeRefused) || error.code !== 'ALREADY_SIGNED') return null
  return (error.body['paying_hashes'] ?? error.body['signed_hashes']) as string[]
}

/**
 * Sends POST /void to one node and returns its response. If the node cannot read the request, it is
 * voided by its API key and nonce.
 * @throws NodeRefused, NodeUnavailable
 */
export async function askForVoid(
  signers: SignerNodes,
  node: number,
  intent: Intent,
  force: boolean,
): Promise<Record<string, unknown>> {
  const call = (by: object) =>
    signers.call<Record<string, unknown>>(node, 'POST', '/void', { ...by, force }, VOID_TIMEOUT_MS)
  try {
    return await call(intent)
  } catch (error) {
    if (!(error instanceof NodeRefused) || !UNREADABLE.has(error.code) || !('request' in intent))
      throw error
    const { sub, nonce } = claimedNonceAndSubject(intent.request.token)
    return call({ name: { api_key: sub, nonce } })
  }
}

/**
 * Voids a request, or one forward of a rule, at the signer nodes, so that nothing more can be
 * signed for it. The caller must know before, by {@link endOpen}, that no transaction of it can still be
 * included: the void of a node proves nothing about what it has signed with another one. Two nodes must
 * store the void before `failed` is reported, and all of them if one states that it has begun to sign a
 * transaction that the caller does not know.
 */
export async function voidIntent(
  services: Signing,
  intent: Intent,
  dead: Dead = { hashes: [], unsigned: 0, harmless: [] },
): Promise<VoidOutcome> {
  const { signers } = services
  const known = new Set([...dead.hashes, ...dead.harmless])
  const unknownOf = (hashes: readonly string[]) => hashes.filter((hash) => !known.has(hash))
  const ask = async (node: number, force: boolean) => {
    const answer = (await askForVoid(signers, node, intent, force)) as VoidAnswer
    const reported = voidShape.safeParse({ record: answer.record, signature: answer.signature })
    return {
      ...answer,
      proof: reported.success && isVoid(signers, node, reported.data) ? reported.data : null,
    }
  }
  const answers = await Promise.allSettled(
    signers.peers.map(({ node }) =>
      ask(node, false).catch((error: unknown) => {
        const hashes = payingHashes(error)
        // Only transactions that can never be included were signed, or begun.
        if (hashes && unknownOf(hashes).length <= dead.unsigned) return ask(node, true)
        throw error
      }),
    ),
  )
  const signed: string[] = []
  const voids: SignedVoid[] = []
  let needed = VOIDS_NEEDED
  for (const answer of answers) {
    if (answer.status === 'fulfilled') {
      const { proof, voided } = answer.value
      // A void without a valid signature does not count, because the caller would receive no proof.
      if (!voided || !proof) continue
      voids.push(proof)
      const { signed: reported, unfinished } = proof.record
      const others = unknownOf(reported)
      const unsigned = dead.hashes.filter((hash) => !reported.includes(hash)).length + dead.unsigned
      if (others.length > dead.unsigned) signed.push(...others)
      else if (others.length + unfinished > unsigned) needed = signers.peers.length
    } else signed.push(...unknownOf(payingHashes(answer.reason) ?? []))
  }
  return { held: voids.length, needed, signed, voids }
}
