import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { reasonOf } from '@custody/chains/reason'
import type { NodePeer } from '../../core/signing/nodes.ts'
import { OperatorError } from './command.ts'
import { callSigner } from './connect.ts'

/**
 * This module sends the operator's orders to the operator sockets of the signer nodes. Only values
 * that the operator entered, or that the nodes store themselves, are sent to a node: a compromised
 * platform must not be able to change an order.
 */

export interface NodeAnswer {
  node: number
  [field: string]: unknown
}

const say = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** Returns the node whose data folder is on this machine, as its operator names it. */
export function nodeAt(home: string): NodePeer {
  const file = join(home, 'config.json')
  if (!existsSync(file))
    throw new OperatorError(`--home: ${home} is not a signer node's home, it has no config.json`)
  const { node, host, port, socket } = JSON.parse(readFileSync(file, 'utf8')) as {
    node: number
    host: string
    port: number
    socket: string
  }
  return { node, host, port, socket, certificate: '', identity: '' }
}

/** Generates an ID of an order about a tank, which is the same at each node. */
export const newOrder = (): string => randomBytes(16).toString('hex')

interface Comparison {
  /** Values that each node must have stored, as the operator entered them. */
  expect: Record<string, unknown>
  /** Fields in which all nodes must agree, whatever the values are. */
  alike?: readonly string[]
}

/**
 * Returns a sentence for each difference between the nodes' responses and the entered values, or
 * between the nodes.
 */
export function differences(
  answers: readonly NodeAnswer[],
  { expect, alike = [] }: Comparison,
): string[] {
  const matches: string[] = []
  for (const answer of answers) {
    for (const [field, value] of Object.entries(expect)) {
      if (say(answer[field]) === say(value)) continue
      matches.push(
        `signer ${answer.node} has ${field} ${say(answer[field] ?? 'nothing')}, but you entered ${say(value ?? 'nothing')}`,
      )
    }
  }
  const [first, ...others] = answers
  if (!first) return matches
  for (const answer of others) {
    for (const field of alike) {
      if (say(answer[field]) === say(first[field])) continue
      matches.push(
        `signer ${answer.node} has ${field} ${say(answer[field])}, but signer ${first.node} has ${say(first[field])}`,
      )
    }
  }
  return matches
}

/**
 * Sends the same order to each of these nodes. At least `least` nodes must accept it.
 * @returns the values that the nodes have stored, and a sentence for each node that did not respond
 * @throws OperatorError if too few accepted, or if a node has stored other values
 */
export async function orderNodes(
  signers: readonly NodePeer[],
  command: string,
  body: Record<string, unknown>,
  comparison: Comparison,
  least = Math.min(2, signers.length),
): Promise<{ answers: NodeAnswer[]; problems: string[] }> {
  if (signers.length === 0) {
    throw new OperatorError(
      'no signer node runs on this machine: run "custody signer …" on the host of each node (docs/enrolment.md)',
    )
  }
  const settled = await Promise.allSettled(
    signers.map((signer) => callSigner(signer, command, body)),
  )
  const problems = settled.flatMap((each, at) =>
    each.status === 'rejected' ? [`signer ${signers[at]?.node}: ${reasonOf(each.reason)}`] : [],
  )
  const answers = settled.flatMap((each, at) =>
    each.status === 'fulfilled'
      ? [{ ...(each.value as NodeAnswer), node: signers[at]?.node as number }]
      : [],
  )
  if (answers.length < least) {
    throw new OperatorError(
      `${least === 2 ? 'fewer than two signer nodes accepted the command' : 'the signer node did not accept the command'}: ${problems.join('; ')}`,
    )
  }
  const differing = differences(answers, comparison)
  if (differing.length > 0) {
    throw new OperatorError(
      `THE SIGNER NODES HAVE STORED OTHER VALUES THAN YOU ENTERED. Find the cause before you continue: ${differing.join('; ')}`,
    )
  }
  return { answers, problems }
}
