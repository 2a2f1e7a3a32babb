import { BALANCES_MAX, type Asset, type Network, type Registry } from '@custody/chains'
import type { Queryable } from '../../core/database/pool.ts'
import type { Chain } from '../../core/engine/chain.ts'
import { addUnbooked } from '../deposits/expected.ts'
import type { OwnAddress } from '../deposits/record.ts'

/** One of our addresses at a block, in the smallest unit of the network's coin. */
export interface Look {
  owner: OwnAddress
  /** Amount that the chain holds there beyond everything that the books can explain; 0: none. */
  surplus: bigint
  /** Amount by which the chain holds less than the books can explain; 0: none. */
  deficit: bigint
}

/** Number of requests at the same time. */
const AT_ONCE = 4

/** Asks for the balances of a lot of addresses at a block. */
export type Balances = NonNullable<Chain['balances']>

/**
 * Compares the balances of our addresses with the books, as of one block. What a transaction of ours
 * may move there, or has moved in a later block, counts as both possible. The comparison only finds
 * candidates: the books may change while it reads them.
 * @param height a block that the scan has read, and of which the endpoint still has the state
 * @throws RpcRefused, RpcUnavailable
 */
export async function look(
  services: { database: Queryable; registry: Registry },
  { network, balances }: { network: Network; balances: Balances },
  owners: readonly OwnAddress[],
  height: number,
): Promise<Look[]> {
  const { database, registry } = services
  const native = registry.asset(network.native_asset) as Asset
  const lots = Array.from({ length: Math.ceil(owners.length / BALANCES_MAX) }, (_, at) =>
    owners.slice(at * BALANCES_MAX, (at + 1) * BALANCES_MAX),
  )
  const held = new Map<string, bigint>()
  for (let at = 0; at < lots.length; at += AT_ONCE) {
    await Promise.all(
      lots.slice(at, at + AT_ONCE).map(async (lot) => {
        const addresses = lot.map(({ address }) => address)
        for (const [index, amount] of (await balances(addresses, native, height)).entries())
          held.set(addresses[index] as string, amount)
      }),
    )
  }
  const booked = new Map<string, bigint>()
  for (const lot of lots)
    for (const [address, amount] of await bookedAt(database, native, lot))
      booked.set(address, amount)
  // Read after the accounts: a transaction that is booked in between is then counted in none of them,
  // which shows no surplus that does not exist.
  const unbooked = new Map<string, bigint>()
  await addUnbooked(database, network, { workspace: null, height }, (address, asset, amount) => {
    if (address !== null && asset === native.asset_name)
      unbooked.set(address, (unbooked.get(address) ?? 0n) + amount)
  })
  const inFlight = await inFlightAt(database, network, native, height)
  return owners.map((owner) => {
    const { address } = owner
    const expected = (booked.get(address) ?? 0n) + (unbooked.get(address) ?? 0n)
    const moving = inFlight.get(address) ?? 0n
    const difference = (held.get(address) ?? 0n) - expected
    return {
      owner,
      surplus: difference > moving ? difference - moving : 0n,
      deficit: -difference > moving ? -difference - moving : 0n,
    }
  })
}

/** Returns what the ledger's accounts say of addresses: of each what {@link expectedBalances} says. */
async function bookedAt(
  database: Queryable,
  { asset_name: asset }: Asset,
  owners: readonly OwnAddress[],
): Promise<Map<string, bigint>> {
  const rows = await database.query<{ address: string; balance: string }>(
    `with places as (
       select * from unnest($1::text[], $2::uuid[], $3::uuid[], $4::text[])
         p(address, workspace_id, sub_account_id, kind))
     select address, sum(balance)::text balance from (
       select p.address, a.balance from places p join ledger_accounts a
         on a.workspace_id = p.workspace_id and a.address = p.address and a.asset = $5
           and a.kind in ('unswept', 'frozen', 'float', 'float_reserved', 'suspense')
       union all select p.address, a.balance from places p join wallets w
           on w.workspace_id = p.workspace_id and w.sub_account_id = p.sub_account_id and w.asset = $5
         join ledger_accounts a on a.workspace_id = w.workspace_id and a.wallet_id = w.id
           and a.asset = $5 and a.kind in ('available', 'reserved', 'written_off')
         where p.kind = 'omnibus'
       union all select p.address, a.balance from places p join ledger_accounts a
           on a.workspace_id = p.workspace_id and a.asset = $5 and a.wallet_id is null
             and a.kind in ('tank', 'tank_reserved')
         where p.kind = 'tank'
     ) each group by address`,
    [
      owners.map(({ address }) => address),
      owners.map(({ workspace_id }) => workspace_id),
      owners.map(({ sub_account_id }) => sub_account_id),
      owners.map(({ kind }) => kind),
      asset,
    ],
  )
  return new Map(rows.map(({ address, balance }) => [address, BigInt(balance)]))
}

/**
 * Returns what our own transactions may move at each address besides what the books say as of the height:
 * those that no block contains as far as this database knows, or only one above the height. Fuel is booked
 * with its block, so a block above the height may be in the books already.
 */
async function inFlightAt(
  database: Queryable,
  { code }: Network,
  { asset_name: asset }: Asset,
  height: number,
): Promise<Map<string, bigint>> {
  const rows = await database.query<{
    source_id: string | null
    destination_id: string | null
    amount: string
    fee: string
  }>(
    `select t.source_id, t.destination_id, case when t.asset = $2 then t.amount else 0 end::text amount,
       c.fee_max::text fee
     from chain_transactions c join transactions t on t.workspace_id = c.workspace_id
       and t.id = c.transaction_id
     where c.network = $1 and t.status = 'pending' and (c.state in ('BUILT', 'SIGNED', 'EXPIRED')
       or c.block_height > $3)`,
    [code, asset, height],
  )
  const all = new Map<string, bigint>()
  const add = (address: string | null, amount: bigint) => {
    if (address !== null) all.set(address, (all.get(address) ?? 0n) + amount)
  }
  for (const { source_id: source, destination_id: destination, amount, fee } of rows) {
    add(source, BigInt(amount) + BigInt(fee))
    add(destination, BigInt(amount))
  }
  return all
}
