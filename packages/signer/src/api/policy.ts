import { PolicyError } from '@custody/policy'
import { z } from 'zod'
import { Refusal } from '../errors.ts'
import { itemSchema } from '../governance/items.ts'
import { policyView } from '../governance/view.ts'
import { nodesHash, signInForce, type SignedInForceWord } from '../governance/word.ts'
import type { NodeContext } from '../node-context.ts'

export const policyBodySchema = z.strictObject({ workspace: z.string().min(1).max(200) })
export const presentBodySchema = z.strictObject({ item: itemSchema })

/**
 * Returns the result of a call that judges a document or a statement.
 * @throws Refusal `BAD_POLICY` with the code and the field of a `PolicyError`
 */
export async function judgedPolicy<T>(call: () => T | Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    throw new Refusal('BAD_POLICY', error.message, { code: error.code, field: error.path })
  }
}

/**
 * Returns this node's statements about the document in force and the stops, which callers verify with their trust
 * files. Null if the workspace has no policy, or if this node would refuse to sign with `POLICY_BEHIND`.
 */
function inForce(parts: NodeContext, workspace: string): SignedInForceWord | null {
  const { config, governance, keyring, store } = parts
  try {
    const current = governance.policies.current(workspace)
    if (current === null) return null
    governance.exchange.assertCurrent(current)
    const { document, hash } = current.policy
    const word = {
      node: config.node,
      mode: config.mode,
      nodes: nodesHash(keyring.identities),
      workspace,
      number: document.number,
      hash,
      at: store.seconds(),
    }
    return signInForce(
      config.identity,
      word,
      current.stops.map((stop) => stop.hash),
    )
  } catch (error) {
    if (error instanceof Refusal && error.code === 'POLICY_BEHIND') return null
    throw error
  }
}

/** `POST /policy`: what this node holds about the policy of a workspace. */
export const policy = (
  parts: NodeContext,
  { workspace }: z.infer<typeof policyBodySchema>,
): Record<string, unknown> => ({
  ...policyView(parts, workspace),
  in_force: inForce(parts, workspace),
})

/**
 * `POST /policy/present`: judges a change, a statement or the end of a stop by the policy in force,
 * records it, and informs both peers.
 * @returns `is_new`, `told` (the peers that have read it), and what this node holds now
 * @throws Refusal `BAD_POLICY`; `NOT_ALLOWED` for what only an operator may enter
 */
export async function presentPolicy(
  parts: NodeContext,
  { item }: z.infer<typeof presentBodySchema>,
): Promise<Record<string, unknown>> {
  if (item.kind === 'first' || item.kind === 'confirmed')
    throw new Refusal('NOT_ALLOWED', `Only the operator of this node can enter "${item.kind}"`)
  const { exchange } = parts.governance
  const is_new = await judgedPolicy(() => exchange.present(item))
  const told = await exchange.announce()
  return { is_new, told, ...policyView(parts, item.workspace) }
}
