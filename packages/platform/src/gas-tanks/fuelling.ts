import { formatAmount, type Asset, type Network } from '@custody/chains'
import type { Queryable } from '../database/pool.ts'
import { isFilling } from './ensure-tank.ts'
import { canLend, reserveLoan, type Loan } from './lend.ts'
import { tankLimits } from './limits.ts'
import { lockedBalance, post } from '../ledger/post.ts'
import type { Services } from '../engine/services.ts'
import { lockCounting, stillCounts } from '../families/tron/counted.ts'
import { advance } from '../engine/lease.ts'
import type { TransactionRow } from '../engine/transaction.ts'
import { startFailing } from '../engine/fail.ts'

const TANK_FILL_RETRY_MS = 500

/** What a planned transaction takes of the tank. Smallest native unit. */
export interface Fuelling {
  /** What its source address must hold for the fee. */
  need: bigint
  /** The most that its fee can be. */
  worst: bigint
  /** The plan, as it is kept with the transaction. */
  fields: Record<string, string>
  /** The most that a fuel transaction costs beyond what it moves, and its own plan. */
  cost: bigint
  fuelFields: Record<string, string>
  /** Tron, where `need` relies on the account's own stake: what else counted on that when this was planned. */
  counted?: string
  /** Tron: stake of the tank whose energy is lent for this. */
  loan?: Loan
}

/** → FUELING: what is missing at the source address is taken from the workspace's tank, or the transaction fails. */
export async function startFuelling(services: Services, row: TransactionRow, network: Network, fuelling: Fuelling): Promise<void> {
  const { worst } = fuelling
  const native = services.registry.asset(network.native_asset) as Asset
  const show = (amount: bigint) => `${formatAmount(amount, native.decimals)} ${native.asset_name}`
  const { feeCap } = await tankLimits(services.database, row.workspace_id, network.code)
  const exceeded = feeCap !== null && worst > feeCap ? `the gas tank's cap of ${show(feeCap)} for one transaction` : worst > BigInt(network.fee_cap) ? `the cap of ${show(BigInt(network.fee_cap))}` : null
  if (exceeded) return services.database.transaction((tx) => startFailing(services, tx, row, `a network fee of up to ${show(worst)} exceeds ${exceeded}`))
  await services.database.transaction(async (tx) => {
    if (fuelling.counted !== undefined) {
      await lockCounting(tx, row)
      if (!await stillCounts(tx, row, fuelling.counted)) return advance(tx, row, { last_error: 'planned again: another transaction counts on the same stake', run_in_ms: 0 })
    }
    // Asked before the balance is read: a fill that is credited in between must not look like an empty tank.
    const filling = await isFilling(tx, row.workspace_id, network.code)
    if (fuelling.loan && !await canLend(tx, row, fuelling.loan)) return advance(tx, row, { last_error: "planned again: the tank's stake is lent to another", run_in_ms: 0 })
    const fuel = await reserveFuel(services, tx, row, native, fuelling)
    if ('empty' in fuel && filling) return advance(tx, row, { last_error: 'waits for the first fill of the gas tank', run_in_ms: TANK_FILL_RETRY_MS })
    if ('empty' in fuel) return startFailing(services, tx, row, fuel.empty)
    const loanId = fuelling.loan ? await reserveLoan(services, tx, row, fuelling.loan) : null
    await advance(tx, row, {
      state: 'FUELING', fee: worst, last_error: null, run_in_ms: fuel.fuelId === null && loanId === null ? 0 : null,
      plan: { ...fuelling.fields, ...(loanId === null ? {} : { loan_id: loanId }), fuel_id: fuel.fuelId, float_taken: fuel.floatTaken.toString() },
    })
  })
  services.environment.checkpoint('transaction.fuel-reserved')
}

/**
 * Takes float, and from the tank what is missing. Answers the reason where the tank holds too little.
 * @param replacementId what a dearer transaction in place of a waiting one needs beyond what is held for that
 */
export async function reserveFuel(services: Services, tx: Queryable, row: TransactionRow, native: Asset, { need, cost, fuelFields }: Fuelling, replacementId: string | null = null): Promise<{ fuelId: string | null; floatTaken: bigint } | { empty: string }> {
  const scope = { workspace: row.workspace_id, asset: native.asset_name }
  const float = await lockedBalance(tx, { ...scope, kind: 'float', address: row.source_id })
  const floatTaken = float < need ? (float > 0n ? float : 0n) : need
  const fuel = need - floatTaken
  let fuelId: string | null = null
  if (fuel > 0n) {
    const tank = await tx.one<{ address: string }>('select address from gas_tanks where workspace_id = $1 and network = $2', [row.workspace_id, row.network])
    const held = tank ? await lockedBalance(tx, { ...scope, kind: 'tank' }) : 0n
    if (!tank || held < fuel + cost) {
      const show = (amount: bigint) => `${formatAmount(amount, native.decimals)} ${native.asset_name}`
      return { empty: `the gas tank of ${row.network}${tank ? ` (${tank.address})` : ''} holds ${show(held)}; this transfer needs ${show(fuel + cost)}, so ${show(fuel + cost - held)} are missing` }
    }
    fuelId = services.environment.uuid()
    await post(tx, 'fuel-reserve', fuelId, [{ ...scope, kind: 'tank', amount: -(fuel + cost) }, { ...scope, kind: 'tank_reserved', amount: fuel + cost }])
    await tx.query(
      `insert into transactions (id, kind, workspace_id, sub_account_id, parent_id, asset, network, amount, fee, fee_asset, source_type, source_id,
         destination_type, destination_id, state, status, plan, next_run_at, created_at, updated_at)
       values ($1, 'FUEL', $2, $3, $4, $5, $6, $7, $8, $5, 'GAS_TANK', $9, $10, $11, 'QUEUED', 'pending', $12, $13, $13, $13)`,
      [fuelId, row.workspace_id, row.sub_account_id, row.id, native.asset_name, row.network, fuel.toString(), cost.toString(), tank.address, 'OMNIBUS', row.source_id,
        JSON.stringify(replacementId === null ? fuelFields : { ...fuelFields, replacement: replacementId }), tx.now()])
  }
  await post(tx, 'float-reserve', replacementId ?? row.id, [{ ...scope, kind: 'float', address: row.source_id, amount: -floatTaken }, { ...scope, kind: 'float_reserved', address: row.source_id, amount: floatTaken }])
  return { fuelId, floatTaken }
}

/** What a deposit address holds for its wallet. */
export async function sweepAmount(services: Services, row: TransactionRow): Promise<bigint> {
  const found = await services.database.one<{ balance: string }>(
    `select balance::text from ledger_accounts where wallet_id = $1 and asset = $2 and kind = 'unswept' and address = $3`, [row.wallet_id, row.asset, row.source_id])
  const balance = BigInt(found?.balance ?? '0')
  return balance > 0n ? balance : 0n
}
