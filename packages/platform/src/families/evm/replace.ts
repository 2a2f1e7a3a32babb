import { decode, evm as evmBuild, formatAmount, type Asset, type Network } from '@custody/chains'
import { lockedBalance, post } from '../../ledger/post.ts'
import type { Services } from '../../engine/services.ts'
import { advance } from '../../engine/lease.ts'
import { checkedFeeRate } from '../../fees/check-fee-rate.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import type { Replacement } from '../../engine/replacements.ts'
import { bumped, decodedAttempts, type Attempt } from '../../engine/attempts.ts'
import { fuelOf, planOf, sourcePath, type GasPlan } from './plan.ts'
import { giveUp } from '../../engine/give-up.ts'
import { reserveFuel } from '../../gas-tanks/fuelling.ts'

/** The same account and nonce again with higher fees; a cancellation pays the sender itself nothing. */
export async function replaceEvm(services: Services, row: TransactionRow, network: Network, replacement: Replacement, attempts: readonly Attempt[]): Promise<void> {
  const before = planOf(row)
  const first = attempts.at(-1)
  if (!before || !first) throw new Error('REPLACING without a plan or signed bytes')
  const native = services.registry.asset(network.native_asset) as Asset
  const show = (wei: bigint) => `${formatAmount(wei, native.decimals)} ${native.asset_name}`
  const cancel = replacement.kind === 'CANCEL'
  const gas = cancel ? evmBuild.NATIVE_GAS : before.gas
  const fee = await feeOfReplacement(services, row, network, replacement, before, attempts, gas)
  if (typeof fee === 'string') return giveUp(services, row, replacement, fee)
  const cost = gas * fee.maxFeePerGas + before.l1Fee
  if (cost > BigInt(network.fee_cap)) return giveUp(services, row, replacement, `a network fee of up to ${show(cost)} exceeds the cap of ${show(BigInt(network.fee_cap))}`)
  if (cost > before.need && replacement.state === 'PENDING') {
    if (row.kind === 'FUEL') {
      if (!await reserveMore(services, row, cost - before.need)) return giveUp(services, row, replacement, 'the gas tank holds too little for a higher fee')
    } else if (replacement.kind === 'AUTO') return giveUp(services, row, replacement, `the fuel at the address covers ${show(before.need)}, and ${show(cost)} would be needed`)
    else {
      const market = (await services.networks.evmFeeRates(network.code)).medium
      return fuelMore(services, row, native, replacement, { ...before, gas, fee, fuelFee: market.maxFeePerGas > fee.maxFeePerGas ? market : fee, need: evmBuild.fuelFor(gas, fee.maxFeePerGas, before.l1Fee) - before.need })
    }
  }
  if (replacement.state === 'FUELING') {
    const arrived = await arrivedFuel(services, row, replacement)
    if (arrived === 'waiting') return
    if (arrived === 'failed') return giveUp(services, row, replacement, 'its fuel failed')
  }
  const path = await sourcePath(services.database, row, network)
  const key = await services.keys.get(row.workspace_id, network.curve)
  const asset = services.registry.asset(row.asset) as Asset
  const source = row.source_id as string
  const unsigned = evmBuild.buildTransfer(network, {
    ...(cancel ? { asset: native, to: source, amount: 0n } : { asset, to: row.destination_id as string, amount: BigInt(row.amount) }), nonce: BigInt(first.nonce as string), gas, fee, path,
  })
  const decoded = decode(services.registry, unsigned, key.at)
  await services.database.transaction(async (tx) => {
    await tx.query(
      `insert into chain_transactions (id, transaction_id, network, state, account, nonce, unsigned, fee_max, attempt, replaces, replacement_id)
       values ($1, $2, $3, 'BUILT', $4, $5, $6, $7, (select max(attempt) + 1 from chain_transactions where transaction_id = $2), $8, $9)`,
      [services.environment.uuid(), row.id, network.code, source, first.nonce, JSON.stringify(unsigned), decoded.fee_max.toString(), first.id, replacement.id])
    await advance(tx, row, { fee: cost, last_error: null, run_in_ms: 0, plan: { max_fee_per_gas: fee.maxFeePerGas.toString(), max_priority_fee_per_gas: fee.maxPriorityFeePerGas.toString() } })
  })
  services.environment.checkpoint('transaction.replacement-built')
}

/** A tenth above all that waits, and the market's price or the caller's. Answers why not, where that cannot be. */
async function feeOfReplacement(services: Services, row: TransactionRow, network: Network, replacement: Replacement, before: GasPlan, attempts: readonly Attempt[], gas: bigint): Promise<evmBuild.EvmFee | string> {
  const highest = (await decodedAttempts(services, row, network, attempts)).reduce((most, { max_fee_per_gas: price }) => ((price ?? 0n) > most ? price ?? 0n : most), 0n)
  const least = bumped(highest)
  const market = (await services.networks.evmFeeRates(network.code))[(replacement.fee_level as 'low' | 'medium' | 'high' | null) ?? (replacement.kind === 'AUTO' ? 'medium' : 'high')]
  const tip = before.fee.legacy ? 0n : bumped(before.fee.maxPriorityFeePerGas)
  if (replacement.fee_rate !== null) {
    const price = checkedFeeRate(replacement.fee_rate, network, services.registry)
    if (price < least) return 'its fee_rate is no longer high enough to take the place of what waits'
    return withTip(before, price, market.maxPriorityFeePerGas > tip ? market.maxPriorityFeePerGas : tip)
  }
  let price = market.maxFeePerGas > least ? market.maxFeePerGas : least
  if (replacement.kind === 'AUTO' && row.kind !== 'FUEL') {
    // Without the caller's word no more fuel comes: what lies at the address is the limit, and so is the caller's own rate.
    const own = row.fee_rate === null ? null : checkedFeeRate(row.fee_rate, network, services.registry)
    const most = [(before.need - before.l1Fee) / gas, ...(own === null ? [] : [own])].reduce((a, b) => (a < b ? a : b))
    if (most < least) return own !== null && most === own ? 'the fee_rate of the transfer allows no higher fee' : 'the fuel at the address allows no higher fee'
    price = price < most ? price : most
  }
  return withTip(before, price, market.maxPriorityFeePerGas > tip ? market.maxPriorityFeePerGas : tip)
}

function withTip(before: GasPlan, price: bigint, tip: bigint): evmBuild.EvmFee {
  if (before.fee.legacy) return { maxFeePerGas: price, maxPriorityFeePerGas: price, legacy: true }
  return { maxFeePerGas: price, maxPriorityFeePerGas: tip < price ? tip : price, legacy: false }
}

/** A dearer fuel transaction costs the tank more. */
async function reserveMore(services: Services, row: TransactionRow, amount: bigint): Promise<boolean> {
  const scope = { workspace: row.workspace_id, asset: row.asset }
  return services.database.transaction(async (tx) => {
    if (await lockedBalance(tx, { ...scope, kind: 'tank' }) < amount) return false
    const need = (BigInt(row.plan['need'] ?? '0') + amount).toString()
    const written = await tx.query(`update transactions set plan = plan || jsonb_build_object('need', $3::text) where id = $1 and lease_token = $2 and plan->>'need' = $4 returning 1`, [row.id, row.lease_token, need, row.plan['need']])
    if (written.length !== 1) throw new Error('the plan of this fuel was changed by another worker')
    await post(tx, 'fuel-bump', `${row.id}:${need}`, [{ ...scope, kind: 'tank', amount: -amount }, { ...scope, kind: 'tank_reserved', amount }])
    row.plan['need'] = need
    return true
  })
}

async function fuelMore(services: Services, row: TransactionRow, native: Asset, replacement: Replacement, plan: GasPlan): Promise<void> {
  let reason: string | null = null
  await services.database.transaction(async (tx) => {
    const fuel = await reserveFuel(services, tx, row, native, fuelOf(plan), replacement.id)
    if ('empty' in fuel) {
      reason = fuel.empty
      return
    }
    await tx.query(`update replacements set state = 'FUELING', plan = $2, updated_at = $3 where id = $1`,
      [replacement.id, JSON.stringify({ fuel_id: fuel.fuelId, float_taken: fuel.floatTaken.toString() }), tx.now()])
    await advance(tx, row, { last_error: null, run_in_ms: fuel.fuelId === null ? 0 : null })
  })
  if (reason !== null) await giveUp(services, row, replacement, reason)
}

/** What came to the address for the replacement is held for the transfer from then on. */
async function arrivedFuel(services: Services, row: TransactionRow, replacement: Replacement): Promise<'waiting' | 'failed' | 'arrived'> {
  const { fuel_id: fuelId, float_taken: float, counted } = replacement.plan
  if (counted === '1') return 'arrived'
  const fuel = fuelId ? await services.database.one<{ status: string; amount: string; settled: string | null }>(`select status, amount::text, plan->>'settled' settled from transactions where id = $1`, [fuelId]) : null
  if (fuel && fuel.status !== 'failed' && fuel.settled !== '1') {
    await advance(services.database, row, { run_in_ms: null })
    return 'waiting'
  }
  const floatTaken = BigInt(float ?? '0')
  const failed = fuel?.status === 'failed'
  await services.database.transaction(async (tx) => {
    await tx.query(`update replacements set plan = plan || '{"counted":"1"}' where id = $1`, [replacement.id])
    if (failed) {
      const scope = { workspace: row.workspace_id, asset: row.fee_asset, address: row.source_id }
      await post(tx, 'float-release', replacement.id, [{ ...scope, kind: 'float_reserved', amount: -floatTaken }, { ...scope, kind: 'float', amount: floatTaken }])
      return
    }
    const need = BigInt(row.plan['need'] ?? '0') + floatTaken + BigInt(fuel?.amount ?? '0')
    await tx.query(`update transactions set plan = plan || jsonb_build_object('need', $2::text) where id = $1`, [row.id, need.toString()])
    row.plan['need'] = need.toString()
  })
  return failed ? 'failed' : 'arrived'
}
