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

/** Returns the bytes that a node signs: packages/signer/README.md, POST /void. */
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
 * Matches a void of a request that the node could not read. It names the request and not a payment,
 * and the node signed other bytes for it.
 */
const UNREAD = /^\["(?:request|rule)",/

/** Checks whether the nodes' voids prove `failed`; see {@link FailureProof}. Pure function. */
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
  // A void that was signed for an invented forward with this id would prove nothing about a
  // payment.
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
    return unproven('a node has begun to sign it and does not know the outcome', nodes)
  if (nodes.length < VOIDS_NEEDED)
    return unproven(
      `the void is signed by ${nodes.length} of the ${VOIDS_NEEDED} required pinned signer nodes`,
      nodes,
    )
  return { proven: true, nodes, signed: [], reason: null }
}
