import { getPriority, setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { median, percentile, report } from '../../../testing/figures.ts'
import { ethPayments, inFlight } from '../../signer/bench/flights.ts'
import { SignerCluster } from '../../signer/testing/signer-cluster.ts'
import {
  call,
  fundedWallet,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { cpuSeconds, memoryMb } from './processes.ts'

/**
 * Measures continuous transfers of many wallets, from their POST until they are confirmed, compared
 * with the signing rate of the nodes; and the memory at the end, compared with the memory soon
 * after the beginning: `node bench/sustained.bench.ts [under way] [wallets]`, for
 * `CUSTODY_BENCH_MINUTES`. At the end each transfer must be confirmed, and the ledger must agree
 * with the chains.
 */
const [underWay, wallets] = [Number(process.argv[2] ?? 50), Number(process.argv[3] ?? 50)]
const loadMs = Number(process.env['CUSTODY_BENCH_MINUTES'] ?? 3) * 60_000
/** Initial time in milliseconds that is excluded from the measurement. */
const rampMs = Math.min(30_000, loadMs / 6)
/**
 * Time in milliseconds before the first memory measurement. The last one is at the end of the load.
 */
const settledMs = Math.min(300_000, loadMs / 3)
/**
 * Interval in milliseconds and number of memory readings for one figure. A single garbage
 * collection must not decide it.
 */
const [LOOK_MS, LOOKS] = [30_000, 15]
const WORKSPACE = 'bench-sustained'
const SINK = '0x00000000000000000000000000000000000000be'
const ENDED_WITHIN_MS = 180_000
/** Concurrent accounts, and signatures of each, in the measurement of the floor. */
const [IN_FLIGHT, EACH] = [8, 24]
/** Processes that a production service does not have. */
const APART = new Set(['chains', 'npm'])

const platform = new TestPlatform({ mode: 'prepared' })
const ended = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => ended.abort(new Error(signal)))

/**
 * Measures the signatures per second of three real nodes without other load. Each of several
 * accounts signs one at a time.
 */
async function nodesPerSecond(): Promise<number> {
  const cluster = await SignerCluster.start({ where: 'apart' })
  try {
    // The platform's nodes run at a lower priority. The measured nodes get the same priority, so
    // that both are affected equally if the machine is shared.
    const niceness = getPriority(platform.childPid('signer/src/main.ts.*HOME'))
    for (const { pid } of cluster.processes.values()) setPriority(pid as number, niceness)
    const workspace = await cluster.workspace()
    const flights = async (from: number, count: number) =>
      Promise.all(
        Array.from({ length: IN_FLIGHT }, async (_, at) =>
          ethPayments(await workspace.caller(from + at), count),
        ),
      )
    await inFlight(workspace, await flights(1, EACH / 4))
    return (await inFlight(workspace, await flights(1 + IN_FLIGHT, EACH))).perSecond
  } finally {
    await cluster.stop()
  }
}

/**
 * Creates wallets with sufficient coins for the whole run, and a gas tank and a prepaid account
 * that are sufficient too.
 */
async function openWallets(): Promise<User[]> {
  const users = await Promise.all(
    Array.from({ length: wallets }, (_, at) =>
      platform.user(WORKSPACE, { subAccount: `sub-${at}`, rateLimit: 1_000_000 }),
    ),
  )
  await Promise.all(users.map((user) => fundedWallet(platform, user, 'ETH', '1000')))
  ended.signal.throwIfAborted()
  const { body } = await call<{ network: string; address: string }[]>(
    users[0] as User,
    'GET',
    '/dac/v1/gas-tanks',
  )
  await platform.fund(
    'ETH',
    body.find(({ network }) => network === 'ETH')?.address as string,
    '10000',
  )
  await platform.operator('prepaid-fee adjust', { workspace: WORKSPACE, amount: '100000000' })
  await platform.atRest()
  return users
}

const workspaceId = async (): Promise<string> =>
  (
    await platform.database.one<{ id: string }>('select id from workspaces where name = $1', [
      WORKSPACE,
    ])
  )?.id as string

/**
 * Waits for the ends of transfers. One database query reads all of them, because a signed request
 * costs far more.
 */
class Ends {
  readonly #workspace: string
  readonly #waiting = new Map<
    string,
    { resolve: () => void; reject: (error: Error) => void; since: number }
  >()

  constructor(workspace: string) {
    this.#workspace = workspace
  }

  /**
   * Resolves when a transfer is confirmed.
   * @throws Error if it ends otherwise, or not in time
   */
  of(id: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject, since: Date.now() })
    })
  }

  /** Polls until the signal is aborted. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const rows = await platform.database.query<{
        id: string
        status: string
        failure_reason: string | null
      }>(
        `select id, status, failure_reason from transactions where workspace_id = $1
          and id = any($2) and status <> 'pending'`,
        [this.#workspace, [...this.#waiting.keys()]],
      )
      for (const { id, status, failure_reason: reason } of rows) {
        if (status === 'confirmed') this.#waiting.get(id)?.resolve()
        else
          this.#waiting.get(id)?.reject(new Error(`transfer ${id} is ${status}: ${String(reason)}`))
        this.#waiting.delete(id)
      }
      for (const [id, { reject, since }] of this.#waiting) {
        if (Date.now() - since > ENDED_WITHIN_MS)
          reject(new Error(`transfer ${id} has not ended within ${ENDED_WITHIN_MS} ms`))
      }
      await sleep(100)
    }
  }
}

/**
 * Keeps this number of transfers pending until the given time; resolves when all have ended.
 * @param posted time of each request
 */
async function load(
  users: readonly User[],
  ends: Ends,
  until: number,
  posted: Map<string, number>,
): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: underWay }, async () => {
      while (Date.now() < until) {
        ended.signal.throwIfAborted()
        const turn = next++
        const startedAt = Date.now()
        const { status, body, text } = await call<Transfer>(
          users[turn % users.length] as User,
          'POST',
          '/dac/v1/transaction',
          transferBody('ETH', '0.01', SINK, { sequence_id: `sustained-${turn}` }),
        )
        if (status !== 200) throw new Error(text)
        posted.set(body.id, startedAt)
        await ends.of(body.id)
      }
    }),
  )
}

/**
 * Returns the memory of each kind of process in MB: the median of several readings within half a
 * minute.
 */
async function memory(): Promise<Record<string, number>> {
  const looks: Record<string, number>[] = []
  for (let look = 0; look < LOOKS; look++) {
    if (look > 0) await sleep(LOOK_MS / LOOKS, undefined, { signal: ended.signal })
    looks.push(memoryMb(platform.process?.pid as number))
  }
  return Object.fromEntries(
    Object.keys(looks[0] ?? {}).map((name) => [name, median(looks.map((each) => each[name] ?? 0))]),
  )
}

const reported = (parts: Record<string, number>): string =>
  Object.entries(parts)
    .map(([name, part]) => `${name} ${part.toFixed(1)}`)
    .join(', ')
const sum = (parts: Record<string, number>): number =>
  Object.entries(parts).reduce((all, [name, part]) => (APART.has(name) ? all : all + part), 0)

/** Returns the figures of the transfers that were confirmed between the two times. */
async function measured(
  workspace: string,
  posted: ReadonlyMap<string, number>,
  from: number,
  until: number,
) {
  const rows = await platform.database.query<{ id: string; status: string; at: Date | null }>(
    `select t.id, t.status, (select max(s.at) from transaction_states s
       where s.workspace_id = t.workspace_id and s.transaction_id = t.id
         and s.state = 'CONFIRMED') at
     from transactions t where t.workspace_id = $1 and t.kind = 'WITHDRAWAL'`,
    [workspace],
  )
  const open = rows.filter(
    ({ id, status, at }) => status !== 'confirmed' || at === null || !posted.has(id),
  )
  if (open.length > 0 || rows.length !== posted.size) {
    throw new Error(
      `${posted.size} transfers accepted, ${rows.length} written, of which ${open.length} are not accounted for`,
    )
  }
  const within = rows.filter(
    ({ at }) => (at?.getTime() ?? 0) >= from && (at?.getTime() ?? 0) < until,
  )
  const made = await platform.database.one<{ count: string }>(
    `select count(*) count from chain_transactions c
      join transactions t on t.workspace_id = c.workspace_id and t.id = c.transaction_id
     where c.workspace_id = $1 and c.signed is not null and c.created_at >= $2 and c.created_at < $3
       and t.kind in ('WITHDRAWAL', 'FUEL')`,
    [workspace, new Date(from), new Date(until)],
  )
  return {
    count: within.length,
    perSecond: (within.length * 1000) / (until - from),
    signatures: Number(made?.count) / within.length,
    waits: within.map(({ id, at }) => (at?.getTime() ?? 0) - (posted.get(id) ?? 0)),
  }
}

/** Returns the median time in milliseconds in each state, in order. */
async function durations(workspace: string, kind: string): Promise<string> {
  const rows = await platform.database.query<{ state: string; ms: number }>(
    `select state, percentile_disc(0.5) within group (order by ms)::float ms from (
       select state, min(id) first, extract(epoch from sum(till - at)) * 1000 ms from (
         select s.id, s.transaction_id, s.state, s.at,
           lead(s.at) over (partition by s.transaction_id order by s.id) till
         from transaction_states s join transactions t on t.workspace_id = s.workspace_id
           and t.id = s.transaction_id
         where s.workspace_id = $1 and t.kind = $2) spans
       where till is not null group by transaction_id, state) sums
     group by state order by min(first)`,
    [workspace, kind],
  )
  return rows.map(({ state, ms }) => `${state} ${ms.toFixed(0)}`).join(', ')
}

/**
 * Returns the median number of fuel transactions that are signed in one session; those of one
 * session are committed together.
 */
async function fuelsTogether(workspace: string): Promise<number> {
  const rows = await platform.database.query<{ count: number }>(
    `select count(*)::int count from transaction_states s
      join transactions t on t.workspace_id = s.workspace_id and t.id = s.transaction_id
     where s.workspace_id = $1 and t.kind = 'FUEL' and s.state = 'SIGNED' group by s.xmin::text`,
    [workspace],
  )
  return median(rows.map(({ count }) => count))
}

try {
  await platform.start({ CUSTODY_RATE_LIMIT: '1000000' })
  // Enables the settings that tests disable: each commit waits for the disk, as in production.
  for (const setting of ['fsync', 'full_page_writes'])
    await platform.database.query(`alter system set ${setting} = on`)
  await platform.database.query('select pg_reload_conf()')
  const users = await openWallets()
  const workspace = await workspaceId()
  const before = await nodesPerSecond()
  const pid = platform.process?.pid as number
  const [ends, posted, watching] = [
    new Ends(workspace),
    new Map<string, number>(),
    new AbortController(),
  ]
  const begun = Date.now()
  const cpuOver = async () => {
    await sleep(rampMs, undefined, { signal: ended.signal })
    const first = cpuSeconds(pid)
    await sleep(loadMs - rampMs, undefined, { signal: ended.signal })
    const last = cpuSeconds(pid)
    return Object.fromEntries(
      Object.keys(last).map((name) => [name, ((last[name] ?? 0) - (first[name] ?? 0)) * 1000]),
    )
  }
  const memoryAt = async (ms: number) => sleep(ms, undefined, { signal: ended.signal }).then(memory)
  const loaded = Promise.all([
    cpuOver(),
    memoryAt(settledMs),
    memoryAt(loadMs - LOOK_MS),
    load(users, ends, begun + loadMs, posted).finally(() => watching.abort()),
    ends.watch(watching.signal),
  ])
  const [cpu, memoryFirst, memoryLast] = await loaded.catch((error: unknown) => {
    ended.abort()
    throw error
  })
  const { ok, differences, dust } = await platform.operator('audit')
  if (ok !== true || JSON.stringify(dust) !== '[]')
    throw new Error(`books and chains differ: ${JSON.stringify([differences, dust])}`)
  const { count, perSecond, signatures, waits } = await measured(
    workspace,
    posted,
    begun + rampMs,
    begun + loadMs,
  )
  const seconds = (ms: number) => (ms / 1000).toFixed(1)
  console.log(
    `  ${perSecond.toFixed(2)} a second, p50 ${seconds(percentile(waits, 0.5))} s, p99 ${seconds(percentile(waits, 0.99))} s`,
  )
  console.log(
    `  milliseconds in each state, median: ${await durations(workspace, 'WITHDRAWAL')}\n  fuel: ${await durations(workspace, 'FUEL')}; ` +
      `${(await fuelsTogether(workspace)).toFixed(0)} signed in one session`,
  )
  const nodes = (before + (await nodesPerSecond())) / 2
  report({
    name: `ETH: transfers, POST to confirmed, ${wallets} wallets`,
    unit: '/s',
    value: perSecond,
    floor: nodes / signatures,
    target: { atLeast: 0.7 },
    note:
      `${underWay} under way for ${(loadMs / 60_000).toFixed(0)} min, ${posted.size} in all; p50 ` +
      `${seconds(percentile(waits, 0.5))} s, p99 ${seconds(percentile(waits, 0.99))} s; floor: ${nodes.toFixed(1)} signatures/s of three nodes alone, one by one of ${IN_FLIGHT} ` +
      `accounts at once, over ${signatures.toFixed(2)} signatures a transfer`,
  })
  const each = Object.fromEntries(Object.entries(cpu).map(([name, ms]) => [name, ms / count]))
  report({
    name: 'ETH: processor time a transfer',
    unit: 'ms',
    value: Object.values(each).reduce((all, ms) => all + ms, 0),
    floor: null,
    note: reported(each),
  })
  report({
    name: `memory after ${(loadMs / 60_000).toFixed(0)} minutes of load`,
    unit: 'MB',
    value: sum(memoryLast),
    floor: sum(memoryFirst),
    target: { atMost: 1.1 },
    note: `${reported(memoryLast)}; floor: after ${(settledMs / 60_000).toFixed(0)} min ${reported(memoryFirst)}; chains not counted`,
  })
} finally {
  await platform.remove()
}
