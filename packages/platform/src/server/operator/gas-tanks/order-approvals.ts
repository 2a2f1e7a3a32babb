import { z } from 'zod'
import { askAll } from '../../../custody/policies/node-answers.ts'
import type { SignerNodes } from '../../../core/signing/nodes.ts'
import { OperatorError } from '../command.ts'

/** Orders that lack approvals at a node; absent in earlier versions of the node. */
const viewShape = z.object({
  orders: z.array(z.object({ order: z.string() })).optional(),
})

/**
 * Checks that people have approved an order at the signer nodes, if a policy requires it. Called
 * before anything is reserved for it: a transaction that a node may have begun to sign keeps its
 * nonce until the order is approved or has expired.
 * @throws OperatorError if a node lacks approvals of it, and no two others would sign it
 */
export async function assertOrderApproved(
  { signers }: { signers: SignerNodes },
  workspace: string,
  order: string,
): Promise<void> {
  const answers = await askAll(signers, viewShape, '/policy', { workspace })
  const views = answers.flatMap((answer) => ('value' in answer ? [answer.value] : []))
  const lacking = views.filter(({ orders = [] }) => orders.some((each) => each.order === order))
  if (lacking.length > 0 && views.length - lacking.length < 2)
    throw new OperatorError(
      `--order: the policy of ${workspace} requires approvals of the order ${order}: each person runs "policy approve-order", then repeat this command`,
    )
}
