import { resolve } from 'node:path'
import { OperatorError } from '../command.ts'
import { callSigner } from '../connect.ts'
import { nodeAt } from '../nodes.ts'
import { readJsonObject } from '../policy/files.ts'
import { installAt } from '../policy/install.ts'
import type { PolicyView } from '../policy/nodes.ts'
import { resetAt } from '../policy/reset.ts'
import { showAt } from './policy.ts'
import { need, type Run, type Values } from './typed.ts'

// Commands about the policy at one node, on its own host.
const here = (values: Values) => nodeAt(resolve(need(values, 'home')))

export const install: Run = ({ values }) => installAt(null, [here(values)], values)

export const show: Run = async ({ values }) => showAt([here(values)], need(values, 'workspace'))

export const reset: Run = ({ values }) => resetAt([here(values)], values)

const KINDS = ['change', 'statement', 'resumed', 'approved']

export const present: Run = async ({ values }) => {
  const path = need(values, 'file')
  const item = readJsonObject(path, '--file')
  if (!KINDS.includes(String(item['kind'])))
    throw new OperatorError(`--file: kind: must be ${KINDS.join(', ')} in ${path}`)
  const node = here(values)
  const answer = (await callSigner(node, 'policy-present', { item })) as PolicyView & {
    is_new: boolean
  }
  return {
    result: { ...answer },
    text: answer.is_new
      ? `signer ${node.node} has recorded it`
      : `signer ${node.node} had it on record already`,
  }
}

function hashOf(values: Values): string {
  const hash = need(values, 'hash')
  if (!/^[0-9a-f]{64}$/.test(hash))
    throw new OperatorError(
      '--hash: must be 64 lower-case hex digits, as "policy show" prints them',
    )
  return hash
}

export const confirm: Run = async ({ values }) => {
  const node = here(values)
  const hash = hashOf(values)
  const body = { workspace: need(values, 'workspace'), hash }
  const answer = (await callSigner(node, 'policy-confirm', body)) as PolicyView
  return {
    result: { ...answer },
    text: `signer ${node.node} has confirmed the change to the policy with hash ${hash}; two nodes are required`,
  }
}

export const follow: Run = async ({ values }) => {
  const node = here(values)
  const hash = hashOf(values)
  const body = { workspace: need(values, 'workspace'), hash }
  const answer = (await callSigner(node, 'policy-follow', body)) as PolicyView & {
    is_new: boolean
  }
  return {
    result: { ...answer },
    text: answer.is_new
      ? `signer ${node.node} has replaced what differed from the policy with hash ${hash}`
      : `signer ${node.node} has the policy with hash ${hash} already`,
  }
}

export const accept: Run = async ({ values }) => {
  const node = here(values)
  const hash = hashOf(values)
  const body = { workspace: need(values, 'workspace'), hash }
  const answer = (await callSigner(node, 'policy-accept', body)) as Record<string, unknown>
  return {
    result: answer,
    text: `signer ${node.node} signs by the policy with hash ${hash} without having heard its peers, until it is restored again`,
  }
}
