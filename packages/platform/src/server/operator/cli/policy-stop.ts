import { LIMITS, readSigned, statementHash, type Policy } from '@custody/policy'
import { reasonOf } from '@custody/chains/reason'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { NodePeer } from '../../../core/signing/nodes.ts'
import { blockedKeysOf } from '../../../custody/policies/policy-in-force.ts'
import { OperatorError } from '../command.ts'
import { callSigner, localSigners } from '../connect.ts'
import {
  nodesWith,
  presentItem,
  requireInForce,
  type PolicyView,
  type StopView,
} from '../policy/nodes.ts'
import { readStopFile, stopFileOf, writeStopFile, type StopFile } from '../policy/stop-files.ts'
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

const scopeText = (subAccount: string | null): string =>
  subAccount === null ? 'the whole workspace' : `sub-account ${subAccount}`

const subAccountOf = (values: Values): string | null =>
  values['sub-account'] === undefined ? null : need(values, 'sub-account')

const warnings = (problems: readonly string[]): string[] =>
  problems.map((problem) => `warning: ${problem}`)

/** Returns the names of blocked keys, as the nodes report them. */
const blockedOf = (policy: Policy, { suspensions = [], revoked = [] }: PolicyView) =>
  blockedKeysOf(policy.document, suspensions, revoked)

/**
 * Returns a warning if no API key of a sub-account is enrolled, because its name may be misspelt.
 * The stop is signed anyway.
 */
async function spellingOf(
  [signer]: readonly NodePeer[],
  workspace: string,
  subAccount: string | null,
): Promise<string[]> {
  if (subAccount === null || !signer) return []
  const status = (await callSigner(signer, 'status', {}).catch(() => ({}))) as {
    enrolled?: { workspace: string; sub_account: string }[]
  }
  const isKnown = (status.enrolled ?? []).some(
    (each) => each.workspace === workspace && each.sub_account === subAccount,
  )
  return isKnown || !status.enrolled
    ? []
    : [
        `no API key of sub-account ${subAccount} is enrolled at signer ${signer.node}: check its name`,
      ]
}

/** Writes the file by which the stop is ended; it must not prevent the stop. */
function tryWrite(file: StopFile): string[] {
  try {
    writeStopFile(file)
    return []
  } catch (error) {
    return [
      `${file.path} could not be written (${reasonOf(error)}); sign another stop with a writable --out, because the end of a stop requires its file`,
    ]
  }
}

/** Signs a stop and presents it to all nodes of this home. */
export const stop: Run = async ({ home, values }) => {
  const workspace = need(values, 'workspace')
  const signers = localSigners(home)
  const { document, view } = await requireInForce(signers, workspace)
  const policy = compiled(document, 'the policy in force')
  const signer = signerOf(document, values)
  const subAccount = subAccountOf(values)
  const at = nowS()
  const reason = values['reason'] === undefined ? 'no reason given' : need(values, 'reason')
  const signed = signStatement(document, signer, {
    kind: 'stop',
    at,
    expires: at + LIMITS.statementS,
    sub_account: subAccount,
    reason,
  })
  const fault = faultOf(policy, readSigned(signed), blockedOf(policy, view))
  if (fault !== null) throw new OperatorError(`the stop was not signed: ${fault}`)
  const hash = statementHash(readSigned(signed).statement)
  const problems = await presentItem(signers, { kind: 'statement', workspace, signed })
  const path = values['out'] === undefined ? stopFileOf(home, hash) : resolve(need(values, 'out'))
  const unwritten = tryWrite({ path, workspace, stop: signed, approvals: [] })
  const stopped = await nodesWith(signers, workspace, (each) => isStopOf(each, hash))
  return {
    result: { hash, workspace, sub_account: subAccount, stopped, file: path },
    text: [
      `${scopeText(subAccount)} of ${workspace} is stopped at ${nodesText(stopped)}`,
      `the end of the stop requires this file: ${path}`,
    ],
    notices: warnings([
      ...problems,
      ...unwritten,
      ...(await spellingOf(signers, workspace, subAccount)),
    ]),
    exitCode: stopped.length >= Math.min(2, signers.length) ? 0 : 1,
  }
}

const isStopOf = ({ stops = [] }: PolicyView, hash: string): boolean =>
  stops.some((each) => each.hash === hash)

const nodesText = (nodes: readonly number[]): string =>
  nodes.length === 0 ? 'no signer node' : nodes.map((node) => `signer ${node}`).join(', ')

/** Returns the stop to end. @throws OperatorError if it is not in force */
function stopInForce({ stops = [] }: PolicyView, values: Values): StopView {
  const subAccount = subAccountOf(values)
  const match = stops.find(({ sub_account }) => sub_account === subAccount)
  if (match) return match
  const others = stops.map(({ sub_account }) => scopeText(sub_account)).join(', ')
  throw new OperatorError(
    `${subAccount === null ? '--workspace' : '--sub-account'}: ${scopeText(subAccount)} is not stopped; stopped: ${others || 'nothing'}`,
  )
}

/** Returns the file of a stop in force. @throws OperatorError if it is missing or of another stop */
function fileOf(home: string, values: Values, { hash, sub_account }: StopView) {
  const path = values['file'] === undefined ? stopFileOf(home, hash) : resolve(need(values, 'file'))
  if (!existsSync(path))
    throw new OperatorError(
      `--file: the file ${path} with the signed stop does not exist: use the file that "policy stop" wrote, or stop ${scopeText(sub_account)} again, which replaces the stop`,
    )
  const file = readStopFile(path)
  if (file.hash !== hash)
    throw new OperatorError(
      `--file: ${path} contains the stop ${file.hash}, but ${hash} is in force for ${scopeText(sub_account)}`,
    )
  return file
}

/** Adds a person's approval of the end of a stop, and presents it when the approvals are sufficient. */
export const resume: Run = async ({ home, values }) => {
  const workspace = need(values, 'workspace')
  const signers = localSigners(home)
  const { document, view, hash: policyHash } = await requireInForce(signers, workspace)
  const policy = compiled(document, 'the policy in force')
  const signer = signerOf(document, values)
  const stopped = stopInForce(view, values)
  const file = fileOf(home, values, stopped)
  const at = nowS()
  const approval = signStatement(document, signer, {
    kind: 'resume',
    at,
    expires: at + APPROVAL_S,
    policy: { number: document.number, hash: policyHash },
    stop: stopped.hash,
  })
  const blocked = blockedOf(policy, view)
  const fault = faultOf(policy, readSigned(approval), blocked)
  if (fault !== null) throw new OperatorError(`the approval was not signed: ${fault}`)
  const collected = [...without(file.approvals, signer), approval]
  const counted = countCollected(policy, document.resume.approvals, collected, blocked)
  const { path, stop: signedStop } = file
  const kept = { path, workspace, stop: signedStop, approvals: counted.valid }
  writeStopFile(kept)
  const { isMet, needs } = counted
  const result = {
    stop: stopped.hash,
    workspace,
    sub_account: stopped.sub_account,
    needs,
    file: path,
  }
  if (!isMet)
    return {
      result: { ...result, state: 'waiting', resumed: [] },
      text: `${scopeText(stopped.sub_account)} stays stopped: approvals so far: ${needsLine(needs)} (${path})`,
      notices: warnings(counted.faults),
    }
  return present(signers, kept, result)
}

async function present(
  signers: readonly NodePeer[],
  { path: _path, ...item }: StopFile,
  result: { stop: string; sub_account: string | null },
): Promise<Outcome> {
  const problems = await presentItem(signers, { kind: 'resumed', ...item })
  const resumed = await nodesWith(signers, item.workspace, (each) => !isStopOf(each, result.stop))
  return {
    result: { ...result, state: 'resumed', resumed },
    text: `the stop of ${scopeText(result.sub_account)} has ended at ${nodesText(resumed)}`,
    notices: warnings(problems),
    exitCode: resumed.length >= Math.min(2, signers.length) ? 0 : 1,
  }
}
