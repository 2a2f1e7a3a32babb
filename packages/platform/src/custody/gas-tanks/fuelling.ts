import { formatAmount, type Asset, type Registry } from '@custody/chains'
import type { Queryable, Database } from '../../core/database/pool.ts'
import { fail, type Chain, type Fail, type Priced } from '../../core/engine/chain.ts'
import { overCap } from '../../core/engine/commit.ts'
import { lockCounting, stillCounts } from '../../core/engine/counted.ts'
import { startFailing } from '../../core/engine/outcomes/fail.ts'
import { insertTransaction } from '../../core/engine/insert.ts'
import { advance } from '../../core/engine/lease.ts'
import type { Environment } from '../../core/environment.ts'
import type { Networks } from '../../core/engine/networks.ts'
import type { SignerNodes } from '../../core/signing/nodes.ts'
import type { Metrics } from '../../core/metrics.ts'
import type { Logger } from 'pino'
import type { Kinds } from '../../core/engine/interfaces/kind.ts'
import type { Plan, TransactionRow } from '../../core/engine/transaction.ts'
import { lockedBalance, post } from '../../core/ledger/post.ts'
import { isFilling } from './ensure-tank.ts'
import { floatReference } from './float.ts'
import { canLend, reserveLoan } from './energy-loan.ts'
import { tankLimits } from './limits.ts'
import { addPart, dueAt, joinFuel, partsOf } from './shared-fuel.ts'

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

const TANK_FILL_RETRY_MS = 500

/**
 * → FUELING: takes the missing fee of the source address from the workspace's gas tank; if the tank
 * holds too little, the transaction fails.
 */
export async function startFuelling(
  services: Services,
  row: TransactionRow,
  { network }: Chain,
  priced: Priced,
): Promise<void> {
  const { worst } = priced
  const native = services.registry.asset(network.native_asset) as Asset
  const { feeCap } = await tankLimits(services.database, row.workspace_id, network.code)
  const refused =
    feeCap !== null && worst > feeCap
      ? overTankCap(native, worst, feeCap)
      : overCap(services, network, worst)
  if (refused)
    return services.database.transaction((tx) => startFailing(services, tx, row, refused.reason))
  await services.database.transaction(async (tx) => {
    const again = (reason: string) =>
      advance(tx, row, { last_error: `its fees are planned again: ${reason}`, run_in_ms: 0 })
    if (priced.counted !== undefined) {
      await lockCounting(tx, row)
      if (!(await stillCounts(tx, row, priced.counted)))
        return again('another transaction uses the same stake')
    }
    // This is read before the balance, so that a first funding that is credited in between does not
    // look like an empty tank.
    const filling = await isFilling(tx, row.workspace_id, network.code)
    if (priced.loan && !(await canLend(tx, row, priced.loan)))
      return again("the tank's stake is lent to another address")
    const fuel = await reserveFuel(services, tx, row, {
      native,
      need: priced.need,
      fuel: priced.fuel,
      replacementId: null,
    })
    if ('reason' in fuel) {
      if (filling) {
        const last_error = 'it waits for the first fill of the gas tank'
        return advance(tx, row, { waits: 'GAS_TANK', last_error, run_in_ms: TANK_FILL_RETRY_MS })
      }
      return startFailing(services, tx, row, fuel.reason)
    }
    const loanId = priced.loan ? await reserveLoan(services, tx, row, priced.loan) : null
    const isThere = fuel.fuelId === null && loanId === null
    await advance(tx, row, {
      state: 'FUELING',
      fee: worst,
      waits: isThere ? null : 'GAS_TANK',
      last_error: null,
      run_in_ms: isThere ? 0 : null,
      plan: {
        ...priced.plan,
        ...(loanId === null ? {} : { loan_id: loanId }),
        fuel_id: fuel.fuelId,
        float_taken: fuel.floatTaken.toString(),
      },
    })
  })
  services.environment.checkpoint('transaction.fuel-reserved')
}

function holdsTooLittle(
  row: TransactionRow,
  native: Asset,
  address: string | null,
  held: bigint,
  needed: bigint,
): Fail {
  const show = (value: bigint) => `${formatAmount(value, native.decimals)} ${native.asset_name}`
  const name = `the gas tank of ${row.network}${address === null ? '' : ` (${address})`}`
  return fail(
    `${name} has ${show(held)}; this transfer requires ${show(needed)}, so ${show(needed - held)} are missing`,
  )
}

/**
 * Reserves the amount and fee of a fuel transaction and inserts it.
 * @returns its id
 */
async function insertFuel(
  services: Pick<Services, 'environment'>,
  tx: Queryable,
  row: TransactionRow,
  {
    native,
    tank,
    amount,
    cost,
    plan,
    dueAt,
  }: { native: Asset; tank: string; amount: bigint; cost: bigint; plan: Plan; dueAt?: Date },
): Promise<string> {
  const id = services.environment.uuid()
  const scope = { workspace: row.workspace_id, asset: native.asset_name }
  await post(tx, 'fuel-reserve', id, [
    { ...scope, kind: 'tank', amount: -(amount + cost) },
    { ...scope, kind: 'tank_reserved', amount: amount + cost },
  ])
  await insertTransaction(tx, {
    id,
    kind: 'FUEL',
    state: 'QUEUED',
    workspace_id: row.workspace_id,
    sub_account_id: row.sub_account_id,
    parent_id: row.id,
    asset: native.asset_name,
    network: row.network,
    amount,
    fee: cost,
    fee_asset: native.asset_name,
    source_type: 'GAS_TANK',
    source_id: tank,
    destination_type: 'OMNIBUS',
    destination_id: row.source_id,
    plan: plan as Plan<'FUEL'>,
    ...(dueAt === undefined ? {} : { next_run_at: dueAt }),
  })
  return id
}

/**
 * Creates a separate fuel transaction for a transfer, with the same amount, after a fuel
 * transaction shared with others failed, possibly because of one of them. The reservation of the
 * failed one was already returned to the tank.
 */
export async function refuelAlone(services: Services, row: TransactionRow): Promise<void> {
  const native = services.registry.asset(row.fee_asset) as Asset
  const { fuelled } = services.networks.get(row.network)
  const last = await services.database.one<TransactionRow<'FUEL'>>(
    'select * from transactions where workspace_id = $2 and id = $1',
    [row.plan.fuel_id, row.workspace_id],
  )
  // Fuel that failed because of its gas limit must not be sent again with the same limit.
  const again = last && (await fuelled?.again?.(last))
  await services.database.transaction(async (tx) => {
    const failed = await tx.one<TransactionRow<'FUEL'> & { part: string }>(
      `select f.*, p.amount::text part from transactions f
         join fuel_parts p on p.workspace_id = f.workspace_id and p.fuel_id = f.id
           and p.transaction_id = $2
       where f.workspace_id = $3 and f.id = $1`,
      [row.plan.fuel_id, row.id, row.workspace_id],
    )
    const [own] = failed
      ? (await partsOf(tx, row.workspace_id, failed.id)).filter(
          (part) => part.transaction_id === row.id,
        )
      : []
    if (!failed || !own) throw new Error('the fuel of this transfer is missing')
    const [amount, cost] = [BigInt(own.amount), again?.cost ?? BigInt(failed.plan.need ?? '0')]
    const tank = failed.source_id as string
    const held = await lockedBalance(tx, {
      workspace: row.workspace_id,
      asset: native.asset_name,
      kind: 'tank',
    })
    if (held < amount + cost) {
      return startFailing(
        services,
        tx,
        row,
        holdsTooLittle(row, native, tank, held, amount + cost).reason,
      )
    }
    const plan: Plan<'FUEL'> = {
      ...failed.plan,
      ...(again?.plan as Plan<'FUEL'> | undefined),
      alone: '1',
      for_gas: own.gas,
      for_max_fee_per_gas: own.max_fee_per_gas,
      for_l1_fee: own.l1_fee,
    }
    const id = await insertFuel(services, tx, row, {
      native,
      tank,
      amount,
      cost,
      plan: plan as Plan,
    })
    await addPart(tx, id, row, plan as Plan, amount)
    await advance(tx, row, {
      plan: { fuel_id: id },
      waits: 'GAS_TANK',
      last_error: null,
      run_in_ms: null,
    })
  })
  services.environment.checkpoint('transaction.fuel-reserved')
}

/** Returns the failure of a transaction whose fee is above the cap that a tank has for one. */
export function overTankCap(
  { decimals, asset_name: name }: Asset,
  worst: bigint,
  cap: bigint,
): Fail {
  const show = (amount: bigint) => `${formatAmount(amount, decimals)} ${name}`
  return fail(
    `a network fee of up to ${show(worst)} exceeds the gas tank's cap of ${show(cap)} for one transaction`,
  )
}

/**
 * Fuel that a transaction needs, in the smallest unit of the native coin. `replacementId`: the
 * replacement that needs more than the pending transaction has reserved; null for the first
 * transaction.
 */
interface FuelNeed extends Pick<Priced, 'need' | 'fuel'> {
  native: Asset
  replacementId: string | null
}

/**
 * Takes float, and the missing rest from the tank. Returns a failure if the tank holds too little.
 */
export async function reserveFuel(
  services: Pick<Services, 'environment' | 'networks' | 'kinds'>,
  tx: Queryable,
  row: TransactionRow,
  { native, need, fuel: { cost, plan }, replacementId }: FuelNeed,
): Promise<{ fuelId: string | null; floatTaken: bigint } | Fail> {
  const scope = { workspace: row.workspace_id, asset: native.asset_name }
  const float = await lockedBalance(tx, { ...scope, kind: 'float', address: row.source_id })
  const floatTaken = float < need ? (float > 0n ? float : 0n) : need
  const amount = need - floatTaken
  let fuelId: string | null = null
  if (amount > 0n) {
    const tank = await tx.one<{ address: string }>(
      'select address from gas_tanks where workspace_id = $1 and network = $2',
      [row.workspace_id, row.network],
    )
    const held = tank ? await lockedBalance(tx, { ...scope, kind: 'tank' }) : 0n
    if (!tank) return holdsTooLittle(row, native, null, held, amount + cost)
    // Fuel that the policy refused once is not shared again: another transfer may be the reason.
    const shares =
      replacementId === null &&
      row.plan.fuellings === undefined &&
      (services.kinds[row.kind].isOwnPayment?.(row) ?? false)
    const { network } = services.networks.get(row.network)
    const joined = shares
      ? await joinFuel(tx, row, { network, native, amount, fuel: { cost, plan }, held })
      : null
    if (joined !== null && typeof joined !== 'string')
      return holdsTooLittle(row, native, tank.address, held, joined.short)
    fuelId = joined
    if (fuelId === null) {
      if (held < amount + cost)
        return holdsTooLittle(row, native, tank.address, held, amount + cost)
      fuelId = await insertFuel(services, tx, row, {
        native,
        tank: tank.address,
        amount,
        cost,
        plan:
          replacementId !== null
            ? { ...plan, replacement: replacementId }
            : shares
              ? { ...plan, together: '1' }
              : plan,
        ...(shares ? { dueAt: await dueAt(tx, row) } : {}),
      })
      if (shares) await addPart(tx, fuelId, row, plan, amount)
    }
  }
  await post(tx, 'float-reserve', replacementId ?? floatReference(row), [
    { ...scope, kind: 'float', address: row.source_id, amount: -floatTaken },
    { ...scope, kind: 'float_reserved', address: row.source_id, amount: floatTaken },
  ])
  return { fuelId, floatTaken }
}
