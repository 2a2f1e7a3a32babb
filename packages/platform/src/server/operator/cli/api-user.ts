import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { reasonOf } from '@custody/chains/reason'
import { OperatorError } from '../command.ts'
import { callPlatform, localSigners } from '../connect.ts'
import {
  approvalLines,
  createApiUserEverywhere,
  enrolAtNodes,
  enrolmentLine,
  enrolmentOfNodes,
  readApiKey,
  type Trust,
  type EnrolmentRequest,
} from '../enrol.ts'
import { orderNodes, type NodeAnswer } from '../nodes.ts'
import { linesOr, need, readPublicKey, warn, type Run, type Values } from './typed.ts'

/** Returns the entered parameters of an API user. */
export function wishOf(values: Values): EnrolmentRequest {
  const publicKeyPem = readPublicKey(need(values, 'public-key'))
  return {
    workspace: need(values, 'workspace'),
    subAccount: need(values, 'sub-account'),
    role: need(values, 'role'),
    publicKeyPem,
    ...(values['api-key'] === undefined ? {} : { apiKey: need(values, 'api-key') }),
    ...(values['index'] === undefined
      ? {}
      : {
          index: Number(values['index']),
        }),
    ...(values['person'] === undefined ? {} : { person: need(values, 'person') }),
    ...(values['request'] === undefined ? {} : { request: readRequest(values) }),
  }
}

/** Returns the ID of a control-panel request, which the command shown by the panel contains. */
function readRequest(values: Values): string {
  const id = need(values, 'request')
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id))
    throw new OperatorError(
      '--request: must be the UUID of a request, as the control panel shows it',
    )
  return id
}

/**
 * Writes the caller's trust file, if the option for it was given. Returns a line that states this.
 */
export function writeTrust(values: Values, trust: Trust | null): string[] {
  if (values['trust-file'] === undefined) return []
  if (!trust)
    throw new OperatorError(
      '--trust-file: no signer node runs on this machine: omit it here, and use it with "custody signer enrol" on the host of a node',
    )
  const file = resolve(need(values, 'trust-file'))
  writeFileSync(file, `${JSON.stringify(trust, null, 2)}\n`)
  return [`trust file for the API user: ${file}`]
}

export const create: Run = async ({ home, values }) => {
  const { apiKey, index, fingerprint, trust, answers, problems } = await createApiUserEverywhere(
    home,
    wishOf(values),
    values['rate-limit'] === undefined ? undefined : Number(values['rate-limit']),
  )
  warn(
    problems,
    'the API key is not enrolled at every signer node (run "api-user enrol" for the rest)',
  )
  const created = {
    api_key: apiKey,
    workspace: values['workspace'],
    sub_account: values['sub-account'],
    sub_account_index: index,
    role: values['role'],
    ...(values['person'] === undefined ? {} : { person: values['person'] }),
    key_fingerprint: fingerprint,
    nodes: answers,
  }
  const lines = [
    `API key ${apiKey} (${String(values['role'])}) for ${String(values['workspace'])} / ${String(values['sub-account'])}`,
    ...answers.map(enrolmentLine),
    ...approvalLines(answers),
    ...writeTrust(values, trust),
  ]
  return { result: created, text: lines }
}

/**
 * Repeats an enrolment at every node: with the entered values, or, with the API key alone, with
 * values on which two nodes agree.
 */
export const enrol: Run = async ({ home, values }) => {
  const signers = localSigners(home)
  const apiKey = need(values, 'api-key')
  const params =
    values['public-key'] === undefined ? await enrolmentOfNodes(signers, apiKey) : wishOf(values)
  const { answers, trust, problems } = await enrolAtNodes(signers, { ...params, apiKey })
  warn(problems, 'the API key was not enrolled')
  return {
    result: { api_key: apiKey, enrolled: true, nodes: answers, problems },
    text: [
      `API key ${apiKey} is enrolled`,
      ...answers.map(enrolmentLine),
      ...approvalLines(answers),
      ...writeTrust(values, trust),
    ],
    exitCode: problems.length === 0 ? 0 : 1,
  }
}

/**
 * Revokes an API key: first at the nodes, because they sign. The platform is notified even if nodes
 * fail.
 */
export const revoke: Run = async ({ home, values }) => {
  const apiKey = readApiKey(need(values, 'api-key'))
  const signers = localSigners(home)
  const nodes =
    signers.length === 0
      ? { answers: [], problems: [] }
      : await orderNodes(
          signers,
          'revoke',
          { api_key: apiKey },
          { expect: { api_key: apiKey, revoked: true } },
        ).catch((error: unknown) => ({ answers: [] as NodeAnswer[], problems: [reasonOf(error)] }))
  const platform = await callPlatform(home, 'api-user revoke', { api_key: apiKey }).then(
    () => null,
    (error: Error) => `the platform: ${error.message}`,
  )
  const existing = nodes.answers.filter((answer) => answer['known'] === true)
  warn(nodes.problems, 'the API key was not revoked')
  if (platform !== null && existing.length === 0)
    throw new OperatorError(`--api-key: API user ${apiKey} does not exist (${platform})`)
  if (platform !== null) warn([platform], 'the API key was not revoked')
  const isDone = platform === null && nodes.answers.length >= Math.min(2, signers.length)
  return {
    result: { api_key: apiKey, revoked: isDone, nodes: nodes.answers },
    text: [`API key ${apiKey} is ${isDone ? '' : 'NOT '}revoked`, ...existing.map(enrolmentLine)],
    exitCode: isDone ? 0 : 1,
  }
}

export const list: Run = async ({ home, values }) => {
  const result = (await callPlatform(home, 'api-user list', {
    workspace: values['workspace'],
  })) as { api_users: Record<string, string>[] }
  const lines = result.api_users.map(
    (user) =>
      `${user['api_key']}  ${user['role']}  ${user['workspace']} / ${user['sub_account']}${user['revoked_at'] ? '  revoked' : ''}`,
  )
  return { result: { ...result }, text: linesOr(lines, 'no API users') }
}
