import { hasLocalChains } from '@custody/chains/mode'
import { canonicalText, lint, readSigned, type Policy, type PolicyDocument } from '@custody/policy'
import type { NodePeer } from '../../../core/signing/nodes.ts'
import { blockedKeysOf } from '../../../custody/policies/policy-in-force.ts'
import { OperatorError } from '../command.ts'
import { callPlatform, localSigners } from '../connect.ts'
import { judged, readPolicyFile, writePolicyFile, type PolicyFile } from '../policy/files.ts'
import { nodesWith, presentItem, requireInForce, type InForce } from '../policy/nodes.ts'
import {
  APPROVAL_S,
  compiled,
  countCollected,
  faultOf,
  nowS,
  registryOf,
  signerOf,
  signStatement,
  without,
} from '../policy/statements.ts'
import { surroundings } from '../policy/surroundings.ts'
import type { Surroundings } from '../../../custody/policies/lint-surroundings.ts'
import { needsLine } from '../policy/text.ts'
import { lineOf } from './approve-change.ts'
import { need, type Outcome, type Run, type Values } from './typed.ts'

/** Time for the collection of the approvals in seconds, which is added to the delay on mainnet. */
const COLLECTION_S = 3600

/** Checks the next document against the one in force. @throws OperatorError that names the field */
function assertSuccessor(
  document: PolicyDocument,
  inForce: PolicyDocument,
  known: Surroundings,
): void {
  const context = { registry: registryOf(inForce.mode), previous: inForce, ...known }
  const fault = lint(document, context).find(({ severity }) => severity === 'error')
  if (fault) throw new OperatorError(`--file: ${fault.path}: ${fault.message}`)
}

/** Returns the time of the earlier approvals, or the one that the first approval names. */
function actsAtOf(approvals: readonly string[], values: Values, { mode, change }: PolicyDocument) {
  for (const text of approvals) {
    const { statement } = readSigned(text)
    if (statement.kind === 'change') return statement.acts_at
  }
  const inS = values['in'] ?? String(change.delay_s + (hasLocalChains(mode) ? 0 : COLLECTION_S))
  if (typeof inS !== 'string' || !/^\d{1,8}$/.test(inS))
    throw new OperatorError('--in: must be a whole number of seconds')
  return nowS() + Number(inS)
}

/** Returns the approvals in a file that are for its document and that name the document in force. */
function approvalsOf({ approvals }: PolicyFile, policy: Policy, hash: string): string[] {
  return approvals.filter((text) => {
    const { statement } = readSigned(text)
    return (
      statement.kind === 'change' &&
      statement.next.hash === hash &&
      faultOf(policy, { statement, signature: readSigned(text).signature }) === null
    )
  })
}

/** Adds the approval of `--as` to the file. */
function withApproval(
  file: PolicyFile,
  { document: inForce, hash }: InForce,
  policy: Policy,
  values: Values,
): PolicyFile {
  const next = compiled(file.document, '--file')
  const earlier = approvalsOf(file, policy, next.hash)
  if (values['as'] === undefined) return { ...file, approvals: earlier }
  const signer = signerOf(inForce, values)
  const at = nowS()
  const approval = signStatement(inForce, signer, {
    kind: 'change',
    at,
    expires: at + APPROVAL_S,
    policy: { number: inForce.number, hash },
    next: { number: file.document.number, hash: next.hash },
    acts_at: actsAtOf(earlier, values, inForce),
  })
  const fault = faultOf(policy, readSigned(approval))
  if (fault !== null) throw new OperatorError(`the approval was not signed: ${fault}`)
  const changed = { ...file, approvals: [...without(earlier, signer), approval] }
  writePolicyFile(changed)
  return changed
}

/** Proposes a document to the platform, which collects the approvals. */
async function proposeToPlatform(home: string, file: PolicyFile, values: Values): Promise<Outcome> {
  const { document, possessions } = file
  const result = await callPlatform(home, 'policy propose', {
    workspace: need(values, 'workspace'),
    document,
    possessions: possessions.map((text) => JSON.parse(text) as object),
    ...(values['comment'] === undefined ? {} : { comment: need(values, 'comment') }),
    ...(values['in'] === undefined ? {} : { in: values['in'] }),
  })
  const warnings = result['warnings'] as { path: string; message: string }[]
  return {
    result,
    text: [
      lineOf(result as never),
      `each person approves it with "npx custody approve ${String(result['id'])} --as PERSON --key FILE"`,
    ],
    notices: warnings.map((each) => `warning: ${each.path}: ${each.message}`),
  }
}

/**
 * Proposes the next document to the platform. With `--as`, or if the file contains approvals, the
 * approvals are collected in the file instead, and it is presented when they are sufficient.
 */
export const propose: Run = async ({ home, values }) => {
  const workspace = need(values, 'workspace')
  const path = need(values, 'file')
  const file = judged('--file', () => readPolicyFile(path, '--file'))
  if (values['as'] === undefined && file.approvals.length === 0)
    return proposeToPlatform(home, file, values)
  const signers = localSigners(home)
  const inForce = await requireInForce(signers, workspace)
  assertSuccessor(file.document, inForce.document, await surroundings(home, file.document))
  const policy = compiled(inForce.document, 'the policy in force')
  const changed = withApproval(file, inForce, policy, values)
  const { suspensions = [], revoked = [] } = inForce.view
  const { isMet, needs, valid } = countCollected(
    policy,
    inForce.document.change.approvals,
    changed.approvals,
    blockedKeysOf(inForce.document, suspensions, revoked),
  )
  const { hash } = compiled(file.document, '--file')
  const result = { id: hash, number: file.document.number, hash, needs }
  if (isMet) return present(signers, { ...changed, approvals: valid }, result)
  return {
    result: { ...result, state: 'waiting', held: [] },
    text: `policy ${result.number} with hash ${hash} is not proposed yet: approvals so far: ${needsLine(needs)} (${path})`,
  }
}

async function present(
  signers: readonly NodePeer[],
  { document, possessions, approvals }: PolicyFile,
  result: { number: number; hash: string },
): Promise<Outcome> {
  const { workspace } = document
  const { hash, number } = result
  const item = {
    kind: 'change',
    workspace,
    document: canonicalText(document),
    possessions,
    approvals,
  }
  const problems = await presentItem(signers, item)
  const held = await nodesWith(
    signers,
    workspace,
    ({ hash: own, next }) => own === hash || next?.hash === hash,
  )
  return {
    result: { ...result, state: 'proposed', held },
    text: `policy ${number} with hash ${hash} is recorded at ${held.map((node) => `signer ${node}`).join(', ')}; "policy show" prints when it comes into force`,
    notices: problems.map((problem) => `warning: ${problem}`),
  }
}
