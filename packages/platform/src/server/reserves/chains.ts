import { pathOf, type Network, type Registry } from '@custody/chains'
import { accountBalances, ownAddresses, type OwnAddress } from '../audit/balances.ts'
import { stakesOnChain } from '../audit/staking.ts'
import { coinsOnChain } from '../audit/utxo.ts'
import type { Chain } from '../../core/engine/chain.ts'
import type { Database } from '../../core/database/pool.ts'
import type { Networks } from '../../core/engine/networks.ts'

interface Services {
  database: Database
  registry: Registry
  networks: Networks
}

/** Height and hash of a block. */
export interface Height {
  height: number
  hash: string
}

/** Amounts at one of our addresses, in the smallest unit, above zero. */
export interface HeldAt {
  workspace: string
  network: string
  address: string
  path: number[]
  held: { asset: string; form: 'balance' | 'staked'; amount: bigint }[]
}

/**
 * SQL condition: the coin may be on the chain. Unmined coins are excluded, except our own change.
 */
const ON_THE_CHAIN = `(u.block_height is not null or u.origin = 'change')
  and not exists (select 1 from chain_transactions c where c.workspace_id = u.workspace_id and c.id = u.spent_by and c.state = 'CONFIRMED')`

export async function heightOf({ client }: Chain): Promise<Height> {
  const { height, hash } = await client.tip()
  return { height, hash }
}

/**
 * Returns the balances that the chain reports for all our addresses on one network, queried in the
 * same way as by the audit.
 */
export async function heldOn(services: Services, chain: Chain): Promise<HeldAt[]> {
  const { network } = chain
  const rows = new Map<string, OwnAddress>()
  for await (const page of ownAddresses(services, network.code))
    for (const row of page) rows.set(row.address, row)
  const matches = new Map<string, HeldAt>()
  const add = (address: string, asset: string, form: 'balance' | 'staked', amount: bigint) => {
    if (amount === 0n) return
    const at = matches.get(address) ?? heldAt(network, address, rows.get(address))
    matches.set(address, at)
    const same = at.held.find((each) => each.asset === asset && each.form === form)
    if (same) same.amount += amount
    else at.held.push({ asset, form, amount })
  }
  if (chain.coins) {
    for await (const { address, there } of coinsOnChain(
      services,
      network,
      chain.coins,
      ON_THE_CHAIN,
    )) {
      add(address, network.native_asset, 'balance', there ?? 0n)
    }
  } else {
    for await (const { row, asset, amount } of accountBalances(services, chain)) {
      rows.set(row.address, row)
      add(row.address, asset.asset_name, 'balance', amount)
    }
    if (chain.stakes) {
      for (const [account, amount] of await stakesOnChain(services, network))
        add(account, network.native_asset, 'staked', amount)
    }
  }
  return [...matches.values()].sort((a, b) => (a.address < b.address ? -1 : 1))
}

function heldAt(network: Network, address: string, row: OwnAddress | undefined): HeldAt {
  if (!row) throw new Error(`${address} of ${network.code} has no path`)
  return {
    workspace: row.workspace,
    network: network.code,
    address,
    path: pathOf(network, row.sub_account, row.path_index),
    held: [],
  }
}
