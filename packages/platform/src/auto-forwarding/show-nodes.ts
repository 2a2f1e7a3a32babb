import { reasonOf } from '@custody/chains/reason'
import type { SignedRequest } from '@custody/request-auth'
import type { Services } from '../engine/services.ts'
import { NodeRefused, NodeUnavailable } from '../signing/nodes.ts'
import { askForVoid } from '../signing/void.ts'
import type { RuleRow } from './rule.ts'

const TIMEOUT_MS = 5000
/** A pair of two signs, so that two nodes that know a rule's end stop it. */
export const NODES_NEEDED = 2

interface Told {
  accepted: Record<string, unknown>[]
  refused: NodeRefused[]
  problems: string[]
}

async function tell(
  services: Services,
  ask: (node: number) => Promise<Record<string, unknown>>,
): Promise<Told> {
  const answers = await Promise.allSettled(services.signers.peers.map(({ node }) => ask(node)))
  const told: Told = { accepted: [], refused: [], problems: [] }
  for (const [at, answer] of answers.entries()) {
    if (answer.status === 'fulfilled') told.accepted.push(answer.value)
    else if (answer.reason instanceof NodeRefused) told.refused.push(answer.reason)
    else if (!(answer.reason instanceof NodeUnavailable)) throw answer.reason
    if (answer.status === 'rejected')
      told.problems.push(`signer ${services.signers.peers[at]?.node}: ${reasonOf(answer.reason)}`)
  }
  return told
}

/** Shows the nodes the request that makes a rule, while it is live: from then on they hold it. */
export const showRule = (services: Services, request: SignedRequest) =>
  tell(services, (node) => services.signers.call(node, 'POST', '/receipt', { request }, TIMEOUT_MS))

/**
 * Shows the nodes the end of a rule: its caller's own request, or the request that made it, which
 * anyone may void. `signed`: hashes of its forwards that they know to be signed.
 */
export async function endAtNodes(
  services: Services,
  rule: Pick<RuleRow, 'id' | 'request' | 'end_request'>,
): Promise<{ enough: boolean; problems: string[]; signed: string[] }> {
  const { api_key: _, ...request } = { api_key: '', ...(rule.end_request ?? rule.request) }
  const { accepted, problems } = await tell(services, (node) =>
    askForVoid(services.signers, node, { request }, true),
  )
  // A node also voids a request that it does not understand, which ends no rule.
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
