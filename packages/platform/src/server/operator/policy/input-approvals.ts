import {
  enrolmentApproval,
  formatUnits,
  orderApproval,
  orderFacts,
  orderSentence,
  readSigned,
  type Approvals,
  type EnrolmentApproval,
  type EnrolmentFacts,
  type OrderApproval,
  type Policy,
  type Statement,
  type TankOrder,
} from '@custody/policy'
import { canonicalJson } from '@custody/request-auth/web'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { z } from 'zod'
import type { NodePeer } from '../../../core/signing/nodes.ts'
import { OperatorError } from '../command.ts'
import { callSigner } from '../connect.ts'
import { differences, type NodeAnswer } from '../nodes.ts'
import { judged, readJsonObject, writeAtomically } from './files.ts'
import type { PolicyView } from './nodes.ts'
import { nowS } from './statements.ts'

/** What people sign of something that operators have entered at the nodes. */
export type InputApproval = EnrolmentApproval | OrderApproval

/** Something that operators have entered at the nodes, and that signs nothing until people approve it. */
export interface OperatorInput {
  approval: InputApproval
  required: Approvals
  /** What the people who sign must have compared with its source. */
  confirm: { value: string; with: string }
  /** Default file for the approvals. */
  file: string
  /** Words for the output: what signs nothing yet, and what is approved. */
  subject: string
  /** Returns whether a node lacks approvals; null if the node does not have it. */
  lacksApprovalAt: (signer: NodePeer) => Promise<boolean | null>
}

/** Writes the collected approvals. The file is also an item for "signer policy present". */
export function writeApprovals(path: string, workspace: string, approvals: string[]): void {
  writeAtomically(path, { kind: 'approved', workspace, approvals })
}

/**
 * Reads the approvals that were collected so far.
 * @returns those of exactly this meaning; empty if there is no file
 * @throws OperatorError that names `--file`
 */
export function readApprovals(path: string, approval: InputApproval): string[] {
  if (!existsSync(path)) return []
  const { kind, approvals } = readJsonObject(path, '--file')
  if (
    kind !== 'approved' ||
    !Array.isArray(approvals) ||
    !approvals.every((each): each is string => typeof each === 'string')
  )
    throw new OperatorError(
      `--file: ${path} is not a file that "policy approve-enrolment" or "policy approve-order" wrote`,
    )
  const meaning = canonicalJson(approval)
  return approvals.filter((text, at) => {
    const { statement } = judged(`--file: approvals[${at}]`, () => readSigned(text))
    return canonicalJson(meaningOf(statement)) === meaning
  })
}

/** Returns an approval without the fields of its place and of its signer. */
function meaningOf(statement: Statement): Partial<InputApproval> {
  if (statement.kind !== 'approval') return {}
  const { kind, policy, id, subject, decision, action, facts } = statement
  return { kind, policy, id, subject, decision, action, facts } as InputApproval
}

/** Calls a command at the nodes. Returns the answers of those that know what it is about. */
async function answersOf(
  signers: readonly NodePeer[],
  command: string,
  body: object,
): Promise<NodeAnswer[]> {
  const settled = await Promise.allSettled(
    signers.map((signer) => callSigner(signer, command, { ...body })),
  )
  return settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value as NodeAnswer] : []))
}

/**
 * Checks that the nodes have the same values, and that one of them lacks approvals.
 * @throws OperatorError that names the option
 */
function assertUnapproved(
  answers: readonly NodeAnswer[],
  expected: Parameters<typeof differences>[1],
  option: string,
): void {
  const problems = differences(answers, expected)
  if (problems.length > 0) throw new OperatorError(`--${option}: ${problems.join('; ')}`)
  if (answers.every((each) => each['needs_approval'] !== true))
    throw new OperatorError(`--${option}: no signer node requires further approvals`)
}

async function lacksApproval(
  signer: NodePeer,
  command: string,
  body: object,
): Promise<boolean | null> {
  const [answer] = await answersOf([signer], command, body)
  return answer ? answer['needs_approval'] === true : null
}

/**
 * Returns the enrolment of an API key, as the nodes have it.
 * @throws OperatorError if no node lacks its approvals, or if the nodes differ
 */
export async function enrolmentInput(
  signers: readonly NodePeer[],
  policy: Policy,
  { home, workspace, apiKey }: { home: string; workspace: string; apiKey: string },
): Promise<OperatorInput> {
  const { enrolment } = policy.document
  if (enrolment === undefined)
    throw new OperatorError(
      `--workspace: the policy of ${workspace} requires no approvals of enrolments; enter the enrolment again at each node, with "api-user enrol", if it still lacks them`,
    )
  const body = { api_key: apiKey }
  const answers = await answersOf(signers, 'enrolment', body)
  const [first] = answers
  if (!first)
    throw new OperatorError(
      `--api-key: ${apiKey} is not enrolled at a signer node of this machine: enrol it first`,
    )
  const alike = ['key_fingerprint', 'role', 'sub_account', 'person']
  assertUnapproved(answers, { expect: { workspace, revoked: false }, alike }, 'api-key')
  const facts: EnrolmentFacts = {
    api_key: apiKey,
    fingerprint: String(first['key_fingerprint']),
    role: first['role'] as EnrolmentFacts['role'],
    sub_account: String(first['sub_account']),
    ...(first['person'] === undefined ? {} : { person: String(first['person']) }),
  }
  return {
    approval: enrolmentApproval(policy, facts),
    required: enrolment.approvals,
    confirm: { value: facts.fingerprint, with: 'the fingerprint with the requester' },
    file: join(home, 'policy-enrolments', `${apiKey}.json`),
    subject: `the API key ${apiKey}`,
    lacksApprovalAt: (signer) => lacksApproval(signer, 'enrolment', body),
  }
}

/**
 * Returns an order about a gas tank, as the nodes have it.
 * @throws OperatorError if no node lacks its approvals, or if the nodes differ
 */
export async function orderInput(
  signers: readonly NodePeer[],
  policy: Policy,
  { home, workspace, order }: { home: string; workspace: string; order: string },
): Promise<OperatorInput> {
  const { orders } = policy.document
  if (orders === undefined)
    throw new OperatorError(
      `--workspace: the policy of ${workspace} requires no approvals of orders`,
    )
  const body = { order }
  const answers = await answersOf(signers, 'order', body)
  const [first] = answers
  if (!first)
    throw new OperatorError(
      `--order: no signer node of this machine has the order ${order}: enter it first, with "gas-tank drain" or "gas-tank stake"`,
    )
  assertUnapproved(answers, { expect: { workspace }, alike: ['to_approve'] }, 'order')
  if (Number(first['expires_at']) < nowS())
    throw new OperatorError(`--order: the order ${order} has expired: enter a new one`)
  const toApprove = orderSchema.parse(first['to_approve'])
  if (toApprove.order !== order)
    throw new OperatorError(
      `--order: signer ${first.node} answered with the order ${toApprove.order}`,
    )
  return {
    approval: orderApproval(policy, toApprove),
    required: orders.approvals,
    confirm: confirmationOf(toApprove),
    file: join(home, 'policy-orders', `${encodeURIComponent(order)}.json`),
    subject: `the order ${order}`,
    lacksApprovalAt: (signer) => lacksApproval(signer, 'order', body),
  }
}

/** A node's answer about an order. That the facts fit the action is verified with the signature. */
const orderSchema = z.strictObject({
  order: z.string(),
  action: z.enum(['drain', 'tank-stake']),
  facts: orderFacts,
})

/** Returns what the people who approve an order must have compared: the address, or the amount. */
function confirmationOf({ facts }: TankOrder): OperatorInput['confirm'] {
  const { to, amount, decimals } = facts
  return to === null
    ? { value: formatUnits(BigInt(amount ?? 0), decimals), with: 'the amount with the operators' }
    : { value: to, with: 'the address with its owner' }
}

const APPROVED_WAIT_MS = 10_000
const APPROVED_PAUSE_MS = 200

/**
 * Waits until no node lacks the approvals of an input, or for 10 seconds, because nodes read them from
 * each other.
 * @returns the nodes that have it and do not lack them
 */
export async function nodesThatApproved(
  signers: readonly NodePeer[],
  { lacksApprovalAt }: OperatorInput,
): Promise<number[]> {
  for (let waitedMs = 0; ; waitedMs += APPROVED_PAUSE_MS) {
    const lacks = await Promise.all(signers.map(lacksApprovalAt))
    if (!lacks.includes(true) || waitedMs >= APPROVED_WAIT_MS)
      return signers.filter((_, at) => lacks[at] === false).map(({ node }) => node)
    await pause(APPROVED_PAUSE_MS)
  }
}

/** Returns a line for each enrolment and each order that lacks its approvals at a node. */
export function unapprovedLines(views: readonly PolicyView[]): string[] {
  const all = views.flatMap(({ node, enrolments = [], orders = [] }) => [
    ...enrolments.map((facts) => ({ node, line: enrolmentText(facts) })),
    ...orders.map((order) => ({ node, line: orderText(order) })),
  ])
  return [...Map.groupBy(all, ({ line }) => line)].map(([line, same]) => {
    const nodes = same.map(({ node }) => `signer ${node}`).join(', ')
    return `NOT APPROVED at ${nodes}: ${line}`
  })
}

const enrolmentText = ({ api_key, role, sub_account, fingerprint }: EnrolmentFacts): string =>
  `API key ${api_key}, ${role}, sub-account ${sub_account}, public key SHA-256 ${fingerprint}`

const orderText = ({ order, facts }: TankOrder): string => `order ${order}: ${orderSentence(facts)}`
