import { formatAmount, traitsOf, type Asset, type Registry } from '@custody/chains'
import { fail, type FuelShortfall, type Fail } from '../../core/engine/chain.ts'
import { advance } from '../../core/engine/lease.ts'
import type { Replacement } from '../../core/engine/replacement.ts'
import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Environment } from '../../core/environment.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Logger } from 'pino'
import type { Kinds } from '../../core/engine/interfaces/kind.ts'
import type { Tanks } from '../../core/engine/interfaces/tanks.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import type { WaitCode } from '../../core/engine/waiting.ts'
import { lockedBalance, post } from '../../core/ledger/post.ts'
import { isPolicyRefusal } from '../../core/signing/refusal.ts'
import { fuelOf, releaseFloat, type Supply } from './float.ts'
import { overTankCap, refuelAlone, reserveFuel, startFuelling } from './fuelling.ts'
import { loanOf, reclaimEnergy } from './energy-loan.ts'
import { tankLimits } from './limits.ts'
import { partsOf } from './shared-fuel.ts'

interface Services {
  environment: Environment
  database: Database
  registry: Registry
  networks: Networks
  signers: SignerNodes
  metrics: Metrics
  log: Logger
  kinds: Kinds
}

/** Creates the engine's interface to the workspaces' gas tanks. */
export const createTanks = (services: Services): Tanks => ({
  maxGasPrice: async (row) =>
    (await tankLimits(services.database, row.workspace_id, row.network)).maxGasPrice,
  start: (row, chain, priced) => startFuelling(services, row, chain, priced),
  async arrived(row) {
    const { database } = services
    const fuel = row.plan.fuel_id
      ? await fuelOf(database, row.workspace_id, row.plan.fuel_id)
      : undefined
    const loan = await loanOf(database, row)
    const refused = services.kinds[row.kind].isJudged?.(row) ? refusedOf([fuel, loan]) : null
    if (refused !== null) return refused
    if (fuel?.status === 'failed' && (await isShared(database, row))) return 'alone'
    if (fuel?.status === 'failed')
      return fail(`its fuel transaction failed: ${fuel.failure_reason ?? 'unknown'}`)
    if (fuel && fuel.settled !== '1') return 'waits'
    if (loan?.status === 'failed')
      return fail(`energy of the gas tank could not be lent: ${loan.failure_reason ?? 'unknown'}`)
    return loan && loan.settled !== '1' ? 'waits' : 'arrived'
  },
  async causeOf(row, replacement) {
    const plan: { fuel_id?: string | null; loan_id?: string | null } = replacement?.plan ?? row.plan
    const fuel = await services.database.one<{ code: WaitCode }>(
      `select waiting->>'code' code from transactions where workspace_id = $1 and id = any($2)
         and status = 'pending' and waiting is not null limit 1`,
      [row.workspace_id, [plan.fuel_id, plan.loan_id].filter((id) => typeof id === 'string')],
    )
    return fuel?.code ?? null
  },
  startAgain: (row) => startAgain(services, row),
  startAlone: (row) => refuelAlone(services, row),
  startMore: async (row, replacement, dearer) =>
    (await overLimits(services, row, dearer)) ??
    (row.source_type === 'GAS_TANK'
      ? reserveMore(services, row, dearer.more)
      : fuelMore(services, row, replacement, dearer)),
  arrivedMore: (row, replacement) => arrivedMore(services, row, replacement),
})

/**
 * Returns whether the policy refused everything that a transaction takes from its tank; `waits`: a
 * part of it is still under way. Null if nothing was refused, or if a part has arrived or failed for
 * another reason: the nodes sign fuel and a loan for a transaction only once, so it is not replaced.
 */
function refusedOf(supplies: readonly (Supply | undefined)[]): 'refused' | 'waits' | null {
  const taken = supplies.filter((each) => each !== undefined)
  const isRefused = ({ status, failure_reason: reason }: Supply) =>
    status === 'failed' && isPolicyRefusal(reason)
  const open = taken.filter((each) => !isRefused(each))
  if (open.length === taken.length) return null
  if (open.length === 0) return 'refused'
  return open.every(({ status, settled }) => status === 'pending' && settled !== '1')
    ? 'waits'
    : null
}

/**
 * Time until a transaction is judged again whose fuel the policy refused, in milliseconds; it doubles
 * each time. The policy may allow the transaction and refuse its fuel, and each time adds rows.
 */
const JUDGED_AGAIN_MS = 5000
const JUDGED_AGAIN_MAX_MS = 600_000

/**
 * FUELING → QUEUED: returns what was taken from the tank, because the policy refused it. A new plan
 * is made once the policy allows the transaction itself.
 */
async function startAgain(
  services: Pick<Services, 'environment' | 'database'>,
  row: TransactionRow,
): Promise<void> {
  const times = Number(row.plan.fuellings ?? '0')
  await services.database.transaction(async (tx) => {
    await reclaimEnergy(services, tx, row)
    await releaseFloat(tx, row)
    await advance(tx, row, {
      state: 'QUEUED',
      waits: 'POLICY',
      last_error: 'the policy did not allow its fuel; it is judged again',
      plan: {
        fuel_id: null,
        float_taken: null,
        loan_id: null,
        fuellings: String(times + 1),
      },
      run_in_ms: Math.min(JUDGED_AGAIN_MAX_MS, JUDGED_AGAIN_MS * 2 ** Math.min(times, 10)),
    })
  })
  services.environment.checkpoint('transaction.unfuelled')
}

const isShared = async (
  database: Queryable,
  { workspace_id: workspace, plan }: TransactionRow,
): Promise<boolean> => (await partsOf(database, workspace, plan.fuel_id as string)).length > 1

/** Returns the failure of a replacement beyond the limits of the workspace's gas tank; null if within. */
async function overLimits(
  { database, networks, registry }: Services,
  row: TransactionRow,
  { worst, price }: FuelShortfall,
): Promise<Fail | null> {
  const { feeCap, maxGasPrice } = await tankLimits(database, row.workspace_id, row.network)
  const { network } = networks.get(row.network)
  if (feeCap !== null && worst > feeCap)
    return overTankCap(registry.asset(network.native_asset) as Asset, worst, feeCap)
  if (maxGasPrice === null || price <= maxGasPrice) return null
  const { feeRateDecimals } = traitsOf(network)
  const show = (each: bigint) => `${formatAmount(each, feeRateDecimals)} ${network.fee_rate_unit}`
  return fail(`the gas tank pays at most ${show(maxGasPrice)}, and ${show(price)} would be needed`)
}

/** Reserves the higher fee of a replacement that the gas tank itself sends. */
async function reserveMore(
  services: Services,
  row: TransactionRow,
  amount: bigint,
): Promise<'taken' | Fail> {
  const scope = { workspace: row.workspace_id, asset: row.asset }
  return services.database.transaction(async (tx) => {
    if ((await lockedBalance(tx, { ...scope, kind: 'tank' })) < amount)
      return fail('the balance of the gas tank is too low for a higher fee')
    const need = (BigInt(row.plan.need ?? '0') + amount).toString()
    const written = await tx.query(
      `update transactions set plan = plan || jsonb_build_object('need', $3::text)
       where workspace_id = $5 and id = $1 and lease_token = $2 and plan->>'need' = $4 returning 1`,
      [row.id, row.lease_token, need, row.plan.need, row.workspace_id],
    )
    if (written.length !== 1) throw new Error('another worker changed the plan of this fuel')
    await post(tx, 'fuel-bump', `${row.id}:${need}`, [
      { ...scope, kind: 'tank', amount: -amount },
      { ...scope, kind: 'tank_reserved', amount },
    ])
    row.plan.need = need
    return 'taken'
  })
}

/**
 * Takes additional fuel for a replacement that its caller requested; automatic replacements get
 * none.
 */
async function fuelMore(
  services: Services,
  row: TransactionRow,
  replacement: Replacement,
  dearer: FuelShortfall,
): Promise<'started' | Fail> {
  if (replacement.kind === 'AUTO') return fail(dearer.short)
  const native = services.registry.asset(row.fee_asset) as Asset
  return services.database.transaction(async (tx) => {
    const fuel = await reserveFuel(services, tx, row, {
      native,
      need: dearer.need,
      fuel: dearer.fuel,
      replacementId: replacement.id,
    })
    if ('reason' in fuel) return fuel
    await tx.query(
      `update replacements set state = 'FUELING', plan = $2, updated_at = $3 where workspace_id = $4
        and id = $1`,
      [
        replacement.id,
        JSON.stringify({ fuel_id: fuel.fuelId, float_taken: fuel.floatTaken.toString() }),
        tx.now(),
        row.workspace_id,
      ],
    )
    await advance(tx, row, {
      waits: fuel.fuelId === null ? null : 'GAS_TANK',
      last_error: null,
      run_in_ms: fuel.fuelId === null ? 0 : null,
    })
    return 'started'
  })
}

/** Adds fuel that arrived for a replacement to the transfer's reservation. */
async function arrivedMore(
  services: Services,
  row: TransactionRow,
  replacement: Replacement,
): Promise<'arrived' | 'waits' | Fail> {
  const { fuel_id: fuelId, float_taken: float, counted } = replacement.plan
  const fuel: Supply | null = fuelId
    ? await fuelOf(services.database, row.workspace_id, fuelId)
    : null
  const failure = (): Fail =>
    fail(`its fuel transaction failed: ${fuel?.failure_reason ?? 'unknown'}`)
  if (counted === '1') return fuel?.status === 'failed' ? failure() : 'arrived'
  if (fuel && fuel.status !== 'failed' && fuel.settled !== '1') return 'waits'
  const floatTaken = BigInt(float ?? '0')
  const failed = fuel?.status === 'failed'
  await services.database.transaction(async (tx) => {
    await tx.query(
      `update replacements set plan = plan || '{"counted":"1"}' where workspace_id = $2 and id = $1`,
      [replacement.id, row.workspace_id],
    )
    if (failed) {
      const scope = { workspace: row.workspace_id, asset: row.fee_asset, address: row.source_id }
      await post(tx, 'float-release', replacement.id, [
        { ...scope, kind: 'float_reserved', amount: -floatTaken },
        { ...scope, kind: 'float', amount: floatTaken },
      ])
      return
    }
    const need = BigInt(row.plan.need ?? '0') + floatTaken + BigInt(fuel?.amount ?? '0')
    await tx.query(
      `update transactions set plan = plan || jsonb_build_object('need', $2::text)
        where workspace_id = $3 and id = $1`,
      [row.id, need.toString(), row.workspace_id],
    )
    row.plan.need = need.toString()
  })
  return failed ? failure() : 'arrived'
}
