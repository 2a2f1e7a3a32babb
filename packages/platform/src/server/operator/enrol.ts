import { API_ROLES } from '@custody/request-auth/roles'
import { personName } from '@custody/policy'
import { randomUUID } from 'node:crypto'
import {
  AuthError,
  canonicalPublicKey,
  fingerprintOfKey,
  parsePublicKey,
} from '@custody/request-auth'
import type { NodePeer } from '../../core/signing/nodes.ts'
import { OperatorError } from './command.ts'
import { callPlatform, callSigner, localSigners, PlatformAway } from './connect.ts'
import { orderNodes, type NodeAnswer } from './nodes.ts'
import { readName } from './workspaces.ts'

/**
 * The operator's parameters of an API user. The API key is generated here, never by the platform.
 */
export interface EnrolmentRequest {
  workspace: string
  subAccount: string
  role: string
  publicKeyPem: string
  apiKey?: string
  index?: number
  /** Person of policy documents who owns the key. Only the nodes store it. */
  person?: string
  /** ID of the control-panel request that it fulfils. */
  request?: string
}

/**
 * The data that a caller pins. It comes from the nodes themselves and is handed over with the API
 * key.
 */
export interface Trust {
  version: 1
  network: string
  workspace: string
  sub_account: string
  sub_account_index: number
  nodes: { node: number; identity: string }[]
}

export interface Enrolled {
  apiKey: string
  index: number
  fingerprint: string
  trust: Trust
  answers: NodeAnswer[]
  problems: string[]
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Reads an API key as an operator entered it. */
export function readApiKey(value: unknown): string {
  if (typeof value !== 'string' || !UUID.test(value)) {
    throw new OperatorError(
      '--api-key: must be a UUID in lower case, as "api-user create" printed it',
    )
  }
  return value
}

/**
 * Validates all entered values before anything is sent.
 * @throws OperatorError that names the option
 */
export function readEnrolment(params: EnrolmentRequest): Required<
  Omit<EnrolmentRequest, 'index' | 'person' | 'request'>
> & {
  index?: number
  person?: string
  fingerprint: string
} {
  const workspace = readName(params.workspace, 'workspace')
  const subAccount = readName(params.subAccount, 'sub-account')
  if (!API_ROLES.some((role) => role === params.role))
    throw new OperatorError(`--role: must be ${API_ROLES.join(', ')}`)
  if (
    params.index !== undefined &&
    (!Number.isInteger(params.index) || params.index < 1 || params.index > 0x7fffffff)
  ) {
    throw new OperatorError('--index: must be an integer from 1')
  }
  const { person } = params
  if (person !== undefined && !personName.safeParse(person).success)
    throw new OperatorError(
      '--person: must be the ID of a person as in policy documents: 1 to 64 of a-z, 0-9, ".", "_", "-"',
    )
  try {
    const publicKeyPem = canonicalPublicKey(params.publicKeyPem)
    const fingerprint = fingerprintOfKey(parsePublicKey(publicKeyPem))
    const apiKey = params.apiKey === undefined ? randomUUID() : readApiKey(params.apiKey)
    return {
      workspace,
      subAccount,
      role: params.role,
      publicKeyPem,
      apiKey,
      fingerprint,
      ...(params.index === undefined ? {} : { index: params.index }),
      ...(person === undefined ? {} : { person }),
    }
  } catch (error) {
    if (error instanceof AuthError) throw new OperatorError(`--public-key: ${error.message}`)
    throw error
  }
}

/**
 * Enrols an API key at these nodes. If a node stores anything other than the entered values, this
 * fails and the key, which has not been handed to a caller yet, is revoked everywhere.
 */
export async function enrolAtNodes(
  signers: readonly NodePeer[],
  params: EnrolmentRequest,
): Promise<Enrolled> {
  const { workspace, subAccount, role, publicKeyPem, apiKey, fingerprint, index, person } =
    readEnrolment(params)
  const body = {
    api_key: apiKey,
    public_key_pem: publicKeyPem,
    role,
    workspace,
    sub_account: subAccount,
    ...(index === undefined ? {} : { index }),
    ...(person === undefined ? {} : { person }),
  }
  const expect = {
    api_key: apiKey,
    key_fingerprint: fingerprint,
    role,
    workspace,
    sub_account: subAccount,
    // A node that reports a person although none was entered has stored another enrolment.
    person,
    ...(index === undefined ? {} : { sub_account_index: index }),
  }
  const { answers, problems } = await orderNodes(signers, 'enrol', body, {
    expect,
    alike: ['sub_account_index', 'mode', 'identities'],
  }).catch(async (error: unknown) => {
    if (params.apiKey === undefined)
      await Promise.allSettled(
        signers.map((signer) => callSigner(signer, 'revoke', { api_key: apiKey })),
      )
    throw error
  })
  const [{ sub_account_index, mode, identities }] = answers as [NodeAnswer]
  const trust = {
    version: 1 as const,
    network: String(mode),
    workspace,
    sub_account: subAccount,
    sub_account_index: Number(sub_account_index),
    nodes: identities as Trust['nodes'],
  }
  return { apiKey, index: Number(sub_account_index), fingerprint, trust, answers, problems }
}

/** Returns a line about the values that a node has stored. */
export function enrolmentLine(answer: NodeAnswer): string {
  const said = (field: string) => String(answer[field])
  const owner = `${said('workspace')} / ${said('sub_account')} (index ${said('sub_account_index')})`
  const person = answer['person'] === undefined ? '' : `, key of ${said('person')}`
  const revoked = answer['revoked'] === true ? ', revoked' : ''
  const pending = answer['needs_approval'] === true ? ', NOT APPROVED' : ''
  return `signer ${answer.node}: ${said('role')} key for ${owner}, RSA key SHA-256 ${said('key_fingerprint')}${person}${revoked}${pending}`
}

/** Returns the command by which people approve an enrolment, if a node requires it. */
export function approvalLines(answers: readonly NodeAnswer[]): string[] {
  const pending = answers.find((each) => each['needs_approval'] === true)
  if (!pending) return []
  const said = (field: string) => String(pending[field])
  return [
    'the API key signs nothing until people of the policy approve its enrolment, each of them with:',
    `npx custody policy approve-enrolment --workspace ${said('workspace')} --api-key ${said('api_key')} --as PERSON --key KEYFILE`,
  ]
}

/**
 * Creates an API user: first at the nodes, then at the platform, which receives the nodes' index
 * and never chooses one.
 * @param signers empty: the nodes are on other hosts, and each was given the order by its own
 *   operator; then `apiKey` and `index` are theirs
 */
export async function createApiUserEverywhere(
  home: string,
  params: EnrolmentRequest,
  rateLimit?: number,
  signers = localSigners(home),
): Promise<
  | Enrolled
  | { apiKey: string; index: number; fingerprint: string; trust: null; answers: []; problems: [] }
> {
  const { workspace, subAccount, role, publicKeyPem, fingerprint } = readEnrolment(params)
  if (signers.length === 0 && (params.apiKey === undefined || params.index === undefined)) {
    throw new OperatorError(
      'the signer nodes run on other hosts: run "custody signer enrol" at each, then this command with the --api-key and --index that they printed (docs/enrolment.md)',
    )
  }
  // Checks that the platform runs; the response is not used.
  await callPlatform(home, 'api-user list', { workspace })
  const enrolled =
    signers.length === 0
      ? {
          apiKey: readApiKey(params.apiKey),
          index: params.index as number,
          fingerprint,
          trust: null,
          answers: [] as [],
          problems: [] as [],
        }
      : await enrolAtNodes(signers, params)
  try {
    await callPlatform(home, 'api-user create', {
      api_key: enrolled.apiKey,
      workspace,
      sub_account: subAccount,
      sub_account_index: enrolled.index,
      role,
      public_key_pem: publicKeyPem,
      rate_limit: rateLimit,
      request: params.request,
    })
  } catch (error) {
    if (error instanceof PlatformAway || !(error instanceof OperatorError)) {
      throw new OperatorError(
        `the signer nodes have enrolled API key ${enrolled.apiKey}, but the platform did not respond: repeat with --api-key ${enrolled.apiKey}`,
      )
    }
    if (params.apiKey === undefined) {
      await Promise.allSettled(
        signers.map((signer) => callSigner(signer, 'revoke', { api_key: enrolled.apiKey })),
      )
    }
    throw error
  }
  return enrolled
}

/**
 * Returns an enrolment on which two nodes agree, for a node that missed it. The data comes from the
 * nodes only.
 */
export async function enrolmentOfNodes(
  signers: readonly NodePeer[],
  apiKey: string,
): Promise<EnrolmentRequest & { index: number }> {
  const { answers } = await orderNodes(
    signers,
    'enrolment',
    { api_key: readApiKey(apiKey) },
    {
      expect: { api_key: apiKey, revoked: false },
      alike: [
        'key_fingerprint',
        'role',
        'workspace',
        'sub_account',
        'sub_account_index',
        'public_key_pem',
        'person',
      ],
    },
    2,
  )
  const [existing] = answers as [NodeAnswer]
  return {
    workspace: String(existing['workspace']),
    subAccount: String(existing['sub_account']),
    role: String(existing['role']),
    publicKeyPem: String(existing['public_key_pem']),
    ...(existing['person'] === undefined ? {} : { person: String(existing['person']) }),
    apiKey,
    index: Number(existing['sub_account_index']),
  }
}
