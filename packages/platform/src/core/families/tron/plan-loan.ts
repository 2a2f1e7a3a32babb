import { tron as tronBuild } from '@custody/chains'
import type { Loan } from '../../engine/chain.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import type { Tron } from './context.ts'

/** Sun in a million TRX, for which the chain reports the points; 1 TRX is 10^6 sun. */
const SCALE = 10n ** 12n
const SUN = 1_000_000n

/**
 * Plans a delegation of the gas tank's staked energy for a transfer, if enough of it is unused and
 * delegating and undelegating it costs less than burning TRX. Returns null otherwise.
 *
 * @param o.missing maximum energy points that must be delegated
 * @param o.burnt cost of burning TRX for the energy instead, in sun
 */
export async function planLoan(
  { database, network, client, parameters }: Tron,
  row: TransactionRow,
  o: { missing: bigint; burnt: bigint },
): Promise<Loan | null> {
  if ((row.plan.loan_id ?? null) !== null) return null
  const tank = await database.one<{
    address: string
    staked: string
    reserved: string
    held: string
  }>(
    `select g.address, a.balance::text staked,
       coalesce((select r.balance from ledger_accounts r where r.workspace_id = g.workspace_id
         and r.wallet_id is null and r.asset = $3
         and r.kind = 'staked_energy_reserved' and r.address = g.address), 0)::text reserved,
       coalesce((select h.balance from ledger_accounts h where h.workspace_id = g.workspace_id
         and h.wallet_id is null and h.asset = $3
         and h.kind = 'tank' and h.address is null), 0)::text held
     from gas_tanks g join ledger_accounts a on a.workspace_id = g.workspace_id
       and a.wallet_id is null and a.asset = $3
       and a.kind = 'staked_energy' and a.address = g.address
     where g.workspace_id = $1 and g.network = $2 and a.balance > 0`,
    [row.workspace_id, network.code, network.native_asset],
  )
  if (!tank) return null
  const { bandwidthSun } = await parameters()
  const [fee, backFee] = [
    tronBuild.actionBandwidth('delegate') * bandwidthSun,
    tronBuild.actionBandwidth('undelegate') * bandwidthSun,
  ]
  if (fee + backFee >= o.burnt || fee + backFee > BigInt(tank.held)) return null
  // The chain only allows delegation to active accounts; fuel activates others.
  if (!(await client.isActivated(row.source_id as string))) return null
  const { energyPerMillionTrx: per } = await client.resources(tank.address)
  if (per === 0n) return null
  // The amount is rounded up to whole TRX, because the chain counts stake in whole TRX.
  const sun = (o.missing * SCALE + per - 1n) / per
  const amount = ((sun + SUN - 1n) / SUN + 1n) * SUN
  const lendable = await client.delegatable(tank.address, 'ENERGY')
  if (amount > BigInt(tank.staked) || amount > lendable - BigInt(tank.reserved)) return null
  return { tank: tank.address, amount, lendable, fee, backFee }
}
