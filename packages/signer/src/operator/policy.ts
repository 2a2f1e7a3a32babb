import { hasLocalChains } from '@custody/chains/mode'
import { z } from 'zod'
import { judgedPolicy, presentPolicy, presentBodySchema } from '../api/policy.ts'
import { Refusal } from '../errors.ts'
import { policyView } from '../governance/view.ts'
import { nodesHash } from '../governance/word.ts'
import type { NodeContext } from '../node-context.ts'
import { POLICY_ITEMS } from '../store/entries/governance.ts'
import { shaped } from '../transport/body.ts'

const workspaceSchema = z.strictObject({ workspace: z.string().min(1).max(200) })
const hashSchema = workspaceSchema.extend({ hash: z.string().regex(/^[0-9a-f]{64}$/) })

/**
 * Enters the first document of a workspace. It comes into force when two nodes hold the same one.
 * @returns what this node holds, and the peers that have read it
 * @throws Refusal `BAD_POLICY`; `PEER_UNAVAILABLE` if a peer's version does not have policies
 */
export async function installPolicy(parts: NodeContext, body: unknown): Promise<unknown> {
  const { exchange } = parts.governance
  const first = shaped(POLICY_ITEMS.first, body)
  if (parts.restoring())
    throw new Refusal(
      'RESTORING',
      'The node was restored and has not yet imported the records of its peers',
    )
  await exchange.assertPeersAble()
  await judgedPolicy(() => {
    exchange.type({ kind: 'first', ...first })
  })
  const told = await exchange.announce()
  return { told, ...policyView(parts, first.workspace) }
}

/**
 * Returns what this node holds about the policy of a workspace, and in `place` the values of `mode`
 * and `nodes` that documents of this installation contain.
 */
export const showPolicy = (parts: NodeContext, body: unknown): unknown => ({
  ...policyView(parts, shaped(workspaceSchema, body).workspace),
  place: { mode: parts.config.mode, nodes: nodesHash(parts.keyring.identities) },
})

/** Judges and records a signed change or statement that the platform may have withheld. */
export const presentByOperator = (parts: NodeContext, body: unknown): Promise<unknown> =>
  presentPolicy(parts, shaped(presentBodySchema, body))

/**
 * Confirms a pending change that a person whom it removes has vetoed. Two nodes are needed.
 * @throws Refusal `BAD_POLICY` if no change with this hash is pending
 */
export async function confirmPolicy(parts: NodeContext, body: unknown): Promise<unknown> {
  const { exchange } = parts.governance
  const { workspace, hash } = shaped(hashSchema, body)
  await judgedPolicy(() => exchange.present({ kind: 'confirmed', workspace, hash }))
  const told = await exchange.announce()
  return { told, ...policyView(parts, workspace) }
}

/**
 * Enters the document by which a reset replaces the policy in force. The operators of all three nodes
 * enter the same one; it comes into force seven days later, unless a change by the people ends it.
 * @returns `is_new`, the peers that have read it, and what this node holds
 * @throws Refusal `BAD_POLICY`; `POLICY_BEHIND` if this node does not have its latest policy
 */
export async function resetPolicy(parts: NodeContext, body: unknown): Promise<unknown> {
  const { exchange, policies } = parts.governance
  const entered = shaped(POLICY_ITEMS.first, body)
  if (parts.restoring())
    throw new Refusal(
      'RESTORING',
      'The node was restored and has not yet imported the records of its peers',
    )
  policies.current(entered.workspace)
  const is_new = await judgedPolicy(() => exchange.resets.enter(entered))
  const told = await exchange.announce()
  return { is_new, told, ...policyView(parts, entered.workspace) }
}

/**
 * Withdraws the reset that this node's operator has entered.
 * @returns `is_new`: whether there was one
 */
export async function cancelReset(parts: NodeContext, body: unknown): Promise<unknown> {
  const { exchange } = parts.governance
  const { workspace } = shaped(workspaceSchema, body)
  const is_new = exchange.resets.withdraw(workspace)
  const told = await exchange.announce()
  return { is_new, told, ...policyView(parts, workspace) }
}

/**
 * Removes the policy of a workspace at this node. Enter it at all three nodes: until then, nothing is
 * signed for the workspace.
 * @returns `is_new`: whether there was one
 * @throws Refusal `NOT_ALLOWED` in another mode than `local`, where only its own rules replace a policy
 */
export async function uninstallPolicy(parts: NodeContext, body: unknown): Promise<unknown> {
  const { exchange } = parts.governance
  const { workspace } = shaped(workspaceSchema, body)
  if (!hasLocalChains(parts.config.mode))
    throw new Refusal(
      'NOT_ALLOWED',
      `A policy cannot be removed in the mode ${parts.config.mode}: propose another document`,
    )
  const is_new = exchange.remove(workspace)
  const told = await exchange.announce()
  return { is_new, told, ...policyView(parts, workspace) }
}

/**
 * Lets this node follow both peers, after a change reached only a part of the nodes: what differs
 * here from the document that both have in force is replaced.
 * @returns `is_new` (whether that changed something), and what this node holds now
 * @throws Refusal `BAD_POLICY` if a peer has another document in force; `PEER_UNAVAILABLE`
 */
export async function followPolicy(parts: NodeContext, body: unknown): Promise<unknown> {
  const { exchange } = parts.governance
  const { workspace, hash } = shaped(hashSchema, body)
  const is_new = await judgedPolicy(() => exchange.follow(workspace, hash))
  const told = await exchange.announce()
  return { is_new, told, ...policyView(parts, workspace) }
}

/**
 * Lets this node sign under the policy in force here, although it has not read those of a peer since
 * it was restored. The decision is recorded, and holds until the node is restored again.
 * @throws Refusal `BAD_POLICY` if another policy is in force here
 */
export function acceptPolicy(parts: NodeContext, body: unknown): unknown {
  const { policies, exchange } = parts.governance
  const { workspace, hash } = shaped(hashSchema, body)
  const governance = policies.held(workspace).governance
  if (governance?.policy.hash !== hash)
    throw new Refusal(
      'BAD_POLICY',
      governance
        ? `The policy in force here has the hash ${governance.policy.hash}`
        : 'The workspace has no policy in force here',
      { code: 'OTHER_POLICY', field: 'hash' },
    )
  exchange.accept(workspace, hash)
  return { node: parts.config.node, workspace, accepted: hash }
}
