import type { Registry } from '@custody/chains'
import {
  claimedNonceAndSubject,
  stringifyJson,
  transactionId,
  type SignedRequest,
} from '@custody/request-auth'
import { ruleBody } from '@custody/request-auth/bodies'
import { findAsset } from '../assets/find-asset.ts'
import { ApiError } from '../../core/errors.ts'
import { endpoint, type Caller } from '../../core/http/endpoint.ts'
import { emit } from '../../core/ledger/post.ts'
import type { Environment } from '../../core/environment.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { Addresses } from '../../core/engine/interfaces/addresses.ts'
import type { Logger } from 'pino'
import { assertNotOwnAddress, checkRule } from '../transactions/check-rule.ts'
import { refusalError, refusalSoon } from '../transactions/payment.ts'
import { findWallet } from '../assets/find-wallet.ts'
import { judgeNewRule } from '../approvals/judge-new-rule.ts'
import type { Judgement } from '../approvals/judgement.ts'
import { openRequest } from '../approvals/requests.ts'
import type { WorkspacePolicies } from '../approvals/workspace-policies.ts'
import { missingReason, newRuleExpiry } from './rule-approvals.ts'
import { expireRules, presentRule, ruleShape, type RuleRow } from './rule.ts'
import { NODES_NEEDED, showRule } from './show-nodes.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  addresses: Addresses
  log: Logger
  policies: WorkspacePolicies
}

/**
 * Creates a standing rule. The signer nodes must receive the request before the response is sent,
 * while its signature is still fresh; later they would not accept it.
 */
export const createRule = endpoint({
  id: 'createForwardingRule',
  tag: 'Auto-forwarding',
  description:
    'Creates a standing rule: incoming funds of the asset are forwarded to one destination, up to a daily cap, until the rule expires. The response is sent after two signer nodes have stored the rule. If the policy of the workspace requires approvals of people, its status is `awaiting_approval`, and nothing is forwarded until they have approved it.',
  errors: [
    'UNSUPPORTED_ASSET',
    'WALLET_MISSING',
    'WALLET_INACTIVE',
    'INVALID_ADDRESS',
    'INVALID_AMOUNT',
    'RULE_EXISTS',
    'SIGNERS_UNAVAILABLE',
    'NETWORK_UNAVAILABLE',
    'POLICY_DENIED',
  ],
  method: 'POST',
  path: '/dac/v1/auto-forwarding',
  summary: 'Forward incoming funds of an asset to one destination',
  access: 'write',
  audit: 'entry',
  body: ruleBody,
  response: ruleShape,
  async handler({ caller, body, signed }, services: Services) {
    const { asset, network } = findAsset(services, body.asset)
    const wallet = await findWallet(services.database, caller, asset.asset_name)
    if (wallet.status !== 'active') {
      throw new ApiError(
        'WALLET_INACTIVE',
        `asset: the ${asset.asset_name} wallet is inactive; no transfer can be sent from it`,
        { field: 'asset' },
      )
    }
    const now = new Date(services.environment.now())
    const rule = checkRule(services, body, { asset, network, now })
    const { min, cap, destination, addressTag } = rule
    await services.addresses.omnibus(network, caller)
    await assertNotOwnAddress(services.database, caller.subAccountId, network, destination)
    const refusal = await refusalSoon(services, services.networks.get(network.code), {
      to: destination,
      tag: addressTag,
      amount: min,
      asset,
    })
    if (refusal) throw refusalError(refusal, 'min_amount')
    const approvals = await judgeNewRule(services, {
      workspace_id: caller.workspaceId,
      network: network.code,
      destination,
      address_tag: addressTag,
      request: signed,
    })

    const id = transactionId(caller.apiKey, claimedNonceAndSubject(signed.token).nonce)
    await writeRule(services, caller, {
      id,
      wallet_id: wallet.id,
      asset: asset.asset_name,
      network: network.code,
      min_amount: min.toString(),
      daily_cap: cap.toString(),
      destination,
      address_tag: addressTag,
      expires_at: body.expires_at,
      request: signed,
      created_at: now,
    })
    services.environment.checkpoint('rule.pending')
    const row = await activate(services, caller, { id, signed, approvals })
    services.environment.checkpoint('rule.active')
    return { body: presentRule(row, services.registry, services.environment.now()) }
  },
})

/** What a new row of `forward_rules` contains. */
type WrittenRule = Pick<
  RuleRow,
  | 'id'
  | 'wallet_id'
  | 'asset'
  | 'network'
  | 'min_amount'
  | 'daily_cap'
  | 'destination'
  | 'address_tag'
  | 'expires_at'
  | 'request'
  | 'created_at'
>

/**
 * Writes a rule in the state PENDING.
 * @throws ApiError `RULE_EXISTS` if another rule forwards the asset
 */
async function writeRule(services: Services, caller: Caller, rule: WrittenRule): Promise<void> {
  await services.database.transaction(async (tx) => {
    await expireRules(tx, rule.created_at)
    const written = await tx.query(
      `insert into forward_rules (id, workspace_id, sub_account_id, wallet_id, asset, network,
        min_amount, daily_cap,
        destination, address_tag, expires_at, request, created_at)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) on conflict do nothing
         returning id`,
      [
        rule.id,
        caller.workspaceId,
        caller.subAccountId,
        rule.wallet_id,
        rule.asset,
        rule.network,
        rule.min_amount,
        rule.daily_cap,
        rule.destination,
        rule.address_tag,
        rule.expires_at,
        JSON.stringify(rule.request),
        rule.created_at,
      ],
    )
    if (written.length > 0) return
    const existing = await tx.one<{ id: string }>(
      `select id from forward_rules where workspace_id = $2 and wallet_id = $1
        and state in ('PENDING', 'ACTIVE', 'PAUSED', 'APPROVAL')`,
      [rule.wallet_id, caller.workspaceId],
    )
    throw new ApiError(
      'RULE_EXISTS',
      `asset: rule ${existing?.id} already forwards incoming ${rule.asset}; delete it first`,
      { field: 'asset', details: { id: existing?.id } },
    )
  })
}

/** A rule that was written. `approvals`: those that the policy requires; null: none. */
interface NewRule {
  id: string
  signed: SignedRequest
  approvals: Judgement | null
}

/**
 * PENDING → ACTIVE, or → APPROVAL if the policy requires approvals, once two nodes have stored the
 * rule; otherwise the rule is given up and ended at the nodes that have stored it.
 */
async function activate(
  services: Services,
  caller: Caller,
  { id, signed, approvals }: NewRule,
): Promise<RuleRow> {
  const { accepted, refused, problems } = await showRule(services, signed)
  if (accepted.length >= NODES_NEEDED) {
    return services.database.transaction(async (tx) => {
      const row = await tx.one<RuleRow>(
        `update forward_rules set state = $5, receipts = $2, next_run_at = $3, updated_at = $3,
           last_error = $6
         where workspace_id = $4 and id = $1 and state = 'PENDING' returning *`,
        [
          id,
          JSON.stringify(accepted),
          tx.now(),
          caller.workspaceId,
          approvals ? 'APPROVAL' : 'ACTIVE',
          approvals && missingReason(approvals),
        ],
      )
      if (!row)
        throw new ApiError(
          'SIGNERS_UNAVAILABLE',
          'the signer nodes did not respond in time; the rule was not created',
        )
      if (approvals) {
        await openRequest(tx, row, approvals, newRuleExpiry(row, tx.now()))
        row.needs = approvals.needs
      }
      await emit(
        tx,
        caller.workspaceId,
        caller.subAccountId,
        'auto_forwarding.created',
        stringifyJson(presentRule(row, services.registry, services.environment.now())),
      )
      return row
    })
  }
  await services.database.query(
    `update forward_rules set state = 'ENDING', next_run_at = $3, last_error = $2, updated_at = $3
     where workspace_id = $4 and id = $1 and state = 'PENDING'`,
    [id, problems.join('; ').slice(0, 500), services.database.now(), caller.workspaceId],
  )
  services.log.warn(
    { rule: id, problems },
    'a forwarding rule was not created: fewer than two signer nodes stored it',
  )
  const [first] = refused.filter(
    ({ code }) => code === 'BAD_REQUEST_FIELD' || code === 'UNKNOWN_ASSET',
  )
  if (first) {
    throw new ApiError(
      'INVALID_REQUEST',
      `the signer nodes rejected this rule: ${first.message}`,
      typeof first.body['field'] === 'string' ? { field: first.body['field'] } : {},
    )
  }
  throw new ApiError(
    'SIGNERS_UNAVAILABLE',
    `fewer than two signer nodes stored the rule, so it was not created: ${problems.join('; ')}`,
  )
}
