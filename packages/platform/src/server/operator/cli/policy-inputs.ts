import { hasLocalChains, type NetworkMode } from '@custody/chains/mode'
import { readSigned, statementSentences, type Policy } from '@custody/policy'
import { printNotice } from '@custody/chains/terminal'
import { resolve } from 'node:path'
import type { NodePeer } from '../../../core/signing/nodes.ts'
import { blockedKeysOf } from '../../../custody/policies/policy-in-force.ts'
import { OperatorError } from '../command.ts'
import { localSigners } from '../connect.ts'
import { readApiKey } from '../enrol.ts'
import {
  enrolmentInput,
  nodesThatApproved,
  orderInput,
  readApprovals,
  writeApprovals,
  type OperatorInput,
} from '../policy/input-approvals.ts'
import { presentItem, requireInForce } from '../policy/nodes.ts'
import {
  APPROVAL_S,
  compiled,
  countCollected,
  faultOf,
  nowS,
  signerOf,
  signStatement,
  without,
} from '../policy/statements.ts'
import { needsLine } from '../policy/text.ts'
import { need, type Outcome, type Run, type Values } from './typed.ts'

/** Returns why a value is not confirmed, or null. @throws OperatorError if it is another one */
export function unconfirmed(
  mode: NetworkMode,
  { value, with: compared }: OperatorInput['confirm'],
  confirmed: unknown,
): string | null {
  if (confirmed === undefined)
    return hasLocalChains(mode)
      ? null
      : `compare ${compared}, then repeat the command with --confirm ${value}`
  if (confirmed !== value)
    throw new OperatorError(`--confirm: the signer nodes have ${value} on record`)
  return null
}

/** Reads what operators have entered, which people approve. @throws OperatorError */
type Read = (
  signers: readonly NodePeer[],
  policy: Policy,
  typed: { home: string; workspace: string },
) => Promise<OperatorInput>

/**
 * Adds a person's approval of what operators have entered to its file, and presents the approvals when
 * they are sufficient.
 */
async function approve(home: string, values: Values, read: Read): Promise<Outcome> {
  const workspace = need(values, 'workspace')
  const signers = localSigners(home)
  const { document, view } = await requireInForce(signers, workspace)
  const policy = compiled(document, 'the policy in force')
  const signer = signerOf(document, values)
  const input = await read(signers, policy, { home, workspace })
  const at = nowS()
  const approval = signStatement(document, signer, {
    ...input.approval,
    at,
    expires: at + APPROVAL_S,
  })
  const blocked = blockedKeysOf(document, view.suspensions ?? [], view.revoked ?? [])
  const signed = readSigned(approval)
  const fault = faultOf(policy, signed, blocked)
  if (fault !== null) throw new OperatorError(`the approval was not signed: ${fault}`)
  printNotice(statementSentences(signed.statement))
  const { facts } = input.approval
  const missing = unconfirmed(document.mode, input.confirm, values['confirm'])
  if (missing !== null)
    return { result: { ...facts, state: 'unconfirmed' }, text: missing, exitCode: 2 }
  const file = values['file'] === undefined ? input.file : resolve(need(values, 'file'))
  const collected = [...without(readApprovals(file, input.approval), signer), approval]
  const counted = countCollected(policy, input.required, collected, blocked)
  const { needs, isMet, valid } = counted
  writeApprovals(file, workspace, valid)
  const result = { ...facts, workspace, needs, file }
  if (!isMet)
    return {
      result: { ...result, state: 'waiting', approved: [] },
      text: `${input.subject} signs nothing yet: approvals so far: ${needsLine(needs)} (${file})`,
      notices: counted.faults.map((each) => `warning: ${each}`),
    }
  return present(signers, input, { ...result, approvals: valid })
}

async function present(
  signers: readonly NodePeer[],
  input: OperatorInput,
  { approvals, ...result }: { workspace: string; approvals: string[] },
): Promise<Outcome> {
  const { workspace } = result
  const problems = await presentItem(signers, { kind: 'approved', workspace, approvals })
  const approved = await nodesThatApproved(signers, input)
  const nodes = approved.map((node) => `signer ${node}`).join(', ') || 'no signer node'
  return {
    result: { ...result, state: 'approved', approved },
    text: `${input.subject} is approved at ${nodes}`,
    notices: problems.map((problem) => `warning: ${problem}`),
    exitCode: approved.length >= Math.min(2, signers.length) ? 0 : 1,
  }
}

/** Adds a person's approval of the enrolment of an API key. */
export const approveEnrolment: Run = ({ home, values }) => {
  const apiKey = readApiKey(need(values, 'api-key'))
  return approve(home, values, (signers, policy, typed) =>
    enrolmentInput(signers, policy, { ...typed, apiKey }),
  )
}

/** Adds a person's approval of an order about a gas tank. */
export const approveOrder: Run = ({ home, values }) => {
  const order = need(values, 'order')
  return approve(home, values, (signers, policy, typed) =>
    orderInput(signers, policy, { ...typed, order }),
  )
}
