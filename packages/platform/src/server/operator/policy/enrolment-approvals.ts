import { enrolmentApproval, readSigned, type EnrolmentFacts, type Policy } from '@custody/policy'
import { canonicalJson } from '@custody/request-auth/web'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { NodePeer } from '../../../core/signing/nodes.ts'
import { OperatorError } from '../command.ts'
import { callSigner } from '../connect.ts'
import { differences, type NodeAnswer } from '../nodes.ts'
import { judged, readJsonObject, writeAtomically } from './files.ts'
import type { PolicyView } from './nodes.ts'

/** Returns the default file with the approvals of an enrolment that were collected so far. */
export const enrolmentFileOf = (home: string, apiKey: string): string =>
  join(home, 'policy-enrolments', `${apiKey}.json`)

/** Writes the collected approvals. The file is also an item for "signer policy present". */
export function writeEnrolmentFile(path: string, workspace: string, approvals: string[]): void {
  writeAtomically(path, { kind: 'approved', workspace, approvals })
}

/**
 * Reads the approvals of an enrolment that were collected so far.
 * @returns those under the document in force of exactly these facts; empty if there is no file
 * @throws OperatorError that names `--file`
 */
export function readEnrolmentFile(path: string, policy: Policy, facts: EnrolmentFacts): string[] {
  if (!existsSync(path)) return []
  const { kind, approvals } = readJsonObject(path, '--file')
  if (
    kind !== 'approved' ||
    !Array.isArray(approvals) ||
    !approvals.every((each): each is string => typeof each === 'string')
  )
    throw new OperatorError(`--file: ${path} is not a file that "policy approve-enrolment" wrote`)
  const meaning = canonicalJson(enrolmentApproval(policy, facts))
  return approvals.filter((text, at) => {
    const { statement } = judged(`--file: approvals[${at}]`, () => readSigned(text))
    if (statement.kind !== 'approval' || statement.action !== 'enrolment') return false
    const { kind: of, policy: under, id, subject, decision, action, facts: own } = statement
    return (
      canonicalJson({ kind: of, policy: under, id, subject, decision, action, facts: own }) ===
      meaning
    )
  })
}

/**
 * Returns what people approve of an enrolment, as the nodes have it that lack its approvals.
 * @throws OperatorError if no node lacks them, or if the nodes differ
 */
export async function unapprovedEnrolment(
  signers: readonly NodePeer[],
  workspace: string,
  apiKey: string,
): Promise<EnrolmentFacts> {
  const settled = await Promise.allSettled(
    signers.map((signer) => callSigner(signer, 'enrolment', { api_key: apiKey })),
  )
  const answers = settled.flatMap((each) =>
    each.status === 'fulfilled' ? [each.value as NodeAnswer] : [],
  )
  const [first] = answers
  if (!first)
    throw new OperatorError(
      `--api-key: ${apiKey} is not enrolled at a signer node of this machine: enrol it first`,
    )
  const problems = differences(answers, {
    expect: { workspace, revoked: false },
    alike: ['key_fingerprint', 'role', 'sub_account'],
  })
  if (problems.length > 0) throw new OperatorError(`--api-key: ${problems.join('; ')}`)
  if (answers.every((each) => each['needs_approval'] !== true))
    throw new OperatorError(`--api-key: the enrolment of ${apiKey} requires no further approvals`)
  return {
    api_key: apiKey,
    fingerprint: String(first['key_fingerprint']),
    role: first['role'] as EnrolmentFacts['role'],
    sub_account: String(first['sub_account']),
  }
}

/** Returns whether a node lacks the approvals of an enrolment. */
export const lacksApproval = ({ enrolments = [] }: PolicyView, apiKey: string): boolean =>
  enrolments.some((each) => each.api_key === apiKey)

/** Returns a line for each enrolment that lacks its approvals at a node. */
export function enrolmentLines(views: readonly PolicyView[]): string[] {
  const all = views.flatMap(({ node, enrolments = [] }) =>
    enrolments.map((facts) => ({ node, facts, name: canonicalJson(facts) })),
  )
  return [...Map.groupBy(all, ({ name }) => name).values()].map((same) => {
    const { api_key, role, sub_account, fingerprint } = same[0]!.facts
    const nodes = same.map(({ node }) => `signer ${node}`).join(', ')
    return `NOT APPROVED at ${nodes}: API key ${api_key}, ${role}, sub-account ${sub_account}, public key SHA-256 ${fingerprint}`
  })
}
