import type { Network } from '@custody/chains'
import type { Queryable } from '../../database/pool.ts'
import { lockedBalance } from '../../ledger/post.ts'
import type { Services } from '../../engine/services.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import type { Staking } from '../../staking/steps.ts'

/**
 * What an account's own stake pays for, while several transactions are under way. Each notes in its plan the points that
 * it may use (`energy_counted`, `bandwidth_counted`), for the chain gives them to whichever comes first; and those by
 * which its own fuel was made smaller (`…_spared`). Together they never rely on more than there is.
 */
const SCALE = 10n ** 12n

interface Points { energy: bigint; bandwidth: bigint }
/** `mark` changes with every transaction that begins or ends to count. */
export interface OwnPoints extends Points { mark: string }

type Place = Pick<TransactionRow, 'id' | 'network' | 'source_id' | 'workspace_id' | 'fee_asset'>

async function countedOn(database: Queryable, row: Place): Promise<OwnPoints> {
  const rows = await database.query<{ id: string; energy: string; bandwidth: string }>(
    `select id, coalesce(plan->>'energy_counted', '0') energy, coalesce(plan->>'bandwidth_counted', '0') bandwidth from transactions
     where network = $1 and source_id = $2 and status = 'pending' and id <> $3 and (plan ? 'energy_counted' or plan ? 'bandwidth_counted') order by id`, [row.network, row.source_id, row.id])
  const sum = (name: 'energy' | 'bandwidth') => rows.reduce((total, each) => total + BigInt(each[name]), 0n)
  return { energy: sum('energy'), bandwidth: sum('bandwidth'), mark: rows.map(({ id, energy, bandwidth }) => `${id} ${energy} ${bandwidth}`).join() }
}

/** Points of the account's own stake that nothing else counts on. What others lend to it they may take back: it is not counted. */
export async function ownPoints(services: Services, row: Place, network: Network): Promise<OwnPoints> {
  // Before the chain is asked: what ends in between has used its points already.
  const counted = await countedOn(services.database, row)
  const client = services.networks.tron(network.code)
  const account = await client.account(row.source_id as string)
  if (!account || account.staked.ENERGY + account.staked.BANDWIDTH === 0n) return { energy: 0n, bandwidth: 0n, mark: counted.mark }
  const resources = await client.resources(row.source_id as string)
  const left = (staked: bigint, per: bigint, used: bigint, taken: bigint) => {
    const rest = (staked * per) / SCALE - used - taken
    return rest > 0n ? rest : 0n
  }
  return {
    energy: left(account.staked.ENERGY, resources.energyPerMillionTrx, resources.energyUsed, counted.energy),
    bandwidth: left(account.staked.BANDWIDTH, resources.bandwidthPerMillionTrx, resources.bandwidthUsed, counted.bandwidth),
    mark: counted.mark,
  }
}

/** Until the database transaction ends nothing else of the account begins to count. */
export async function lockCounting(tx: Queryable, row: Pick<TransactionRow, 'workspace_id' | 'fee_asset' | 'source_id'>): Promise<void> {
  await lockedBalance(tx, { workspace: row.workspace_id, asset: row.fee_asset, kind: 'float', address: row.source_id })
}

/** Under {@link lockCounting}: whether what was planned by is still so. */
export async function stillCounts(tx: Queryable, row: Place, mark: string): Promise<boolean> {
  return (await countedOn(tx, row)).mark === mark
}

/** Whether a transfer whose fuel was made smaller relies on the resource that an unstake takes away; later ones do not. */
export async function othersRely(database: Queryable, row: TransactionRow, { resource }: Staking): Promise<boolean> {
  const found = await database.one(
    `select 1 from transactions where network = $1 and source_id = $2 and status = 'pending' and id <> $3 and coalesce(plan->>$4, '0') <> '0' limit 1`,
    [row.network, row.source_id, row.id, `${(resource ?? '').toLowerCase()}_spared`])
  return found !== undefined
}
