import { reasonOf } from '@custody/chains/reason'
import type { SignedRequest } from '@custody/request-auth'
import { NodeRefused, NodeUnavailable, type SignerNodes } from '../../core/signing/nodes.ts'
import { askForVoid } from '../../core/signing/void.ts'
import type { RuleRow } from './rule.ts'

interface Services {
  signers: SignerNodes
}

const TIMEOUT_MS = 5000
/**
 * Number of nodes that must store a rule or its end. Two nodes sign together, so two nodes that
 * know the end prevent every signature.
 */
export const NODES_NEEDED = 2

interface NodeReplies {
  accepted: Record<string, unknown>[]
  refused: NodeRefused[]
  problems: string[]
}

async function storeRule(
  services: Services,
  ask: (node: number) => Promise<Record<string, unknown>>,
): Promise<NodeReplies> {
  const answers = await Promise.allSettled(services.signers.peers.map(({ node }) => ask(node)))
  const reported: NodeReplies = { accepted: [], refused: [], problems: [] }
  for (const [at, answer] of answers.entries()) {
    if (answer.status === 'fulfilled') reported.accepted.push(answer.value)
    else if (answer.reason instanceof NodeRefused) reported.refused.push(answer.reason)
    else if (!(answer.reason instanceof NodeUnavailable)) throw answer.reason
    if (answer.status === 'rejected')
      reported.problems.push(
        `signer ${services.signers.peers[at]?.node}: ${reasonOf(answer.reason)}`,
      )
  }
  return reported
}

/**
 * Sends the request that creates a rule to the nodes while its signature is fresh; from then on
 * they store it.
 */
export const showRule = (services: Services, request: SignedRequest) =>
  storeRule(services, (node) =>
    services.signers.call(node, 'POST', '/receipt', { request }, TIMEOUT_MS),
  )

/**
 * Sends the end of a rule to the nodes: the caller's own deletion request, or the request that
 * created the rule, which may be voided without further authorization. `signed`: hashes of its
 * forwards that the nodes know to be signed.
 */
export async function endAtNodes(
  services: Services,
  rule: Pick<RuleRow, 'id' | 'request' | 'end_request'>,
): Promise<{ enough: boolean; problems: string[]; signed: string[] }> {
  const { api_key: _, ...request } = { api_key: '', ...(rule.end_request ?? rule.request) }
  const { accepted, problems } = await storeRule(services, (node) =>
    askForVoid(services.signers, node, { request }, true),
  )
  // A node also voids a request that it cannot interpret; such a void does not end a rule.
  const ended =
    rule.end_request === null
      ? accepted
      : accepted.filter(({ record }) =>
          String((record as { intent?: unknown } | undefined)?.intent).includes(rule.id),
        )
  const signed = [
    ...new Set(
      ended.flatMap(({ signed_hashes }) =>
        Array.isArray(signed_hashes) ? signed_hashes.map(String) : [],
      ),
    ),
  ]
  return {
    enough: ended.length >= NODES_NEEDED,
    signed,
    problems:
      ended.length < accepted.length
        ? [...problems, 'a node rejects the request for a deletion']
        : problems,
  }
}
