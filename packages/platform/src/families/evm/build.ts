import { ChainError, decode, evm as evmBuild, formatAmount, type Asset, type Network } from '@custody/chains'
import { sweepWaits } from '../../deposits/sweep-policy.ts'
import { tankLimits } from '../../gas-tanks/limits.ts'
import { lockedBalance } from '../../ledger/post.ts'
import type { Services } from '../../engine/services.ts'
import { advance } from '../../engine/lease.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import { fuelOf, planFields, planGas, planOf, REVERT_ATTEMPTS_MAX, sourcePath, type GasPlan } from './plan.ts'
import { startFailing } from '../../engine/fail.ts'
import { lowestFree } from '../../engine/nonce-order.ts'
import { startFuelling, sweepAmount } from '../../gas-tanks/fuelling.ts'

const REVERT_RETRY_MS = 3000
const PRICE_RETRY_MS = 10_000
/** How long a transfer waits for gas to become as cheap as its tank pays. */
const PRICE_WAIT_MS = 3_600_000
const GWEI_DECIMALS = 9

function assetOf(services: Services, row: TransactionRow): Asset {
  const asset = services.registry.asset(row.asset)
  if (!asset) throw new ChainError('ASSET', `asset ${row.asset} is not available`)
  return asset
}

/** QUEUED: plans gas and price; transfers and sweeps take fuel from the tank, fuel and drains are built at once. */
export async function buildEvm(services: Services, row: TransactionRow, network: Network): Promise<void> {
  const asset = assetOf(services, row)
  const known = planOf(row)
  if ((row.kind === 'FUEL' || row.kind === 'DRAIN') && known) return buildAccountTransaction(services, row, network, known)
  const amount = row.kind === 'SWEEP' ? await sweepAmount(services, row) : BigInt(row.amount)
  if (amount === 0n) return services.database.transaction((tx) => startFailing(services, tx, row, 'nothing is left to sweep'))
  const planned = await planGas(services, row, network, asset, amount)
  if ('reverts' in planned) {
    if (row.attempts < REVERT_ATTEMPTS_MAX) return advance(services.database, row, { last_error: planned.reverts, run_in_ms: REVERT_RETRY_MS })
    return services.database.transaction((tx) => startFailing(services, tx, row, `the chain would refuse this transfer: ${planned.reverts}`))
  }
  const { maxGasPrice } = await tankLimits(services.database, row.workspace_id, network.code)
  const plan = maxGasPrice === null ? planned.plan : belowPrice(planned.plan, maxGasPrice)
  if (plan === null) {
    const wait = `waits for a gas price of at most ${formatAmount(maxGasPrice as bigint, GWEI_DECIMALS)} ${network.fee_rate_unit}, which the gas tank pays`
    if (services.environment.now() - row.created_at.getTime() < PRICE_WAIT_MS) return advance(services.database, row, { last_error: wait, run_in_ms: PRICE_RETRY_MS })
    return services.database.transaction((tx) => startFailing(services, tx, row, `the gas price stayed above ${formatAmount(maxGasPrice as bigint, GWEI_DECIMALS)} ${network.fee_rate_unit}, the most that the gas tank pays, for an hour`))
  }
  if (row.kind === 'SWEEP' && asset.type === 'native') return buildOwnSweep(services, row, network, asset, plan, amount)
  const fuelling = fuelOf(plan)
  if (row.kind === 'SWEEP' && await sweepWaits(services, row, network, asset, { amount, cost: fuelling.worst + fuelling.cost, own: false })) return
  await startFuelling(services, row, network, fuelling)
}

/** A sweep of the native coin pays for itself: the nodes give it no fuel, for a hostile platform could draw on the tank by it. */
async function buildOwnSweep(services: Services, row: TransactionRow, network: Network, asset: Asset, plan: GasPlan, amount: bigint): Promise<void> {
  const worst = plan.gas * plan.fee.maxFeePerGas + plan.l1Fee
  if (worst > BigInt(network.fee_cap)) {
    const reason = `a network fee of up to ${formatAmount(worst, asset.decimals)} ${asset.asset_name} exceeds the cap of ${formatAmount(BigInt(network.fee_cap), asset.decimals)}`
    return services.database.transaction((tx) => startFailing(services, tx, row, reason))
  }
  if (await sweepWaits(services, row, network, asset, { amount, cost: plan.need, own: true })) return
  await buildAccountTransaction(services, row, network, plan, true)
}

/** The plan with no higher price than the tank pays; null while the chain's own price is above it. */
function belowPrice(plan: GasPlan, most: bigint): GasPlan | null {
  const capped = (fee: GasPlan['fee']): GasPlan['fee'] | null => {
    if (fee.maxFeePerGas <= most) return fee
    // The maximum is twice the base fee and the tip: half of both is what the chain asks for now.
    const expected = fee.legacy ? fee.maxFeePerGas : (fee.maxFeePerGas + fee.maxPriorityFeePerGas) / 2n
    return expected > most ? null : { ...fee, maxFeePerGas: most }
  }
  const [fee, fuelFee] = [capped(plan.fee), capped(plan.fuelFee)]
  return fee === null || fuelFee === null ? null : { ...plan, fee, fuelFee, need: evmBuild.fuelFor(plan.gas, fee.maxFeePerGas, plan.l1Fee) }
}

/**
 * → SIGNING. Takes the lowest free nonce under the account's lock and commits the unsigned bytes with it.
 * @param own a sweep that pays for itself: what it needs stays at its address
 */
export async function buildAccountTransaction(services: Services, row: TransactionRow, network: Network, plan: GasPlan, own = false): Promise<void> {
  const asset = assetOf(services, row)
  const account = row.source_id as string
  const path = await sourcePath(services.database, row, network)
  const key = await services.keys.get(row.workspace_id, network.curve)
  const mined = await services.networks.evm(network.code).nonce(account)
  await services.database.transaction(async (tx) => {
    await tx.query('insert into signing_accounts (network, address) values ($1, $2) on conflict do nothing', [network.code, account])
    await tx.query('select 1 from signing_accounts where network = $1 and address = $2 for update', [network.code, account])
    const unswept = row.kind === 'SWEEP' ? await lockedBalance(tx, { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset, kind: 'unswept', address: account }) : 0n
    const amount = row.kind === 'SWEEP' ? unswept - (own ? plan.need : 0n) : BigInt(row.amount)
    if (own && amount < plan.need) return startFailing(services, tx, row, 'what is left to sweep is not worth its fee')
    // A nonce whose transaction was given up before any signature is used again: a gap would stop everything behind it.
    const nonce = await lowestFree(tx, network.code, account, mined)
    const unsigned = evmBuild.buildTransfer(network, { asset, to: row.destination_id as string, amount, nonce, gas: plan.gas, fee: plan.fee, path })
    const decoded = decode(services.registry, unsigned, key.at)
    if (decoded.from[0] !== account) throw new Error('the derived address is not the source address')
    await tx.query(
      `insert into chain_transactions (id, transaction_id, network, state, account, nonce, unsigned, fee_max) values ($1, $2, $3, 'BUILT', $4, $5, $6, $7)`,
      [services.environment.uuid(), row.id, network.code, account, nonce.toString(), JSON.stringify(unsigned), decoded.fee_max.toString()])
    await tx.query('update signing_accounts set next_nonce = greatest(next_nonce, $3) where network = $1 and address = $2', [network.code, account, (nonce + 1n).toString()])
    await advance(tx, row, {
      state: 'SIGNING', last_error: null, run_in_ms: 0, ...(row.kind === 'SWEEP' ? { amount } : {}),
      ...(own ? { fee: plan.gas * plan.fee.maxFeePerGas + plan.l1Fee, plan: { ...planFields(plan), own: '1' } } : {}),
    })
  })
  services.environment.checkpoint('transaction.built')
}
