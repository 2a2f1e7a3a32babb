import { audit } from '../../src/server/audit/audit.ts'
import type { Callers, PlannedTransfer } from './callers.ts'
import type { TransferLog } from './transfer-log.ts'
import { Instance } from './instance.ts'
import { wrongInBooks } from './oracle-books.ts'
import { wrongInEvents } from './oracle-events.ts'
import type { SimulatedEnvironment } from './environment.ts'

/** Checks the properties that must hold once everything has ended. */
export async function check(
  environment: SimulatedEnvironment,
  callers: Callers,
  transferLog: TransferLog,
): Promise<string[]> {
  const { database } = environment
  const problems: string[] = []
  const paid = new Map<string, number>()
  for (const { place } of environment.networks) {
    const chain = environment.devnet.chains.find(({ code }) => code === place.code)
    const { head } = await (chain as NonNullable<typeof chain>).info()
    for (let height = 0; height <= (head?.height ?? -1); height++) {
      for (const { asset, address, amount } of (await chain?.paymentsIn(height)) ?? []) {
        const name = `${asset} ${address.toLowerCase()} ${amount}`
        paid.set(name, (paid.get(name) ?? 0) + 1)
      }
    }
  }
  for (const wanted of callers.wanted) problems.push(...(await judged(environment, wanted, paid)))
  // The oracle uses its own instance.
  const { services } = new Instance(environment, 'oracle', 'api')
  const eyes = {
    ...services,
    database,
    environment: { ...services.environment, sleep: async () => undefined },
  }
  const report = await withSchedule(environment, audit(eyes as typeof services))
  if (!report.ok) problems.push(`the audit: ${JSON.stringify(report.differences).slice(0, 1500)}`)
  if (report.dust.length > 0) problems.push(`the audit: ${JSON.stringify(report.dust)}`)
  problems.push(...(await withSchedule(environment, asBooked(eyes as typeof services))))
  problems.push(
    ...(await wrongInBooks(database)),
    ...(await wrongInEvents(environment)),
    ...(await uncredited(environment, transferLog, paid)),
  )
  return problems
}

/**
 * Runs the schedule while work is pending, because answers of chains only come through the
 * schedule.
 */
async function withSchedule<T>(environment: SimulatedEnvironment, work: Promise<T>): Promise<T> {
  let isDone = false
  const done = work.finally(() => {
    isDone = true
  })
  done.catch(() => undefined)
  while (!isDone) {
    await environment.buried()
    await environment.schedule.step(environment.schedule.nowMs + 100)
  }
  return done
}

/** Checks that the ledger entries of each transaction match the chain. */
async function asBooked(services: Instance['services']): Promise<string[]> {
  const problems: string[] = []
  const rows = await services.database.query<{
    network: string
    hash: string
    fee: string
    block_hash: string
    kind: string
  }>(
    `select c.network, c.hash, c.fee::text, c.block_hash, t.kind from chain_transactions c
      join transactions t on t.id = c.transaction_id
     where c.state = 'CONFIRMED'`,
  )
  for (const { network, hash, fee, block_hash: block, kind } of rows) {
    const status = await services.networks.client(network).status(hash)
    const said =
      status.state === 'included'
        ? { fee: String(status.fee ?? fee), block: status.blockHash }
        : { fee: status.state, block: '' }
    if (said.fee !== fee || said.block !== block)
      problems.push(
        `${network} ${kind} ${hash}: booked with fee ${fee} in ${block}; the chain says ${said.fee} in ${said.block}`,
      )
  }
  return problems
}

async function judged(
  environment: SimulatedEnvironment,
  wanted: PlannedTransfer,
  paid: ReadonlyMap<string, number>,
): Promise<string[]> {
  const { asset, amount, to, units, sequence } = wanted
  const what = `${sequence} (${amount} ${asset})`
  const problems: string[] = []
  const onChain = paid.get(`${asset} ${to.toLowerCase()} ${units}`) ?? 0
  const rows = await environment.database.query<{ id: string; status: string; state: string }>(
    `select id, status, state from transactions where kind = 'WITHDRAWAL' and sub_account_id = $1
      and sequence_id = $2`,
    [wanted.caller.subAccountId, sequence],
  )
  if (rows.length > 1) problems.push(`${what}: there are ${rows.length} transfers`)
  if (onChain > 1) problems.push(`${what}: it was paid ${onChain} times`)
  const [row] = rows
  const understood = environment.policy
    ? /^(INSUFFICIENT_BALANCE|POLICY_DENIED)/
    : /^(INSUFFICIENT_BALANCE)/
  if (wanted.refused !== null && !understood.test(wanted.refused))
    problems.push(`${what}: it was refused: ${wanted.refused}`)
  if (wanted.id !== null && row?.id !== wanted.id)
    problems.push(`${what}: it was answered as ${wanted.id} and is ${row?.id}`)
  if (new Set(wanted.answers).size > 1)
    problems.push(`${what}: the answers differ: ${[...new Set(wanted.answers)].join(' | ')}`)
  if (row && onChain !== (row.status === 'confirmed' ? 1 : 0))
    problems.push(
      `${what}: it is ${row.status} (${row.state}), and the chain has it ${onChain} times`,
    )
  if (!row && onChain > 0) problems.push(`${what}: the chain has it, and the books do not`)
  return problems
}

/** Checks that every deposit is credited as often as the chain contains it. */
async function uncredited(
  environment: SimulatedEnvironment,
  { sent }: TransferLog,
  paid: ReadonlyMap<string, number>,
): Promise<string[]> {
  const problems: string[] = []
  for (const { asset, address, units } of sent) {
    const row = await environment.database.one<{ count: string }>(
      `select count(*)::text count from transactions where kind = 'DEPOSIT' and status = 'confirmed'
        and asset = $1 and amount = $2
        and lower(destination_id) = lower($3)`,
      [asset, String(units), address],
    )
    const onChain = paid.get(`${asset} ${address.toLowerCase()} ${units}`) ?? 0
    if (Number(row?.count) !== onChain)
      problems.push(
        `a deposit of ${units} ${asset} to ${address}: ${onChain} on the chain, ${row?.count} credited`,
      )
  }
  return problems
}
