import type { Registry } from '@custody/chains'
import type { Environment } from '../../../core/environment.ts'
import type { Settings } from '../../../core/settings/settings.ts'
import type { Database } from '../../../core/database/pool.ts'
import type { DatabaseHold } from '../../../core/engine/database-hold.ts'
import type { Networks } from '../../../core/engine/networks.ts'
import type { SignerNodes } from '../../../core/signing/nodes.ts'
import { gasTanksOf } from '../../../custody/gas-tanks/list-tanks.ts'
import { accountOf } from '../../../custody/prepaid-fee/account.ts'
import { healthOf } from '../health.ts'
import { nodesSoon, policyFactsOf, type PolicyFacts } from './node-facts.ts'
import { readWaiting, type Waiting } from './waiting.ts'

/** What the facts are read from. */
export interface Services {
  settings: Pick<Settings, 'network' | 'prepaidTiers'>
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  hold: DatabaseHold
}

/** The person and the sub-account whose facts are read. */
export interface Reader {
  workspaceId: string
  /** Name of the workspace. */
  workspace: string
  subAccountId: string
  /** Name of the sub-account. */
  subAccount: string
  personId: string
}

/** What the causes of "Needs attention" are computed from. */
export interface Facts {
  /** Alerts of the page Health. */
  alerts: Awaited<ReturnType<typeof healthOf>>['alerts']
  waiting: Waiting & {
    /** Those of all three kinds that expire within a day. */
    expiring: number
  }
  /** Transactions of the sub-account by state; `frozen`: its frozen addresses. */
  counts: { pending: number; held: number; failed_24h: number; frozen: number }
  /** Requests for API users that wait for more than a day. */
  apiUserRequests: number
  /** Gas tanks that are low or empty. */
  tanks: readonly { network: string; status: string }[]
  /** `balance` in USD. */
  prepaid: { status: 'ok' | 'low' | 'empty'; balance: number }
  /** Networks on which payments of contracts to the workspace are not credited now. */
  pausedNetworks: readonly string[]
  /** null: no two signer nodes responded in time. */
  policy: PolicyFacts | null
  /** The person would be locked out if they lost one passkey. */
  hasOnlyPasskey: boolean
}

const DAY_MS = 86_400_000

/** Reads all facts. Signer nodes that do not respond delay the result by at most two seconds. */
export async function readFacts(services: Services, reader: Reader): Promise<Facts> {
  const { database } = services
  const { workspaceId } = reader
  const nodes = await nodesSoon(services)
  const now = database.now()
  const [health, waiting, expiring, counts, tanks, prepaid, others, policy] = await Promise.all([
    healthOf(services, workspaceId, nodes),
    readWaiting(database, reader),
    readWaiting(database, reader, new Date(now.getTime() + DAY_MS)),
    readCounts(services, reader),
    gasTanksOf(services, workspaceId),
    accountOf(services, workspaceId),
    readOthers(services, reader),
    policyFactsOf(services, reader),
  ])
  const { api_user_requests: apiUserRequests, paused_networks: pausedNetworks } = others
  return {
    alerts: health.alerts,
    waiting: { ...waiting, expiring: expiring.transfers + expiring.rules + expiring.changes },
    counts,
    apiUserRequests,
    tanks: tanks.filter(({ status }) => status !== 'ok'),
    prepaid: { status: prepaid.status, balance: Number(prepaid.balance) },
    pausedNetworks,
    policy,
    hasOnlyPasskey: others.has_only_passkey,
  }
}

/** Counts the transactions of a sub-account that need attention, and its frozen addresses. */
async function readCounts(
  { database, environment }: Services,
  { workspaceId, subAccountId }: Reader,
): Promise<Facts['counts']> {
  const counts = await database.one<Facts['counts']>(
    `select count(*) filter (where status = 'pending' and state <> 'APPROVAL')::int pending,
       count(*) filter (where status = 'pending'
         and state in ('AML_HELD', 'FROZEN', 'SCREENING'))::int held,
       count(*) filter (where status = 'failed' and updated_at > $2)::int failed_24h,
       (select count(*)::int from frozen_addresses
         where workspace_id = $3 and sub_account_id = $1 and unfrozen_at is null) frozen
     from transactions
     where workspace_id = $3 and sub_account_id = $1
       and kind in ('WITHDRAWAL', 'DEPOSIT', 'STAKE', 'UNSTAKE', 'RELEASE')
       and (status = 'pending' or (status = 'failed' and updated_at > $2))`,
    [subAccountId, new Date(environment.now() - DAY_MS), workspaceId],
  )
  return counts ?? { pending: 0, held: 0, failed_24h: 0, frozen: 0 }
}

interface Others {
  api_user_requests: number
  paused_networks: string[]
  has_only_passkey: boolean
}

/** Reads the facts that are in tables of their own. */
async function readOthers(
  { database }: Services,
  { workspaceId, personId }: Reader,
): Promise<Others> {
  const others = await database.one<Others>(
    `select
       (select count(*)::int from api_user_requests where workspace_id = $1 and api_key is null
         and withdrawn_at is null and created_at < $3) api_user_requests,
       array(select network from contract_watches where exists (
         select 1 from jsonb_array_elements(paused) each where each->>'workspace' = $1::text)
         order by network) paused_networks,
       coalesce((select (password_hash is null or totp_secret is null)
           and (select count(*) from passkeys where person_id = p.id) = 1
           and not exists (select 1 from recovery_codes where person_id = p.id and used_at is null)
         from people p where id = $2), false) has_only_passkey`,
    [workspaceId, personId, new Date(database.now().getTime() - DAY_MS)],
  )
  return others ?? { api_user_requests: 0, paused_networks: [], has_only_passkey: false }
}
