import type { Registry } from '@custody/chains'
import { stringifyJson } from '@custody/request-auth'
import { ruleBody, STAKED_ASSET, stakeBody, transferBody } from '@custody/request-auth/bodies'
import { z } from 'zod'
import { findAsset } from '../assets/find-asset.ts'
import { checkedAddress, checkedAmount } from '../staking/body.ts'
import { assertNotOwnAddress, checkRule } from '../transactions/check-rule.ts'
import { checkTransfer } from '../transactions/payment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { Environment } from '../../core/environment.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint, type Caller } from '../../core/http/endpoint.ts'
import { oneOf } from '../../core/http/schemas.ts'
import { readBody } from '../../core/http/validate.ts'
import { ownPath } from '../../core/signing/own-paths.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import {
  evaluationShape,
  isJudged,
  keyOfEvaluation,
  nodeEvaluation,
  presentEvaluation,
  stricter,
  type Evaluation,
  type NodeEvaluation,
} from './evaluation.ts'
import { agreedOf, askNode, disagreement, type Answer } from './node-answers.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
}

const TRANSFER = '/dac/v1/transaction'
const STAKE = '/dav/v1/stake'
const FORWARDING_RULE = '/dac/v1/auto-forwarding'
const REFUND = /^\/dac\/v1\/invoices\/inv_[0-9a-f]{32}\/refund$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

const BODY_FIELDS_MAX = 50
const body = z.strictObject({
  method: oneOf(['POST'], 'Method of the request'),
  uri: z
    .string()
    .max(200)
    .meta({
      description: `Path of the request: \`${TRANSFER}\`, \`${STAKE}\`, \`${FORWARDING_RULE}\`, or that of a refund`,
      examples: [TRANSFER],
    }),
  body: z.looseObject({}).meta({
    maxProperties: BODY_FIELDS_MAX,
    description: 'Body of the request',
    examples: [{ asset: 'ETH', amount: '0.7' }],
  }),
  api_key: z.string().max(36).optional().meta({
    description:
      'API key of the sub-account that would sign the request; by default the calling key. Required in the control panel and for keys without the role full, which cannot sign such a request',
  }),
})

/** Evaluates a request by the policy of the workspace, without making it. */
export const evaluatePolicy = endpoint({
  id: 'evaluatePolicy',
  tag: 'Policy',
  description:
    'States what the policy of the workspace would decide about a transfer, a refund, a stake, or the smallest forward of a forwarding rule: the rule by which it passes, why other rules do not fit, the approvals that it needs, and the time windows. Nothing is created, signed or counted. Two signer nodes evaluate the request, each by its own record, which contains only the signatures in which it took part; so `used` can be lower than at the signature.',
  errors: ['UNSUPPORTED_ASSET', 'INVALID_ADDRESS', 'INVALID_AMOUNT', 'SIGNERS_UNAVAILABLE'],
  method: 'POST',
  path: '/dac/v1/policy/evaluate',
  summary: 'Evaluate a request by the policy',
  access: 'read',
  heavy: { kind: 'policy evaluation', weight: 3, waiting: 8 },
  body,
  example: {
    method: 'POST',
    uri: TRANSFER,
    body: {
      asset: 'ETH',
      amount: '0.7',
      destination_address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
      destination_type: 'EXTERNAL',
      source_type: 'INTERNAL',
    },
  },
  response: evaluationShape,
  async handler({ caller, body: request }, services: Services) {
    const { text, to } = await checked(services, caller, request)
    const api_key = await keyOf(services.database, caller, request.api_key)
    const { method, uri } = request
    const { workspace } = caller
    return {
      body: await evaluateAtTwo(services, {
        workspace,
        api_key,
        method,
        uri,
        body: text,
        ...(await ownPathOf(services, caller, to)),
      }),
    }
  },
})

/** Destination of a payment that a policy may know as the workspace's own. */
interface Destination {
  network: string
  address: string
}

/** Returns the field that names the path of an own destination to the signer nodes. */
async function ownPathOf(
  services: Services,
  { workspaceId }: Caller,
  to: Destination | null,
): Promise<{ to_path?: number[] }> {
  const path = to ? await ownPath(services, workspaceId, to.network, to.address) : undefined
  return path ? { to_path: path } : {}
}

/**
 * Checks the body of a request as its endpoint does.
 * @returns the body as text, and where a payment without a tag goes
 * @throws ApiError 400 that names the field, such as `body.amount`
 */
async function checked(
  services: Services,
  caller: Caller,
  { uri, body: fields }: Pick<z.output<typeof body>, 'uri' | 'body'>,
): Promise<{ text: string; to: Destination | null }> {
  const text = stringifyJson(fields)
  const isRefund = REFUND.test(uri)
  if (![STAKE, TRANSFER, FORWARDING_RULE].includes(uri) && !isRefund)
    throw new ApiError(
      'INVALID_REQUEST',
      `uri: must be ${TRANSFER}, ${STAKE}, ${FORWARDING_RULE} or /dac/v1/invoices/{id}/refund, because policies judge no other request`,
      { field: 'uri' },
    )
  try {
    if (uri === STAKE) return { text, to: checkStake(services, text) }
    if (uri === FORWARDING_RULE) return { text, to: await checkForward(services, caller, text) }
    return { text, to: checkPayment(services, text, isRefund) }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const field = error.field === undefined || error.field === 'body' ? null : error.field
    throw new ApiError(error.code, field === null ? error.message : `body.${error.message}`, {
      field: field === null ? 'body' : `body.${field}`,
    })
  }
}

function checkPayment(services: Services, text: string, isRefund: boolean): Destination | null {
  const transfer = readBody(transferBody, text)
  if (isRefund && transfer.destination_type !== 'EXTERNAL')
    throw new ApiError('INVALID_REQUEST', 'destination_type: must be EXTERNAL for a refund', {
      field: 'destination_type',
    })
  const { asset, network } = findAsset(services, transfer.asset)
  const { destination, addressTag } = checkTransfer(services, transfer, asset, network)
  return addressTag === null ? { network: network.code, address: destination } : null
}

async function checkForward(
  services: Services,
  caller: Caller,
  text: string,
): Promise<Destination | null> {
  const rule = readBody(ruleBody, text)
  const { asset, network } = findAsset(services, rule.asset)
  const now = new Date(services.environment.now())
  const { destination, addressTag } = checkRule(services, rule, { asset, network, now })
  await assertNotOwnAddress(services.database, caller.subAccountId, network, destination)
  return addressTag === null ? { network: network.code, address: destination } : null
}

function checkStake(services: Services, text: string): null {
  const stake = readBody(stakeBody, text)
  const { asset } = findAsset(services, STAKED_ASSET)
  checkedAddress(services, stake.address)
  checkedAmount(stake.amount, asset)
  return null
}

/**
 * Returns the API key that would sign the request.
 * @throws ApiError `INVALID_REQUEST`
 */
async function keyOf(
  database: Database,
  caller: Caller,
  requested: string | undefined,
): Promise<string> {
  const invalid = (message: string): ApiError =>
    new ApiError('INVALID_REQUEST', `api_key: ${message}`, { field: 'api_key' })
  if (requested === undefined) {
    // A session of the control panel is a read-only caller without a key.
    if (caller.role === 'full') return caller.apiKey
    throw invalid('is required, because the caller cannot sign requests: name a key that may')
  }
  const key = requested.toLowerCase()
  const row = UUID.test(key)
    ? await database.one<{ role: string }>(
        `select role from api_users
         where api_key = $1 and sub_account_id = $2 and revoked_at is null`,
        [key, caller.subAccountId],
      )
    : undefined
  if (!row) throw invalid('is not an active API key of the sub-account')
  if (row.role !== 'full') throw invalid(`has the role ${row.role} and cannot sign requests`)
  return key
}

/** Lets two nodes evaluate a request, and the third one if they do not agree. */
async function evaluateAtTwo(
  { environment, signers }: Pick<Services, 'environment' | 'signers'>,
  request: object,
): Promise<Evaluation> {
  const ask = (node: number) => askNode(signers, node, nodeEvaluation, '/policy/evaluate', request)
  const cost = (node: number) => (signers.isPenalised(node, environment.now()) ? 1 : 0)
  const nodes = signers.peers.map(({ node }) => node).sort((a, b) => cost(a) - cost(b))
  const first = await Promise.all(nodes.slice(0, 2).map(ask))
  const answers = agreedOf(first, keyOfEvaluation)
    ? first
    : [...first, ...(await Promise.all(nodes.slice(2).map(ask)))]
  const agreed = agreedOf(answers, keyOfEvaluation) ?? strictestOf(answers)
  if (agreed) return presentEvaluation(agreed.value, agreed.nodes)
  throw refusalOf(answers) ?? disagreement(answers)
}

/**
 * Returns the strictest of the responses under the document of at least two nodes. The windows of
 * any two nodes together contain all signatures, so what is full at one node is full at every pair.
 */
function strictestOf(answers: readonly Answer<NodeEvaluation>[]) {
  const given = answers.flatMap((answer) =>
    'value' in answer && isJudged(answer.value) ? [{ node: answer.node, value: answer.value }] : [],
  )
  for (const group of Map.groupBy(given, ({ value }) => value.policy.hash).values())
    if (group.length >= 2)
      return {
        value: group.reduce(stricter).value,
        nodes: group.map(({ node }) => node).sort((a, b) => a - b),
      }
  return undefined
}

/** Codes by which a node signs no request of the API key. */
const OF_API_KEY = new Set([
  'ENROLMENT_APPROVAL',
  'NOT_ENROLLED',
  'READ_ONLY',
  'WORKSPACE_MISMATCH',
])

/** Returns the error of the caller's request in which two nodes agree; undefined if there is none. */
function refusalOf(answers: readonly Answer<NodeEvaluation>[]): ApiError | undefined {
  const refused = answers.flatMap((answer) => ('refused' in answer ? [answer.refused] : []))
  const agreed = [...Map.groupBy(refused, ({ code }) => code).values()].find(
    (group) => group.length >= 2,
  )
  const [error] = agreed ?? []
  if (!error) return undefined
  const { code, message, body: detail } = error
  if (code === 'BAD_REQUEST_FIELD') {
    const field = `body.${typeof detail['field'] === 'string' ? detail['field'] : ''}`
    return new ApiError('INVALID_REQUEST', `body.${message}`, { field })
  }
  if (code === 'UNKNOWN_ASSET')
    return new ApiError('UNSUPPORTED_ASSET', `body.asset: ${message}`, { field: 'body.asset' })
  if (OF_API_KEY.has(code))
    return new ApiError(
      'INVALID_REQUEST',
      `api_key: the signer nodes would refuse its requests: ${message}`,
      { field: 'api_key' },
    )
  return undefined
}
