import { enrolmentApproval, readSigned, statementSentences } from '@custody/policy'
import { printNotice } from '@custody/chains/terminal'
import { resolve } from 'node:path'
import type { NodePeer } from '../../../core/signing/nodes.ts'
import { blockedKeysOf } from '../../../custody/policies/policy-in-force.ts'
import { OperatorError } from '../command.ts'
import { localSigners } from '../connect.ts'
import { readApiKey } from '../enrol.ts'
import {
  enrolmentFileOf,
  lacksApproval,
  readEnrolmentFile,
  unapprovedEnrolment,
  writeEnrolmentFile,
} from '../policy/enrolment-approvals.ts'
import { nodesWith, presentItem, requireInForce } from '../policy/nodes.ts'
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
import { need, type Outcome, type Run } from './typed.ts'

/** Returns why a fingerprint is not confirmed, or null. @throws OperatorError if it is another one */
export function unconfirmed(mode: string, fingerprint: string, confirmed: unknown): string | null {
  if (confirmed === undefined)
    return mode === 'local'
      ? null
      : `compare the fingerprint with the requester, then repeat the command with --confirm ${fingerprint}`
  if (confirmed !== fingerprint)
    throw new OperatorError(
      `--confirm: the public key enrolled at the signer nodes has the fingerprint ${fingerprint}`,
    )
  return null
}

/**
 * Adds a person's approval of an enrolment to its file, and presents the approvals when they are
 * sufficient.
 */
export const approveEnrolment: Run = async ({ home, values }) => {
  const workspace = need(values, 'workspace')
  const apiKey = readApiKey(need(values, 'api-key'))
  const signers = localSigners(home)
  const { document, view } = await requireInForce(signers, workspace)
  const policy = compiled(document, 'the policy in force')
  if (document.enrolment === undefined)
    throw new OperatorError(
      `--workspace: the policy of ${workspace} requires no approvals of enrolments; enter the enrolment again at each node, with "api-user enrol", if it still lacks them`,
    )
  const signer = signerOf(document, values)
  const facts = await unapprovedEnrolment(signers, workspace, apiKey)
  const at = nowS()
  const approval = signStatement(document, signer, {
    ...enrolmentApproval(policy, facts),
    at,
    expires: at + APPROVAL_S,
  })
  const blocked = blockedKeysOf(document, view.suspensions ?? [], view.revoked ?? [])
  const signed = readSigned(approval)
  const fault = faultOf(policy, signed, blocked)
  if (fault !== null) throw new OperatorError(`the approval was not signed: ${fault}`)
  printNotice(statementSentences(signed.statement))
  const missing = unconfirmed(document.mode, facts.fingerprint, values['confirm'])
  if (missing !== null)
    return { result: { ...facts, state: 'unconfirmed' }, text: missing, exitCode: 2 }
  const file =
    values['file'] === undefined ? enrolmentFileOf(home, apiKey) : resolve(need(values, 'file'))
  const collected = [...without(readEnrolmentFile(file, policy, facts), signer), approval]
  const counted = countCollected(policy, document.enrolment.approvals, collected, blocked)
  const { needs, isMet, valid } = counted
  writeEnrolmentFile(file, workspace, valid)
  const result = { ...facts, workspace, needs, file }
  if (!isMet)
    return {
      result: { ...result, state: 'waiting', approved: [] },
      text: `the API key ${apiKey} signs nothing yet: approvals so far: ${needsLine(needs)} (${file})`,
      notices: counted.faults.map((each) => `warning: ${each}`),
    }
  return present(signers, { workspace, approvals: valid }, result)
}

async function present(
  signers: readonly NodePeer[],
  item: { workspace: string; approvals: string[] },
  result: { api_key: string },
): Promise<Outcome> {
  const { api_key: apiKey } = result
  const problems = await presentItem(signers, { kind: 'approved', ...item })
  const approved = await nodesWith(signers, item.workspace, (each) => !lacksApproval(each, apiKey))
  const nodes = approved.map((node) => `signer ${node}`).join(', ') || 'no signer node'
  return {
    result: { ...result, state: 'approved', approved },
    text: `the enrolment of the API key ${apiKey} is approved at ${nodes}`,
    notices: problems.map((problem) => `warning: ${problem}`),
    exitCode: approved.length >= Math.min(2, signers.length) ? 0 : 1,
  }
}
