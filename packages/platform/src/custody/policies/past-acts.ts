import type { Registry } from '@custody/chains'
import { policyRegistry } from '@custody/chains'
import { assertAct, PolicyError, type PastAct } from '@custody/policy'
import type { Queryable } from '../../core/database/pool.ts'

/** A transfer of the past, as documents are simulated with it. Amounts in the smallest unit. */
export interface PastTransfer {
  id: string
  sub_account_id: string
  sub_account: string
  api_key: string
  uri: string
  asset: string
  network: string
  amount: string
  fee: string
  address: string
  tag: string | null
  /** Unix seconds. */
  at_s: number
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

const REFUND = /^\/dac\/v1\/invoices\/.*\/refund$/

/**
 * Returns transfers as acts. Those that the registry no longer has are left out.
 * @param workspace name of the workspace
 */
export function actsOfTransfers(
  registry: Registry,
  workspace: string,
  transfers: readonly PastTransfer[],
): PastAct[] {
  const judged = policyRegistry(registry)
  return transfers.flatMap((each): PastAct[] => {
    const asset = judged.asset(each.asset)
    const network = registry.network(each.network)
    if (!asset || !network) return []
    const fee = BigInt(each.fee)
    const limit = BigInt(network.fee_cap)
    const act: PastAct['act'] = {
      id: each.id,
      subject: '0'.repeat(64),
      step: each.id,
      action: REFUND.test(each.uri) ? 'refund' : 'transfer',
      workspace,
      sub_account: each.sub_account,
      api_key: each.api_key,
      asset: each.asset,
      network: each.network,
      amount: BigInt(each.amount),
      to: { address: each.address, tag: each.tag, own: null },
      fee: { max: fee > limit ? limit : fee, limit },
      issued_at: each.at_s,
      standing: null,
      resource: null,
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
