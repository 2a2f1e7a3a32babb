import { PREPAID, type Traders, type WantedOrder } from './traders.ts'
import type { SimulatedEnvironment } from './environment.ts'

interface Row {
  id: string
  state: string
  status: string
  amount: string
  filled: string
  platform_fee: string
  fee_charged: string | null
  fills: string
}

/** Matches refusals that callers must expect: the exchange temporarily rejects the key. */
const UNDERSTOOD = /^EXCHANGE_KEY_REFUSED/
const STATUSES: Record<string, readonly string[]> = {
  closed: ['filled'],
  canceled: ['cancelled'],
  expired: ['cancelled'],
}
const UNITS = 10n ** 18n

/**
 * Checks that the platform's orders at rest match those of the exchange, and that each is charged
 * once.
 */
export async function wrongInTrading(
  environment: SimulatedEnvironment,
  traders: Traders,
): Promise<string[]> {
  if (!traders.isOn) return []
  const problems: string[] = []
  const there = [...environment.exchange.accounts.values()].flatMap(({ orders }) => [
    ...orders.values(),
  ])
  const existing = new Set<string>()
  let charged = 0n
  for (const wanted of traders.wanted) {
    const rows = await rowsOf(environment, wanted)
    for (const { id } of rows) existing.add(id.replaceAll('-', ''))
    charged += rows.reduce((sum, { fee_charged: fee }) => sum + BigInt(fee ?? '0'), 0n)
    problems.push(
      ...judged(
        wanted,
        rows,
        there.filter(({ clientId }) => rows.some(({ id }) => id.replaceAll('-', '') === clientId)),
      ),
    )
  }
  for (const { id, clientId } of there)
    if (!existing.has(clientId)) problems.push(`the exchange has ${id}, which nobody ordered`)
  problems.push(...(await wrongInPrepaid(environment, charged)))
  return problems
}

const rowsOf = (
  environment: SimulatedEnvironment,
  { caller, sequence }: WantedOrder,
): Promise<Row[]> =>
  environment.database.query<Row>(
    `select o.id, state, status, amount::text, filled::text, platform_fee::text, fee_charged::text,
     coalesce((select string_agg(trade_id, ' ' order by trade_id) from order_fills f
       where f.workspace_id = o.workspace_id and f.order_id = o.id), '') fills
   from orders o where workspace_id = $3 and sub_account_id = $1 and sequence_id = $2`,
    [caller.subAccountId, sequence, caller.workspaceId],
  )

interface There {
  id: string
  status: string
  filled: number
  trades: string[]
}

function judged(
  { sequence, answers, id, refused }: WantedOrder,
  rows: readonly Row[],
  there: readonly There[],
): string[] {
  const problems: string[] = []
  const wrong = (what: string) => problems.push(`${sequence}: ${what}`)
  const [row] = rows
  const [order] = there
  if (rows.length > 1) wrong(`there are ${rows.length} orders`)
  if (there.length > 1) wrong(`the exchange has it ${there.length} times`)
  if (new Set(answers).size > 1) wrong(`the answers differ: ${[...new Set(answers)].join(' | ')}`)
  if (id !== null && row?.id !== id) wrong(`it was answered as ${id} and is ${row?.id}`)
  if (refused !== null && !UNDERSTOOD.test(refused)) wrong(`it was refused: ${refused}`)
  if (refused !== null && row)
    wrong(`it was refused (${refused}), and there is one, which is ${row.status}`)
  if (!row) {
    if (order) wrong('the exchange has it, and the books do not')
    return problems
  }
  if (row.state !== 'ENDED') wrong(`it is ${row.state}`)
  const filled = units(order?.filled ?? 0)
  const statuses = order === undefined ? ['rejected', 'cancelled'] : (STATUSES[order.status] ?? [])
  if (!statuses.includes(row.status))
    wrong(`it is ${row.status}, and at the exchange ${order?.status ?? 'not'}`)
  if (BigInt(row.filled) !== filled)
    wrong(`${row.filled} of it are filled, at the exchange ${filled}`)
  const trades = [...new Set(order?.trades ?? [])].sort().join(' ')
  if (row.fills !== trades) wrong(`its fills are ${row.fills}, at the exchange ${trades}`)
  const amount = BigInt(row.amount)
  const fee = (BigInt(row.platform_fee) * filled + amount - 1n) / amount
  if (row.fee_charged !== String(fee))
    wrong(`it was charged ${row.fee_charged} of ${row.platform_fee}, which should be ${fee}`)
  return problems
}

/**
 * Converts coins to units. The conversion is exact, because amounts at the exchange are multiples
 * of a thousandth.
 */
const units = (coins: number): bigint => (BigInt(Math.round(coins * 1000)) * UNITS) / 1000n

/**
 * Checks that the deposited prepaid amount equals the balance plus the charges, each charged once,
 * and that no amount is still reserved.
 */
async function wrongInPrepaid(
  environment: SimulatedEnvironment,
  ofOrders: bigint,
): Promise<string[]> {
  const sums = new Map(
    (
      await environment.database.query<{ kind: string; sum: string }>(
        `select kind, sum(balance)::text sum from ledger_accounts
          where kind in ('prepaid', 'prepaid_reserved', 'fees') group by 1`,
      )
    ).map(({ kind, sum }) => [kind, BigInt(sum)]),
  )
  // The fee of a transaction that was broadcast and then cancelled is charged too; the fee of one
  // that was never broadcast is returned.
  const row = await environment.database.one<{ taken: string; count: string }>(
    `select coalesce(sum(platform_fee) filter (where plan->>'refunded' is distinct from '1'),
       0)::text taken,
       count(*) filter (where plan->>'refunded' = '1' and status = 'confirmed')::text count
         from transactions where platform_fee is not null`,
  )
  const charged = ofOrders + BigInt(row?.taken ?? '0')
  const [left, held, fees] = ['prepaid', 'prepaid_reserved', 'fees'].map(
    (kind) => sums.get(kind) ?? 0n,
  ) as [bigint, bigint, bigint]
  const problems: string[] = []
  if (row?.count !== '0')
    problems.push(`${row?.count} confirmed transactions have their platform fee given back`)
  if (held !== 0n) problems.push(`${held} of platform fees are held back`)
  if (fees !== charged)
    problems.push(`${fees} of platform fees were taken, and ${charged} should have been`)
  if (left + held + fees !== PREPAID)
    problems.push(`of ${PREPAID} prepaid ${left} are left and ${fees} were taken`)
  return problems
}
