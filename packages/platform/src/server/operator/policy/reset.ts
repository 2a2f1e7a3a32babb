import { canonicalText, documentHash } from '@custody/policy'
import { printNotice } from '@custody/chains/terminal'
import type { NodePeer } from '../../../core/signing/nodes.ts'
import { need, type Outcome, type Values } from '../cli/typed.ts'
import { OperatorError } from '../command.ts'
import { orderNodes } from '../nodes.ts'
import { judged, readPolicyFile } from './files.ts'
import { isConfirmed } from './install.ts'
import { inForceOf, policyViews, type PolicyView } from './nodes.ts'
import { resetLines } from './reset-lines.ts'
import { documentLines } from './text.ts'

const namesOf = (views: readonly { node: number }[]): string =>
  views.map(({ node }) => `signer ${node}`).join(', ')

/** Returns what the nodes state about the reset now. */
async function outcome(
  signers: readonly NodePeer[],
  workspace: string,
  { text, problems }: { text: string; problems: readonly string[] },
): Promise<Outcome> {
  const { views } = await policyViews(signers, workspace)
  return {
    result: { workspace, resets: views.map(({ node, reset }) => ({ node, ...reset })) },
    text: [text, ...resetLines(views)],
    exitCode: problems.length === 0 ? 0 : 1,
    notices: problems.map((problem) => `warning: not every signer node accepted it: ${problem}`),
  }
}

/** Withdraws the resets that were entered at these nodes. */
async function cancelAt(signers: readonly NodePeer[], workspace: string): Promise<Outcome> {
  const { views } = await policyViews(signers, workspace)
  const entered = views.filter(({ reset }) => typeof reset?.hash === 'string')
  if (entered.length === 0)
    throw new OperatorError(`--cancel: no reset of ${workspace} was entered at ${namesOf(views)}`)
  const expect = { workspace }
  const { problems } = await orderNodes(signers, 'policy-reset-cancel', { workspace }, { expect })
  return outcome(signers, workspace, {
    text: `the reset of ${workspace} was withdrawn at ${namesOf(entered)}: it cannot come into force unless it is entered there again`,
    problems,
  })
}

/** @throws OperatorError if a node has no policy, or another one than the document replaces */
function assertNext(views: readonly PolicyView[], previous: string, number: number): void {
  if (inForceOf(views) === null)
    throw new OperatorError(
      '--workspace: it has no policy in force: install one with "custody policy install"',
    )
  const other = views.find(({ hash }) => hash !== previous)
  if (other)
    throw new OperatorError(
      `--file: previous: signer ${other.node} has ${other.hash === null ? 'no policy' : `policy ${other.number} with hash ${other.hash}`} in force, and the document replaces policy ${number - 1} with hash ${previous}`,
    )
}

/**
 * Enters the document by which a reset replaces the policy in force at these nodes. The operators of
 * all three nodes must enter the same one; it comes into force seven days later.
 * @throws OperatorError if the file or the confirmation does not fit, or a node refuses it
 */
export async function resetAt(signers: readonly NodePeer[], values: Values): Promise<Outcome> {
  const workspace = need(values, 'workspace')
  if (values['cancel'] === true) {
    if (values['file'] !== undefined || values['confirm'] !== undefined)
      throw new OperatorError('--cancel: must be used without --file and --confirm')
    return cancelAt(signers, workspace)
  }
  const path = need(values, 'file')
  const { document, possessions } = judged('--file', () => readPolicyFile(path, '--file'))
  if (document.workspace !== workspace)
    throw new OperatorError(
      `--workspace: the document is for the workspace ${document.workspace}, not for ${workspace}`,
    )
  const { views } = await policyViews(signers, workspace)
  assertNext(views, document.previous, document.number)
  const hash = documentHash(document)
  printNotice(documentLines(document))
  if (!isConfirmed(values, document, hash))
    return {
      result: { number: document.number, hash, resets: [], confirm: hash },
      text: `nothing was entered: compare the lines above with the people of the new policy and the operators of the other nodes, then run the same command with --confirm ${hash}`,
      exitCode: 2,
    }
  const body = { workspace, document: canonicalText(document), possessions }
  const { problems } = await orderNodes(signers, 'policy-reset', body, { expect: { workspace } })
  return outcome(signers, workspace, {
    text: `the reset to policy ${document.number} with hash ${hash} was entered at ${namesOf(signers)}`,
    problems,
  })
}
