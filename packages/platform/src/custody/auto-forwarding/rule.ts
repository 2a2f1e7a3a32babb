import { formatAmount, type Registry } from '@custody/chains'
import { LIMITS } from '@custody/policy'
import type { SignedRequest } from '@custody/request-auth'
import { z } from 'zod'
import {
  ADDRESS_MAX,
  HASH_MAX,
  ID_MAX,
  MESSAGE_MAX,
  NAMED_MAX,
  NAME_MAX,
  NODES,
  WORD_MAX,
} from '../../core/bounds.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { exact } from '../../core/decimals.ts'
import { needShape, type Need } from '../approvals/judgement.ts'
import { closeRequest } from '../approvals/requests.ts'

interface Services {
  database: Database
}

export type RuleState =
  | 'PENDING'
  | 'ACTIVE'
  | 'PAUSED'
  | 'APPROVAL'
  | 'EXPIRED'
  | 'ENDING'
  | 'ENDED'

/** A row of `forward_rules`. Amounts are decimal strings in the smallest unit. */
export interface RuleRow {
  id: string
  workspace_id: string
  sub_account_id: string
  wallet_id: string
  asset: string
  network: string
  min_amount: string
  daily_cap: string
  destination: string
  address_tag: string | null
  expires_at: Date
  state: RuleState
  request: SignedRequest
  receipts: unknown[]
  end_request: (SignedRequest & { api_key: string }) | null
  /**
   * Hashes of transactions that a node reported when the rule was ended and that are not yet in a
   * final block.
   */
  outstanding?: string[]
  waiting: string
  /** Amount of the forward that requires approvals; null: each forward requires them. */
  approval_amount: string | null
  /** The approvals that are required of a rule in the state APPROVAL. */
  needs?: Need[] | null
  /** Why the platform ended the rule. */
  end_reason: string | null
  last_error: string | null
  failures: number
  next_run_at: Date | null
  created_at: Date
  updated_at: Date
}

const STATUS = {
  PENDING: 'pending',
  ACTIVE: 'active',
  PAUSED: 'paused',
  APPROVAL: 'awaiting_approval',
  EXPIRED: 'expired',
  ENDING: 'deleting',
  ENDED: 'deleted',
} as const
export const STATUSES = Object.values(STATUS)
export const STATE_OF_STATUS = new Map(
  Object.entries(STATUS).map(([state, status]) => [status as string, state as RuleState]),
)

export const ruleShape = z
  .object({
    id: z.string().max(ID_MAX),
    asset: z.string().max(WORD_MAX),
    status: z.enum(STATUSES),
    min_amount: z.number().min(0),
    daily_cap: z.number().min(0),
    destination_address: z.string().max(ADDRESS_MAX),
    address_tag: z.string().max(NAME_MAX).nullable(),
    expires_at: z.string(),
    waiting: z.number().meta({
      description: 'Amount received since the rule was created that is not forwarded yet',
    }),
    reason: z.string().max(MESSAGE_MAX).nullable().meta({
      description:
        'Why the waiting amount has not been forwarded, or why the platform ended the rule',
    }),
    needs: z.array(needShape).max(LIMITS.approvalGroups).optional().meta({
      description:
        'Approvals of people that the policy requires; present if the status is `awaiting_approval`. `GET /dac/v1/approvals/{id}` with the ID of the rule returns what they sign',
    }),
    outstanding: z
      .array(z.string().max(HASH_MAX))
      .max(NODES * NAMED_MAX)
      .meta({
        description:
          'For a deleted rule: hashes of forwards that are signed and not final; they may still be broadcast',
      }),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'ForwardingRule' })

/** States of rules that end when they expire. */
const EXPIRING: readonly RuleState[] = ['ACTIVE', 'PAUSED', 'APPROVAL']

export function presentRule(row: RuleRow, registry: Registry, now: number) {
  const decimals = registry.asset(row.asset)?.decimals ?? 0
  const amount = (text: string) => exact(formatAmount(BigInt(text), decimals))
  const expired = EXPIRING.includes(row.state) && row.expires_at.getTime() <= now
  return {
    id: row.id,
    asset: row.asset,
    status: expired ? STATUS.EXPIRED : STATUS[row.state],
    min_amount: amount(row.min_amount),
    daily_cap: amount(row.daily_cap),
    destination_address: row.destination,
    address_tag: row.address_tag,
    expires_at: row.expires_at.toISOString(),
    waiting: amount(row.waiting),
    reason: row.end_reason ?? row.last_error,
    ...(row.state === 'APPROVAL' && !expired ? { needs: row.needs ?? [] } : {}),
    outstanding: row.outstanding ?? [],
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
  }
}

/** Columns of a {@link RuleRow}, to be read from `forward_rules r`. */
export const RULE_COLUMNS = `r.*, array(
  select h from jsonb_array_elements_text(r.end_hashes) h where not exists (
    select 1 from chain_transactions c
    where c.workspace_id = r.workspace_id and c.network = r.network and c.hash = h
      and c.state in ('CONFIRMED', 'REPLACED', 'EXPIRED')
  )
) outstanding,
  (select a.needs from approval_requests a
   where a.workspace_id = r.workspace_id and a.transaction_id = r.id and a.state = 'open') needs`

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/**
 * Returns a rule of the caller's sub-account.
 * @throws ApiError `NOT_FOUND`, or `FORBIDDEN` if it belongs to another workspace
 */
export async function findRule(
  services: Services,
  caller: Caller,
  input: string,
): Promise<RuleRow> {
  const id = input.toLowerCase()
  const missing = () =>
    new ApiError(
      'NOT_FOUND',
      `id: rule ${input.slice(0, 100)} does not exist in this sub-account`,
      {
        field: 'id',
      },
    )
  if (!UUID.test(id)) throw missing()
  const row = await services.database.one<RuleRow>(
    `select ${RULE_COLUMNS} from forward_rules r where r.workspace_id = $2 and r.id = $1`,
    [id, caller.workspaceId],
  )
  if (
    !row &&
    (await services.database.one('select 1 from forward_rules where id::text = $1', [id]))
  ) {
    throw new ApiError('FORBIDDEN', 'id: the rule belongs to another workspace', { field: 'id' })
  }
  if (!row || row.sub_account_id !== caller.subAccountId) throw missing()
  return row
}

/** SQL condition on `forward_rules` at time $1: the rule has expired. */
export const IS_EXPIRED = `(state in ('ACTIVE', 'PAUSED', 'APPROVAL') and expires_at <= $1)`

/** Expires rules, so that new ones can be created. Amounts that still wait stay in the wallet. */
export async function expireRules(tx: Queryable, now: Date): Promise<void> {
  const expired = await tx.query<Pick<RuleRow, 'id' | 'workspace_id'>>(
    `update forward_rules set state = 'EXPIRED', next_run_at = null, updated_at = $1
      where ${IS_EXPIRED} returning id, workspace_id`,
    [now],
  )
  for (const rule of expired) await closeRequest(tx, rule, 'ended')
}
