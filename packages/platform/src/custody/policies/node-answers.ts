import type { z } from 'zod'
import { ApiError } from '../../core/errors.ts'
import { NodeRefused, NodeUnavailable, type SignerNodes } from '../../core/signing/nodes.ts'

const TIMEOUT_MS = 5000

/** Response of a node, its refusal, or the reason why there is none. */
export type Answer<T> =
  | { node: number; value: T }
  | { node: number; refused: NodeRefused }
  | { node: number; silent: string }

/** Queries one node. A response of another form counts as none. */
export async function askNode<T>(
  signers: SignerNodes,
  node: number,
  shape: z.ZodType<T>,
  path: string,
  body: object,
): Promise<Answer<T>> {
  try {
    const parsed = shape.safeParse(await signers.call(node, 'POST', path, body, TIMEOUT_MS))
    return parsed.success
      ? { node, value: parsed.data }
      : { node, silent: `signer ${node} returned a response of an unknown form` }
  } catch (error) {
    if (error instanceof NodeRefused) return { node, refused: error }
    if (error instanceof NodeUnavailable) return { node, silent: error.message }
    throw error
  }
}

/** Queries all nodes concurrently. */
export const askAll = <T>(
  signers: SignerNodes,
  shape: z.ZodType<T>,
  path: string,
  body: object,
): Promise<Answer<T>[]> =>
  Promise.all(signers.peers.map(({ node }) => askNode(signers, node, shape, path, body)))

/** Responses of the nodes that agree. */
export interface Agreed<T> {
  value: T
  nodes: number[]
}

/**
 * Returns the response in which at least two nodes agree, because one node may lie or lag; undefined
 * if no two agree.
 * @param keyOf responses with the same key agree
 */
export function agreedOf<T>(
  answers: readonly Answer<T>[],
  keyOf: (value: T) => string,
): Agreed<T> | undefined {
  const given = answers.flatMap((answer) => ('value' in answer ? [answer] : []))
  for (const group of Map.groupBy(given, ({ value }) => keyOf(value)).values()) {
    const [first] = group
    if (first && group.length >= 2)
      return { value: first.value, nodes: group.map(({ node }) => node).sort((a, b) => a - b) }
  }
  return undefined
}

const reasonOf = <T>(answer: Answer<T>): string[] =>
  'silent' in answer
    ? [answer.silent]
    : 'refused' in answer
      ? [`signer ${answer.node}: ${answer.refused.code}: ${answer.refused.message}`]
      : []

/** Returns the error if no two nodes agree. */
export function disagreement<T>(answers: readonly Answer<T>[]): ApiError {
  const [reason = 'they have different policies in force'] = answers.flatMap(reasonOf)
  return new ApiError(
    'SIGNERS_UNAVAILABLE',
    `no two signer nodes returned the same about the policy: ${reason}`,
  )
}
