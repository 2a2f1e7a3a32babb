import type { Asset, Network } from '@custody/chains'
import type { Queryable, Database } from '../../core/database/pool.ts'
import type { Priced } from '../../core/engine/chain.ts'
import { advance } from '../../core/engine/lease.ts'
import type { Environment } from '../../core/environment.ts'
import type { Plan, TransactionRow } from '../../core/engine/transaction.ts'
import { post } from '../../core/ledger/post.ts'

interface Services {
  environment: Environment
  database: Database
}

/** Maximum number of requests per fuel transaction; the signer nodes accept no more. */
const PARTS_MAX = 64
/**
 * Maximum time in milliseconds that a fuel transaction waits for further transfers while another
 * one to its address is pending.
 */
const COMPANY_MS = 12_000

/**
 * One transfer's part of a shared fuel transaction: its maximum cost, as submitted to the signer
 * nodes.
 */
interface Part {
  transaction_id: string
  gas: string
  max_fee_per_gas: string
  l1_fee: string
  amount: string
}

export const partsOf = (database: Queryable, workspace: string, fuelId: string): Promise<Part[]> =>
  database.query<Part>(
    `select transaction_id, gas::text, max_fee_per_gas::text, l1_fee::text, amount::text
      from fuel_parts
   where workspace_id = $2 and fuel_id = $1 order by transaction_id`,
    [fuelId, workspace],
  )

/**
 * Adds a transfer to a fuel transaction.
 * @param row the transfer that the fuel also pays for
 */
export async function addPart(
  tx: Queryable,
  fuelId: string,
  row: TransactionRow,
  plan: Plan,
  amount: bigint,
): Promise<void> {
  const { for_gas: gas, for_max_fee_per_gas: price, for_l1_fee: l1Fee } = plan as Plan<'FUEL'>
  await tx.query(
    `insert into fuel_parts (fuel_id, transaction_id, gas, max_fee_per_gas, l1_fee, amount,
      workspace_id)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [fuelId, row.id, gas, price, l1Fee ?? '0', amount.toString(), row.workspace_id],
  )
}

const UNDER_WAY = `f.workspace_id = $3 and f.kind = 'FUEL' and f.status = 'pending' and f.network = $1 and f.destination_id = $2
  and f.state <> 'QUEUED'
  and not f.plan ? 'settled'`

/**
 * Returns when a new fuel transaction to an address is due: immediately if none is pending there;
 * otherwise after `COMPANY_MS`, unless the pending one arrives earlier and wakes it.
 */
export async function dueAt(
  tx: Queryable,
  row: Pick<TransactionRow, 'workspace_id' | 'network' | 'source_id'>,
): Promise<Date> {
  const other = await tx.one(`select 1 from transactions f where ${UNDER_WAY} limit 1`, [
    row.network,
    row.source_id,
    row.workspace_id,
  ])
  return new Date(tx.now().getTime() + (other ? COMPANY_MS : 0))
}

/**
 * Adds a transfer to the waiting fuel transaction of its source address, if there is one. The row
 * is locked, so that no worker builds it concurrently; a row leased by a worker is skipped. The
 * caller holds the lock of the address's float.
 * @returns the fuel's id; null if there is none; `short`: the amount that the tank would need
 */
export async function joinFuel(
  tx: Queryable,
  row: TransactionRow,
  o: { network: Network; native: Asset; amount: bigint; fuel: Priced['fuel']; held: bigint },
): Promise<string | { short: bigint } | null> {
  const {
    network,
    native,
    amount,
    fuel: { cost, plan },
    held,
  } = o
  const match = await tx.one<{ id: string; amount: string; need: string; parts: number }>(
    `select f.id, f.amount::text, f.plan->>'need' need, (
       select count(*)::int from fuel_parts p where p.workspace_id = $5 and p.fuel_id = f.id) parts
     from transactions f
     where f.workspace_id = $5 and f.kind = 'FUEL' and f.status = 'pending' and f.state = 'QUEUED'
       and f.network = $1
       and f.destination_id = $2
       and f.lease_token is null and not f.plan ? 'alone' and f.amount + $3::numeric <= $4::numeric
       and (select count(*) from fuel_parts p where p.workspace_id = $5
         and p.fuel_id = f.id) between 1 and ${PARTS_MAX - 1}
     order by f.created_at, f.id limit 1 for update of f skip locked`,
    [row.network, row.source_id, amount.toString(), network.fee_cap, row.workspace_id],
  )
  if (!match) return null
  // The fee is never lower than the highest fee requested by its transfers, because all later
  // transactions of the tank wait behind it.
  const dearer = cost > BigInt(match.need) ? cost - BigInt(match.need) : 0n
  const more = amount + dearer
  if (held < more) return { short: more }
  const scope = { workspace: row.workspace_id, asset: native.asset_name }
  await post(tx, 'fuel-reserve', `${match.id}:${row.id}`, [
    { ...scope, kind: 'tank', amount: -more },
    { ...scope, kind: 'tank_reserved', amount: more },
  ])
  const {
    for_gas: _gas,
    for_max_fee_per_gas: _price,
    for_l1_fee: _l1Fee,
    ...own
  } = plan as Plan<'FUEL'>
  const isFull = match.parts + 1 === PARTS_MAX
  await tx.query(
    `update transactions set amount = amount + $2::numeric, fee = greatest(fee, $3::numeric),
       plan = plan || $4::jsonb,
       next_run_at = case when $5 then $6 else next_run_at end
     where workspace_id = $7 and id = $1`,
    [
      match.id,
      amount.toString(),
      cost.toString(),
      JSON.stringify(dearer > 0n ? own : {}),
      isFull,
      tx.now(),
      row.workspace_id,
    ],
  )
  await addPart(tx, match.id, row, plan, amount)
  return match.id
}

/**
 * Whether a fuel transaction waits for further transfers: while another one to its address is
 * pending, until it is full, and for at most `COMPANY_MS`.
 */
export async function awaitsCompany(
  { database, environment }: Services,
  row: TransactionRow<'FUEL'>,
): Promise<boolean> {
  if (row.state !== 'QUEUED' || row.plan.alone !== undefined || row.plan.replacement !== undefined)
    return false
  const leftMs = row.created_at.getTime() + COMPANY_MS - environment.now()
  if (leftMs <= 0) return false
  const count = (await partsOf(database, row.workspace_id, row.id)).length
  if (count === 0 || count >= PARTS_MAX) return false
  const waits = async () =>
    (await database.one(`select 1 from transactions f where ${UNDER_WAY} limit 1`, [
      row.network,
      row.destination_id,
      row.workspace_id,
    ])) !== undefined
  if (!(await waits())) return false
  await advance(database, row, { waits: 'EARLIER_TRANSFER', last_error: null, run_in_ms: leftMs })
  // Fuel that arrived during this step could not wake the transaction, so its arrival is checked
  // again.
  if (!(await waits())) await wakeWaiting(database, row)
  return true
}

/** Makes fuel that waits for further transfers at an address due. */
async function wakeWaiting(
  tx: Queryable,
  row: Pick<TransactionRow, 'workspace_id' | 'network' | 'destination_id'>,
): Promise<void> {
  await tx.query(
    `update transactions set next_run_at = $3
     where workspace_id = $4 and kind = 'FUEL' and status = 'pending' and state = 'QUEUED'
       and network = $1
       and destination_id = $2 and lease_token is null`,
    [row.network, row.destination_id, tx.now(), row.workspace_id],
  )
}

/**
 * Wakes everything that waited for a fuel transaction that has arrived or failed: its transfers,
 * and the next fuel.
 */
export async function wakeFuelled(tx: Queryable, row: TransactionRow): Promise<void> {
  await tx.query(
    `update transactions set next_run_at = $3 where workspace_id = $4 and lease_token is null
       and status = 'pending' and id = any(array(
       select $2::uuid union select transaction_id from fuel_parts where workspace_id = $4
         and fuel_id = $1))`,
    [row.id, row.parent_id, tx.now(), row.workspace_id],
  )
  await wakeWaiting(tx, row)
}
