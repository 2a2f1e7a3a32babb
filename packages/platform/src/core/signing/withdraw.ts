import { z } from 'zod'
import { hashOfUnsigned } from '@custody/request-auth/orders'
import type { UnsignedTransaction } from '@custody/chains'
import type { Signing } from './signing.ts'

/** What a node states about orders that the platform withdraws; packages/signer/README.md. */
const answerShape = z.object({
  statement: z.object({
    node: z.int(),
    hashes: z.array(z.string()),
    until: z.int(),
    signed: z.array(z.string()),
    complete_since: z.int(),
  }),
  signature: z.string(),
})

/**
 * Whether orders that failed can still be signed. `isUntouched`: nothing was and nothing will be signed
 * by the orders of one call; `isUnsigned`: by any order until now.
 */
export interface Withdrawn {
  isUntouched: boolean
  isUnsigned: boolean
}

/** A transaction that was submitted to the signer nodes, and of which the platform has no signature. */
export interface OpenTransaction {
  unsigned: UnsignedTransaction
  /** When it was submitted first, Unix milliseconds. */
  submittedAtMs: number
  /** Whether the chain can never include it, by what a final block contains. */
  isDead: () => Promise<boolean>
}

const TIMEOUT_MS = 1500

/**
 * Withdraws orders at the signer nodes. A leader's refusal proves nothing, because a node that leads can
 * keep an order and have it signed later. The own, signed statements of all nodes that were asked to sign
 * prove it: a signature needs two of them, and one of any two is honest.
 * @param o.asked nodes that may have received the orders, as leader or partner
 * @param o.sinceMs when the first of these orders was sent
 */
export async function withdrawOrders(
  { signers, environment }: Pick<Signing, 'signers' | 'environment'>,
  o: { transactions: readonly UnsignedTransaction[]; asked: ReadonlySet<number>; sinceMs: number },
): Promise<Withdrawn> {
  if (o.asked.size === 0) return { isUntouched: true, isUnsigned: false }
  const hashes = o.transactions.map(hashOfUnsigned)
  const until = environment.now()
  /** Times since which the nodes that have signed nothing know all that they have signed. */
  const knownSince = new Map<number, number>()
  await Promise.all(
    signers.peers.map(async ({ node }) => {
      try {
        const answer = answerShape.parse(
          await signers.call(node, 'POST', '/withdraw', { hashes, until }, TIMEOUT_MS),
        )
        if (isOfNothing(signers, answer, { node, hashes, until }))
          knownSince.set(node, answer.statement.complete_since)
      } catch {
        // The node may have signed, and the orders stay as they are.
      }
    }),
  )
  return {
    isUntouched: [...o.asked].every((node) => (knownSince.get(node) ?? Infinity) <= o.sinceMs),
    // A restored node does not know what it had signed before.
    isUnsigned:
      signers.peers.length > 0 && signers.peers.every(({ node }) => knownSince.get(node) === 0),
  }
}

/**
 * Returns whether open transactions have ended: all nodes state that they have signed nothing of them, or
 * the chain has excluded them. Two nodes are not enough, because a signature of the third node with either
 * of them may exist.
 * @returns those that no node has signed, and those that only the chain excludes; null: one may still be
 *   included
 */
export async function endOpen<Open extends OpenTransaction>(
  services: Pick<Signing, 'signers' | 'environment'>,
  open: readonly Open[],
): Promise<{ unsigned: Open[]; excluded: Open[] } | null> {
  const asked = new Set(services.signers.peers.map(({ node }) => node))
  const ended: { unsigned: Open[]; excluded: Open[] } = { unsigned: [], excluded: [] }
  for (const each of open) {
    const o = { transactions: [each.unsigned], asked, sinceMs: each.submittedAtMs }
    if ((await withdrawOrders(services, o)).isUntouched) ended.unsigned.push(each)
    else if (await each.isDead()) ended.excluded.push(each)
    else return null
  }
  return ended
}

/** Returns whether a node states, with its signature, that it has signed none of the transactions. */
function isOfNothing(
  signers: Signing['signers'],
  { statement, signature }: z.infer<typeof answerShape>,
  asked: { node: number; hashes: readonly string[]; until: number },
): boolean {
  const { complete_since } = statement
  const text = JSON.stringify({ ...asked, signed: [], complete_since })
  return (
    statement.signed.length === 0 &&
    signers.verify(asked.node, `custody/order-withdrawn/v1\n${text}`, signature)
  )
}
