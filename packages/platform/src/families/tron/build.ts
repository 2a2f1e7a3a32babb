import { ChainError, decode, tron as tronBuild, type Asset, type Network } from '@custody/chains'
import { sweepWaits } from '../../deposits/sweep-policy.ts'
import { lockedBalance } from '../../ledger/post.ts'
import { refusalOf } from '../../engine/destination.ts'
import type { Services } from '../../engine/services.ts'
import { buildStaking, stepRefusal } from '../../staking/build.ts'
import { lendingOf } from '../../gas-tanks/lend.ts'
import { actionOf, stakingOf } from '../../staking/steps.ts'
import { advance } from '../../engine/lease.ts'
import type { TransactionRow } from '../../engine/transaction.ts'
import { REVERT_ATTEMPTS_MAX, sourcePath } from '../evm/plan.ts'
import { startFailing } from '../../engine/fail.ts'
import { startFuelling, sweepAmount } from '../../gas-tanks/fuelling.ts'
import { nativeCost, planTron } from './plan.ts'

const REVERT_RETRY_MS = 3000

function assetOf(services: Services, row: TransactionRow): Asset {
  const asset = services.registry.asset(row.asset)
  if (!asset) throw new ChainError('ASSET', `asset ${row.asset} is not available`)
  return asset
}

/** QUEUED: plans energy, bandwidth and activation; transfers and sweeps take fuel from the tank, fuel and drains are built at once. */
export async function buildTron(services: Services, row: TransactionRow, network: Network): Promise<void> {
  if (row.source_type === 'GAS_TANK') return buildTronTransaction(services, row, network)
  if (stakingOf(row)) return buildStaking(services, row, network)
  const asset = assetOf(services, row)
  const fail = (reason: string) => services.database.transaction((tx) => startFailing(services, tx, row, reason))
  const amount = row.kind === 'SWEEP' ? await sweepAmount(services, row) : BigInt(row.amount)
  if (amount === 0n) return fail('nothing is left to sweep')
  if (row.kind === 'SWEEP' && asset.type === 'native') return buildOwnSweep(services, row, network, asset, amount)
  const refusal = row.kind === 'SWEEP' ? null : await refusalOf(services, network, { to: row.destination_id as string, tag: null, amount, asset })
  if (refusal) return fail(`${refusal.field}: ${refusal.reason}`)
  const planned = await planTron(services, row, network, asset, amount)
  if ('refused' in planned) return fail(planned.refused)
  if ('reverts' in planned) {
    if (row.attempts < REVERT_ATTEMPTS_MAX) return advance(services.database, row, { last_error: planned.reverts, run_in_ms: REVERT_RETRY_MS })
    return fail(`the chain would refuse this transfer: ${planned.reverts}`)
  }
  if (row.kind === 'SWEEP' && await sweepWaits(services, row, network, asset, { amount, cost: planned.worst + planned.cost, own: false })) return
  await startFuelling(services, row, network, planned)
}

/** A sweep of TRX pays for itself; the address's own free bandwidth carries most of them, and then nothing is kept back. */
async function buildOwnSweep(services: Services, row: TransactionRow, network: Network, asset: Asset, amount: bigint): Promise<void> {
  const { points, activation, cost } = await nativeCost(services, network, await services.networks.tronParameters(network.code), row.destination_id as string)
  const { stakedBandwidthLeft, freeBandwidthLeft } = await services.networks.tron(network.code).resources(row.source_id as string)
  // Whatever else leaves the address may take its free bandwidth first.
  const other = await services.database.one(`select 1 from transactions where network = $1 and source_id = $2 and status = 'pending' and id <> $3 limit 1`, [network.code, row.source_id, row.id])
  const isFree = activation === 0n && !other && (stakedBandwidthLeft >= points || freeBandwidthLeft >= points)
  if (await sweepWaits(services, row, network, asset, { amount, cost, own: true })) return
  await buildTronTransaction(services, { ...row, plan: { ...row.plan, fee_limit: '0', need: isFree ? '0' : cost.toString(), own: '1' } }, network)
}

/** → SIGNING. Commits the unsigned bytes. Nothing excludes another transaction here: the nodes sign one for each step. */
export async function buildTronTransaction(services: Services, row: TransactionRow, network: Network): Promise<void> {
  const asset = assetOf(services, row)
  const feeLimit = row.plan['fee_limit']
  if (feeLimit === undefined) throw new Error(`${row.kind} without a plan`)
  const account = row.source_id as string
  const staking = stakingOf(row)
  const refusal = staking && await stepRefusal(services, row, network, staking)
  if (refusal) return services.database.transaction((tx) => startFailing(services, tx, row, refusal))
  const action = staking ? actionOf(staking) : lendingOf(row)
  const path = await sourcePath(services.database, row, network)
  const key = await services.keys.get(row.workspace_id, network.curve)
  // Last: the transaction's life begins with it.
  const reference = await services.networks.tron(network.code).reference()
  await services.database.transaction(async (tx) => {
    const own = row.plan['own'] === '1'
    const unswept = row.kind === 'SWEEP' ? await lockedBalance(tx, { workspace: row.workspace_id, wallet: row.wallet_id, asset: row.asset, kind: 'unswept', address: account }) : 0n
    const amount = row.kind === 'SWEEP' ? unswept - (own ? BigInt(row.plan['need'] ?? '0') : 0n) : BigInt(row.amount)
    if (own && amount <= 0n) return startFailing(services, tx, row, 'what is left to sweep is not worth its fee')
    const common = { reference, publicKey: key.at(path), path }
    const unsigned = action ? tronBuild.buildAction(network, { ...common, ...action })
      : tronBuild.buildTransfer(network, { ...common, asset, to: row.destination_id as string, amount, feeLimit: BigInt(feeLimit ?? '0') })
    const decoded = decode(services.registry, unsigned, key.at)
    if (decoded.from[0] !== account) throw new Error('the derived address is not the source address')
    const last = await tx.one<{ attempt: number }>('select max(attempt) attempt from chain_transactions where transaction_id = $1', [row.id])
    await tx.query(
      `insert into chain_transactions (id, transaction_id, network, state, account, unsigned, fee_max, attempt, valid_until, step) values ($1, $2, $3, 'BUILT', $4, $5, $6, $7, $8, $9)`,
      [services.environment.uuid(), row.id, network.code, account, JSON.stringify(unsigned), decoded.fee_max.toString(), (last?.attempt ?? 0) + 1, decoded.valid_until, action?.kind ?? null])
    await advance(tx, row, { state: 'SIGNING', last_error: null, run_in_ms: 0, ...(row.kind === 'SWEEP' ? { amount } : {}), ...(own ? { fee: BigInt(row.plan['need'] ?? '0'), plan: { fee_limit: '0', need: String(row.plan['need']), own: '1' } } : {}) })
  })
  services.environment.checkpoint('transaction.built')
}
