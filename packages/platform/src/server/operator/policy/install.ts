import { hasLocalChains } from '@custody/chains/mode'
import {
  canonicalText,
  documentHash,
  install,
  lint,
  readSigned,
  type PolicyDocument,
} from '@custody/policy'
import { printNotice } from '@custody/chains/terminal'
import type { NodePeer } from '../../../core/signing/nodes.ts'
import { need, type Outcome, type Values } from '../cli/typed.ts'
import { OperatorError } from '../command.ts'
import { orderNodes } from '../nodes.ts'
import { judged, readPolicyFile, type PolicyFile } from './files.ts'
import { nodesWith, placeOf, policyViews } from './nodes.ts'
import type { Surroundings } from '../../../custody/policies/lint-surroundings.ts'
import { surroundings } from './surroundings.ts'
import { nowS, registryOf } from './statements.ts'
import { documentLines } from './text.ts'

/**
 * Checks the first document and its proofs as the nodes do.
 * @param place of the installation, as the nodes report it
 * @throws OperatorError that names the field
 */
function assertInstallable(
  { document, possessions }: PolicyFile,
  workspace: string,
  place: Pick<PolicyDocument, 'mode' | 'nodes'>,
  known: Surroundings,
): void {
  if (document.workspace !== workspace)
    throw new OperatorError(
      `--workspace: the document is for the workspace ${document.workspace}, not for ${workspace}`,
    )
  for (const field of ['mode', 'nodes'] as const)
    if (document[field] !== place[field])
      throw new OperatorError(
        `--file: ${field}: must be ${place[field]} at these signer nodes, and is ${document[field]}`,
      )
  const proofs = possessions.map(readSigned)
  const registry = registryOf(document.mode)
  const fault = lint(document, { registry, ...known }).find(({ severity }) => severity === 'error')
  if (fault) throw new OperatorError(`--file: ${fault.path}: ${fault.message}`)
  judged('--file', () =>
    install(
      { document, possessions: proofs },
      { ...place, workspace },
      { registry },
      { now_s: nowS() },
    ),
  )
}

/** Returns whether the operator has confirmed the hash. @throws OperatorError for another hash */
export function isConfirmed(values: Values, { mode }: PolicyDocument, hash: string): boolean {
  if (values['confirm'] === undefined) return hasLocalChains(mode)
  if (values['confirm'] !== hash)
    throw new OperatorError(`--confirm: the document in --file has the hash ${hash}`)
  return true
}

/**
 * Enters the first document of a workspace at these nodes.
 * @param home data folder of the platform; null: the command runs on the host of a node
 */
export async function installAt(
  home: string | null,
  signers: readonly NodePeer[],
  values: Values,
): Promise<Outcome> {
  const workspace = need(values, 'workspace')
  const path = need(values, 'file')
  const file = judged('--file', () => readPolicyFile(path, '--file'))
  const { document, possessions } = file
  const { views } = await policyViews(signers, workspace)
  assertInstallable(file, workspace, placeOf(views), await surroundings(home, document, signers))
  const hash = documentHash(document)
  const other = views.find((view) => view.hash !== null && view.hash !== hash)
  if (other)
    throw new OperatorError(
      `--workspace: signer ${other.node} has policy ${other.number} with hash ${other.hash} in force for ${workspace}: change it with "npx custody policy propose"`,
    )
  printNotice(documentLines(document))
  if (!isConfirmed(values, document, hash))
    return {
      result: { number: document.number, hash, held: [], confirm: hash },
      text: `nothing was entered: compare the lines above with what the people have signed, then run the same command with --confirm ${hash}`,
      exitCode: 2,
    }
  const body = { workspace, document: canonicalText(document), possessions }
  const { problems } = await orderNodes(signers, 'policy-install', body, { expect: { workspace } })
  const isAlone = signers.length === 1
  const held = isAlone
    ? (await policyViews(signers, workspace)).views.flatMap((view) =>
        view.hash === hash ? [view.node] : [],
      )
    : await nodesWith(signers, workspace, (view) => view.hash === hash)
  const entered = signers.map(({ node }) => `signer ${node}`).join(', ')
  return {
    result: { number: document.number, hash, held },
    text:
      held.length > 0
        ? `policy ${document.number} with hash ${hash} is in force at ${held.map((node) => `signer ${node}`).join(', ')}`
        : `policy ${document.number} with hash ${hash} was entered at ${entered}; it comes into force when two nodes have it`,
    notices: problems.map(
      (problem) => `warning: the document was not entered at every node: ${problem}`,
    ),
  }
}
