import type { NodePeer } from '../../../core/signing/nodes.ts'
import { need, type Outcome, type Values } from '../cli/typed.ts'
import { OperatorError } from '../command.ts'
import { orderNodes } from '../nodes.ts'
import { policyViews } from './nodes.ts'

/**
 * Removes the policy of a workspace at these nodes. The nodes permit it in the mode `local` only.
 * @throws OperatorError if no node has one
 */
export async function uninstallAt(signers: readonly NodePeer[], values: Values): Promise<Outcome> {
  const workspace = need(values, 'workspace')
  const before = await policyViews(signers, workspace)
  if (before.views.every(({ first }) => first.length === 0))
    throw new OperatorError(`--workspace: ${workspace} has no policy at these signer nodes`)
  const { problems } = await orderNodes(
    signers,
    'policy-uninstall',
    { workspace },
    {
      expect: { workspace },
    },
  )
  const { views } = await policyViews(signers, workspace)
  const held = views.filter(({ hash }) => hash !== null).map(({ node }) => node)
  return {
    result: { workspace, held },
    text:
      held.length === 0
        ? `the policy of ${workspace} was removed: nothing limits its transfers now`
        : `signer ${held.join(' and signer ')} still has the policy of ${workspace}: nothing is signed for it until all nodes have removed it`,
    exitCode: held.length === 0 ? 0 : 1,
    notices: problems.map(
      (problem) => `warning: the policy was not removed at every node: ${problem}`,
    ),
  }
}
