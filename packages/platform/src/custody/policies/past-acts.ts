import type { Registry } from '@custody/chains'
import { policyRegistry } from '@custody/chains'
import { assertAct, PolicyError, type Act, type PastAct } from '@custody/policy'
import { claimedNonceAndSubject } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'

/** What a transfer of the past took, and where it went. Amounts in the smallest unit. */
interface PastPayment {
  id: string
  sub_account_id: string
  sub_account: string
  api_key: string
  asset: string
  network: string
  amount: string
  fee: string
  address: string
  tag: string | null
  /** Unix seconds. */
  at_s: number
}

/** A transfer of the past, as documents are simulated with it. */
export interface PastTransfer extends PastPayment {
  uri: string
}

/** A forward of the past with its standing rule. Times in Unix seconds. */
export interface PastForward extends PastPayment {
  issued_at: number
  min_amount: string
  daily_cap: string
  ends_at: number
}

/**
 * Returns the last transfers and refunds of a workspace that callers requested, newest first. Those
 * that failed before a signature for another reason than the policy are left out, because they are
 * counted in no window.
 * @param workspace ID of the workspace
 * @param since only those that were created after this time
 */
export function pastTransfers(
  database: Queryable,
  workspace: string,
  { last, since = new Date(0) }: { last: number; since?: Date },
): Promise<PastTransfer[]> {
  return database.query<PastTransfer>(
    `select t.id, s.id sub_account_id, s.name sub_account, t.request->>'api_key' api_key,
       t.request->>'uri' uri, t.asset, t.network, t.amount::text, t.fee::text,
       t.destination_id address, t.address_tag tag,
       floor(extract(epoch from t.created_at))::integer at_s
     from sub_accounts s cross join lateral (
       select * from transactions
       where workspace_id = $1 and sub_account_id = s.id and kind = 'WITHDRAWAL'
         and created_at > $3 and request is not null and not plan ? 'rule_id'
         and (status <> 'failed' or hash is not null or failure_reason like '%POLICY_DENIED%'
           or failure_reason like 'APPROVAL_%')
       order by created_at desc, id desc limit $2) t
     where s.workspace_id = $1
     order by t.created_at desc, t.id desc limit $2`,
    [workspace, last, since],
  )
}

/**
 * Returns the last forwards of a workspace, newest first, without those that failed as in
 * {@link pastTransfers}. The request of a standing rule fixes its amounts and its end, so the rule
 * was the same at each forward. Forwards that a policy refused were never created.
 * @param workspace ID of the workspace
 * @param since only those that were created after this time
 */
export async function pastForwards(
  database: Queryable,
  workspace: string,
  { last, since = new Date(0) }: { last: number; since?: Date },
): Promise<PastForward[]> {
  const rows = await database.query<PastForward & { token: string }>(
    `select t.id, s.id sub_account_id, s.name sub_account, r.request->>'token' token, t.asset,
       t.network, t.amount::text, t.fee::text, t.destination_id address, t.address_tag tag,
       floor(extract(epoch from t.created_at))::float8 at_s,
       floor(extract(epoch from r.created_at))::float8 issued_at,
       r.min_amount::text, r.daily_cap::text,
       floor(extract(epoch from r.expires_at))::float8 ends_at
     from forward_rules r
     join sub_accounts s on s.workspace_id = r.workspace_id and s.id = r.sub_account_id
     cross join lateral (
       select t.* from forwards f
       join transactions t on t.workspace_id = f.workspace_id and t.id = f.transaction_id
       where f.workspace_id = $1 and f.rule_id = r.id and f.created_at > $3
         and (t.status <> 'failed' or t.hash is not null
           or t.failure_reason like '%POLICY_DENIED%')
       order by f.created_at desc limit $2) t
     where r.workspace_id = $1
     order by t.created_at desc, t.id desc limit $2`,
    [workspace, last, since],
  )
  return rows.map(({ token, ...row }) => ({ ...row, api_key: claimedNonceAndSubject(token).sub }))
}

/** Returns the newest of some acts, in any order. */
export const newestActs = (acts: readonly PastAct[], last: number): PastAct[] =>
  [...acts].sort((a, b) => b.at_s - a.at_s).slice(0, last)

const REFUND = /^\/dac\/v1\/invoices\/.*\/refund$/

/** The part of an act that differs between transfers and forwards. */
type OfKind = Pick<Act, 'action' | 'issued_at' | 'standing'>

/** Returns payments as acts. Those of assets that the registry no longer has are left out. */
function actsOf<T extends PastPayment>(
  registry: Registry,
  workspace: string,
  payments: readonly T[],
  ofKind: (payment: T) => OfKind,
): PastAct[] {
  const judged = policyRegistry(registry)
  return payments.flatMap((each): PastAct[] => {
    const network = registry.network(each.network)
    if (!judged.asset(each.asset) || !network) return []
    const fee = BigInt(each.fee)
    const limit = BigInt(network.fee_cap)
    const act: Act = {
      id: each.id,
      subject: '0'.repeat(64),
      step: each.id,
      workspace,
      sub_account: each.sub_account,
      api_key: each.api_key,
      asset: each.asset,
      network: each.network,
      amount: BigInt(each.amount),
      to: { address: each.address, tag: each.tag, own: null },
      fee: { max: fee > limit ? limit : fee, limit },
      resource: null,
      ...ofKind(each),
    }
    try {
      assertAct(judged, act)
      return [{ act, at_s: each.at_s }]
    } catch (error) {
      if (error instanceof PolicyError) return []
      throw error
    }
  })
}

/**
 * Returns transfers as acts. Those that the registry no longer has are left out.
 * @param workspace name of the workspace
 */
export const actsOfTransfers = (
  registry: Registry,
  workspace: string,
  transfers: readonly PastTransfer[],
): PastAct[] =>
  actsOf(registry, workspace, transfers, ({ uri, at_s }) => ({
    action: REFUND.test(uri) ? 'refund' : 'transfer',
    issued_at: at_s,
    standing: null,
  }))

/**
 * Returns forwards as acts, each with the ID of its transfer. Those that the registry no longer has
 * are left out.
 * @param workspace name of the workspace
 */
export const actsOfForwards = (
  registry: Registry,
  workspace: string,
  forwards: readonly PastForward[],
): PastAct[] =>
  actsOf(registry, workspace, forwards, ({ issued_at, min_amount, daily_cap, ends_at }) => ({
    action: 'forward',
    issued_at,
    standing: { min_amount: BigInt(min_amount), daily_cap: BigInt(daily_cap), ends_at },
  }))
