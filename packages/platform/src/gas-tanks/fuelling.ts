import { formatAmount, type Asset } from '@custody/chains'
import type { Queryable } from '../database/pool.ts'
import { fail, type Chain, type Fail, type Priced } from '../engine/chain.ts'
import { overCap } from '../engine/commit.ts'
import { lockCounting, stillCounts } from '../engine/counted.ts'
import { startFailing } from '../engine/fail.ts'
import { insertTransaction } from '../engine/insert.ts'
import { advance } from '../engine/lease.ts'
import type { Services } from '../engine/services.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import { lockedBalance, post } from '../ledger/post.ts'
import { isFilling } from './ensure-tank.ts'
import { canLend, reserveLoan } from './lend.ts'
import { tankLimits } from './limits.ts'

const TANK_FILL_RETRY_MS = 500

/** → FUELING: what is missing at the source address is taken from the workspace's tank, or the transaction fails. */
export async function startFuelling(services: Services, row: TransactionRow, { network }: Chain, priced: Priced): Promise<void> {
  const { worst } = priced
  const native = services.registry.asset(network.native_asset) as Asset
  const { feeCap } = await tankLimits(services.database, row.workspace_id, network.code)
  const refused = feeCap !== null && worst > feeCap ? overTankCap(native, worst, feeCap) : overCap(services, network, worst)
  if (refused) return services.database.transaction((tx) => startFailing(services, tx, row, refused.reason))
  await services.database.transaction(async (tx) => {
    const again = (reason: string) => advance(tx, row, { last_error: `planned again: ${reason}`, run_in_ms: 0 })
    if (priced.counted !== undefined) {
      await lockCounting(tx, row)
      if (!await stillCounts(tx, row, priced.counted)) return again('another transaction counts on the same stake')
    }
    // Asked before the balance is read: a fill that is credited in between must not look like an empty tank.
    const filling = await isFilling(tx, row.workspace_id, network.code)
    if (priced.loan && !await canLend(tx, row, priced.loan)) return again("the tank's stake is lent to another")
    const fuel = await reserveFuel(services, tx, row, native, priced)
    if ('reason' in fuel) {
      if (filling) return advance(tx, row, { last_error: 'waits for the first fill of the gas tank', run_in_ms: TANK_FILL_RETRY_MS })
      return startFailing(services, tx, row, fuel.reason)
    }
    const loanId = priced.loan ? await reserveLoan(services, tx, row, priced.loan) : null
    await advance(tx, row, {
      state: 'FUELING', fee: worst, last_error: null, run_in_ms: fuel.fuelId === null && loanId === null ? 0 : null,
      plan: {
        ...priced.plan, ...(loanId === null ? {} : { loan_id: loanId }), fuel_id: fuel.fuelId, float_taken: fuel.floatTaken.toString(),
      },
    })
  })
  services.environment.checkpoint('transaction.fuel-reserved')
}

function overTankCap({ decimals, asset_name: name }: Asset, worst: bigint, cap: bigint): Fail {
  const show = (amount: bigint) => `${formatAmount(amount, decimals)} ${name}`
  return fail(`a network fee of up to ${show(worst)} exceeds the gas tank's cap of ${show(cap)} for one transaction`)
}

/**
 * Takes float, and from the tank what is missing. Answers why not, where the tank holds too little.
 * @param replacementId the replacement that needs more than is held for the waiting transaction; none: it is the first
 */
export async function reserveFuel(
  services: Services, tx: Queryable, row: TransactionRow, native: Asset, { need, fuel: { cost, plan } }: Pick<Priced, 'need' | 'fuel'>,
  replacementId: string | null = null,
): Promise<{ fuelId: string | null; floatTaken: bigint } | Fail> {
  const scope = { workspace: row.workspace_id, asset: native.asset_name }
  const float = await lockedBalance(tx, { ...scope, kind: 'float', address: row.source_id })
  const floatTaken = float < need ? (float > 0n ? float : 0n) : need
  const amount = need - floatTaken
  let fuelId: string | null = null
  if (amount > 0n) {
    const tank = await tx.one<{ address: string }>('select address from gas_tanks where workspace_id = $1 and network = $2', [
      row.workspace_id, row.network,
    ])
    const held = tank ? await lockedBalance(tx, { ...scope, kind: 'tank' }) : 0n
    if (!tank || held < amount + cost) {
      const show = (value: bigint) => `${formatAmount(value, native.decimals)} ${native.asset_name}`
      const name = `the gas tank of ${row.network}${tank ? ` (${tank.address})` : ''}`
      return fail(`${name} holds ${show(held)}; this transfer needs ${show(amount + cost)}, so ${show(amount + cost - held)} are missing`)
    }
    fuelId = services.environment.uuid()
    await post(
      tx, 'fuel-reserve', fuelId,
      [{ ...scope, kind: 'tank', amount: -(amount + cost) }, { ...scope, kind: 'tank_reserved', amount: amount + cost }]
    )
    await insertTransaction(tx, {
      id: fuelId, kind: 'FUEL', state: 'QUEUED', workspace_id: row.workspace_id, sub_account_id: row.sub_account_id, parent_id: row.id,
      asset: native.asset_name, network: row.network, amount, fee: cost, fee_asset: native.asset_name,
      source_type: 'GAS_TANK', source_id: tank.address, destination_type: 'OMNIBUS', destination_id: row.source_id,
      plan: replacementId === null ? plan : { ...plan, replacement: replacementId },
    })
  }
  await post(tx, 'float-reserve', replacementId ?? row.id, [
    { ...scope, kind: 'float', address: row.source_id, amount: -floatTaken },
    { ...scope, kind: 'float_reserved', address: row.source_id, amount: floatTaken },
  ])
  return { fuelId, floatTaken }
}
