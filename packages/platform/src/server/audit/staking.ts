import {
  formatAmount,
  type Asset,
  type Network,
  type TronClient,
  type TronResource,
  type Registry,
} from '@custody/chains'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { stakeAccounts } from '../../custody/staking/steps.ts'
import { kindOf, type Difference } from './report.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

interface StakedBalance {
  workspace: string
  account: string
  kind: string
  address: string
  balance: bigint
}
interface Moving {
  account: string
  address: string
  step: string
  resource: TronResource
  amount: bigint
  withdrawn: bigint
}

const RESOURCES = ['ENERGY', 'BANDWIDTH'] as const

/**
 * Adds the differences on Tron between the ledger and the amounts that each of our accounts has
 * staked, delegated and unstaked on the chain.
 */
export async function stakingDifferences(
  services: Services,
  network: Network,
  differences: Difference[],
): Promise<void> {
  const client = services.networks.stakes(network.code).client
  const { decimals } = services.registry.asset(network.native_asset) as Asset
  const [rows, moving] = await Promise.all([heldBy(services, network), movingOn(services, network)])
  for (const account of new Set(rows.map((row) => row.account))) {
    const own = rows.filter((row) => row.account === account)
    const workspace = own[0]?.workspace ?? ''
    const books = (kinds: readonly string[], address: string | null) =>
      own
        .filter((row) => kinds.includes(row.kind) && (address === null || row.address === address))
        .reduce((sum, { balance }) => sum + balance, 0n)
    // Returns the amount that is included on the chain but not booked yet.
    const moved = (resource: TronResource, steps: Record<string, bigint>, address: string | null) =>
      moving
        .filter(
          (each) =>
            each.account === account &&
            each.resource === resource &&
            (address === null || each.address === address),
        )
        .reduce((sum, each) => sum + (steps[each.step] ?? 0n) * each.amount, 0n)
    const compare = (subject: string, ledger: bigint, chain: bigint) => {
      if (ledger !== chain) {
        differences.push({
          kind: kindOf(ledger, chain),
          network: network.code,
          workspace,
          subject: `${subject} ${account}`,
          asset: network.native_asset,
          ledger: formatAmount(ledger, decimals),
          chain: formatAmount(chain, decimals),
        })
      }
    }
    const others = [...new Set(own.map((row) => row.address).filter((each) => each !== account))]
    const match = await stakeOnChain(client, account, others)
    for (const resource of RESOURCES) {
      const { staked, reserved } = stakeAccounts(resource)
      compare(
        `staked for ${resource} by`,
        books([staked, reserved], account) +
          moved(resource, { freeze: 1n, delegate: -1n, undelegate: 1n, unfreeze: -1n }, null),
        match.staked[resource],
      )
      for (const { address, lent } of match.lent) {
        compare(
          `lent of ${resource} to ${address} by`,
          books([staked, reserved], address) +
            moved(resource, { delegate: 1n, undelegate: -1n }, address),
          lent[resource],
        )
      }
    }
    const cooling = moving
      .filter((each) => each.account === account)
      .reduce(
        (sum, each) => sum + (each.step === 'unfreeze' ? each.amount : 0n) - each.withdrawn,
        0n,
      )
    compare('unstaked and not released by', books(['cooling'], null) + cooling, match.cooling)
  }
}

interface Stake {
  /** Staked for the account itself. */ staked: Record<TronResource, bigint>
  lent: { address: string; lent: Record<TronResource, bigint> }[]
  /** Unstaked and not yet released. */ cooling: bigint
}

/**
 * Returns the amount that an account has locked according to the chain, in sun.
 * @param others addresses to which it may have delegated
 */
async function stakeOnChain(
  client: TronClient,
  account: string,
  others: readonly string[],
): Promise<Stake> {
  const match = await client.account(account)
  const lent: Stake['lent'] = []
  for (const address of others)
    lent.push({ address, lent: await client.delegated(account, address) })
  return {
    staked: match?.staked ?? { ENERGY: 0n, BANDWIDTH: 0n },
    lent,
    cooling: (match?.unfreezing ?? []).reduce((sum, { amount }) => sum + amount, 0n),
  }
}

/**
 * Returns everything that the chain reports as locked for each of our accounts with a stake in the
 * ledger, in sun.
 */
export async function stakesOnChain(
  services: Pick<Services, 'database' | 'networks'>,
  network: Network,
): Promise<Map<string, bigint>> {
  const client = services.networks.stakes(network.code).client
  const rows = await heldBy(services, network)
  const all = new Map<string, bigint>()
  for (const account of new Set(rows.map((row) => row.account))) {
    const own = rows.filter((row) => row.account === account).map((row) => row.address)
    const { staked, lent, cooling } = await stakeOnChain(client, account, [
      ...new Set(own.filter((each) => each !== account)),
    ])
    const locked = [staked, ...lent.map((each) => each.lent)].reduce(
      (sum, each) => sum + RESOURCES.reduce((s, r) => s + each[r], 0n),
      0n,
    )
    all.set(account, locked + cooling)
  }
  return all
}

async function heldBy(
  services: Pick<Services, 'database'>,
  network: Network,
): Promise<StakedBalance[]> {
  const rows = await services.database.query<Omit<StakedBalance, 'balance'> & { balance: string }>(
    `select k.name workspace, o.address account, a.kind, a.address, a.balance::text
      from ledger_accounts a
     join workspaces k on k.id = a.workspace_id
       left join wallets w on w.workspace_id = a.workspace_id and w.id = a.wallet_id
     join chain_addresses o on o.workspace_id = a.workspace_id and o.network = $1 and case
       when w.id is null then o.kind = 'tank'
       else o.sub_account_id = w.sub_account_id and o.kind = 'omnibus' end
     where a.asset = $2 and a.kind in (
       'staked_energy', 'staked_bandwidth', 'staked_energy_reserved', 'staked_bandwidth_reserved',
         'cooling'
     )`,
    [network.code, network.native_asset],
  )
  return rows.map((row) => ({ ...row, balance: BigInt(row.balance) }))
}

async function movingOn(services: Services, network: Network): Promise<Moving[]> {
  const rows = await services.database.query<
    Omit<Moving, 'amount' | 'withdrawn'> & { amount: string; withdrawn: string }
  >(
    `select t.source_id account, t.destination_id address, c.step, t.plan->>'resource' resource,
      t.amount::text,
      coalesce(c.withdrawn, 0)::text withdrawn
     from chain_transactions c join transactions t on t.workspace_id = c.workspace_id
       and t.id = c.transaction_id
     where c.network = $1 and c.state = 'INCLUDED' and c.step is not null and c.succeeded`,
    [network.code],
  )
  return rows.map((row) => ({
    ...row,
    amount: BigInt(row.amount),
    withdrawn: BigInt(row.withdrawn),
  }))
}
