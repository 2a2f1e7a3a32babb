import type { Registry } from '@custody/chains'
import { policyRegistry } from '@custody/chains'
import { assertAct, lint, PolicyError, type Act, type Policy } from '@custody/policy'
import { claimedNonceAndSubject } from '@custody/request-auth'
import type { Queryable } from '../../core/database/pool.ts'

/** A standing rule that may forward, as documents are compared with it. Amounts in the smallest unit. */
export interface StandingRule {
  id: string
  sub_account_id: string
  sub_account: string
  api_key: string
  asset: string
  network: string
  min_amount: string
  daily_cap: string
  destination: string
  tag: string | null
  /** Unix seconds. */
  created_at: number
  ends_at: number
}

/**
 * Returns the standing rules of a workspace that may forward, oldest first.
 * @param workspace ID of the workspace
 */
export async function standingRules(
  database: Queryable,
  workspace: string,
): Promise<StandingRule[]> {
  const rows = await database.query<StandingRule & { token: string }>(
    `select r.id, s.id sub_account_id, s.name sub_account, r.request->>'token' token, r.asset, r.network,
       r.min_amount::text, r.daily_cap::text, r.destination, r.address_tag tag,
       floor(extract(epoch from r.created_at))::float8 created_at,
       floor(extract(epoch from r.expires_at))::float8 ends_at
     from forward_rules r
     join sub_accounts s on s.workspace_id = r.workspace_id and s.id = r.sub_account_id
     where r.workspace_id = $1 and r.state in ('ACTIVE', 'PAUSED', 'APPROVAL')
     order by r.created_at, r.id`,
    [workspace],
  )
  const now = database.now().getTime() / 1000
  return rows.flatMap(({ token, ...rule }) =>
    rule.ends_at > now ? [{ ...rule, api_key: claimedNonceAndSubject(token).sub }] : [],
  )
}

/**
 * Returns the smallest forward of each rule as an act. Rules of assets that the registry no longer
 * has are left out.
 * @param workspace name of the workspace
 */
export function actsOfRules(
  registry: Registry,
  workspace: string,
  rules: readonly StandingRule[],
): Act[] {
  const judged = policyRegistry(registry)
  return rules.flatMap((rule): Act[] => {
    const network = registry.network(rule.network)
    if (!judged.asset(rule.asset) || !network) return []
    const act: Act = {
      id: rule.id,
      subject: '0'.repeat(64),
      step: rule.id,
      action: 'forward',
      workspace,
      sub_account: rule.sub_account,
      api_key: rule.api_key,
      asset: rule.asset,
      network: rule.network,
      amount: BigInt(rule.min_amount),
      to: { address: rule.destination, tag: rule.tag, own: null },
      fee: { max: 0n, limit: BigInt(network.fee_cap) },
      issued_at: rule.created_at,
      standing: {
        min_amount: BigInt(rule.min_amount),
        daily_cap: BigInt(rule.daily_cap),
        ends_at: rule.ends_at,
      },
      resource: null,
    }
    try {
      assertAct(judged, act)
      return [act]
    } catch (error) {
      if (error instanceof PolicyError) return []
      throw error
    }
  })
}

/**
 * Returns a sentence about each standing rule that a document would stop.
 * @param forwards the smallest forward of each rule
 */
export const stoppedRules = (
  registry: Registry,
  { document }: Pick<Policy, 'document'>,
  forwards: readonly Act[],
): string[] =>
  forwards.length === 0
    ? []
    : lint(document, {
        registry: policyRegistry(registry),
        forwards,
        // Only what stops is reported.
        panelOrigins: null,
        enrolled: null,
      })
        .filter(({ code }) => code === 'FORWARD_STOPS')
        .map(({ message }) => message)
