import { transactionId } from '@custody/request-auth/web'
import type { Transaction } from '../types.ts'
import type { FailureProof, OwnRequest, Void } from './proof.ts'
import { signersOf } from './signatures.ts'
import type { PinnedTrust } from './trust.ts'

const VOIDS_NEEDED = 2

function isShaped(value: unknown): value is Void {
  const record = (value as Partial<Void> | null)?.record as Partial<Void['record']> | undefined
  return (
    typeof record === 'object' &&
    record !== null &&
    Number.isInteger(record.node) &&
    Number.isInteger(record.unfinished) &&
    typeof record.intent === 'string' &&
    Array.isArray(record.signed) &&
    record.signed.every((hash) => typeof hash === 'string')
  )
}

/** The bytes that a node signs: packages/signer/README.md, POST /void. */
function voidText({
  node,
  intent,
  transaction_id,
  rule,
  height,
  voided_at,
  signed,
  unfinished,
}: Void['record']): string {
  return `custody/void/v2\n${JSON.stringify({ node, intent, transaction_id, rule, height, voided_at, signed, unfinished })}`
}

/**
 * A void of a request that the node could not read names the request, not a payment: what is signed
 * of it stands elsewhere.
 */
const UNREAD = /^\["(?:request|rule)",/

/** Says whether `failed` is proven by the nodes' voids; see {@link FailureProof}. Pure. */
export function proveFailure(
  trust: PinnedTrust,
  transaction: Transaction,
  own: OwnRequest,
  apiKey: string,
): FailureProof {
  const unproven = (reason: string, nodes: number[] = [], signed: string[] = []): FailureProof => ({
    proven: false,
    nodes,
    signed,
    reason,
  })
  if (transaction.status !== 'failed') return unproven(`it is ${transaction.status}, not failed`)
  const expected =
    'nonce' in own
      ? transactionId(own.apiKey ?? apiKey, own.nonce)
      : 'id' in own
        ? own.id
        : transaction.id
  const rule = 'rule' in own ? own.rule : null
  if (transaction.id !== expected)
    return unproven(`it is not the transaction of this request, ${expected}`)
  // Signed for a made-up forward, a void with this very id would say nothing about a payment.
  const held = (Array.isArray(transaction.voids) ? (transaction.voids as unknown[]) : [])
    .filter(isShaped)
    .filter(
      ({ record }) =>
        record.transaction_id === expected && record.rule === rule && !UNREAD.test(record.intent),
    )
    .filter(
      ({ record, signature }) =>
        signersOf(trust, voidText(record), [{ node: record.node, signature }]).length === 1,
    )
  const nodes = [...new Set(held.map(({ record }) => record.node))].sort((a, b) => a - b)
  const signed = [
    ...new Set([
      ...held.flatMap(({ record }) => record.signed),
      ...(transaction.hash === null ? [] : [transaction.hash]),
    ]),
  ]
  if (signed.length > 0)
    return unproven('it was signed: look up the hashes on the chain', nodes, signed)
  const isUnfinished = held.some(({ record }) => record.unfinished > 0)
  if (isUnfinished)
    return unproven('a node entered signing for it and does not know the outcome', nodes)
  if (nodes.length < VOIDS_NEEDED)
    return unproven(
      `the void is signed by ${nodes.length} of the ${VOIDS_NEEDED} required pinned signer nodes`,
      nodes,
    )
  return { proven: true, nodes, signed: [], reason: null }
}
