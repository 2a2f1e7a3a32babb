import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { median, percentile, pin, report } from '../../../testing/figures.ts'
import { asAdmin } from '../testing/test-database.ts'
import { sleep, TestPlatform, transferBody, balance, call, type User } from '../testing/harness.ts'
import { startFloor } from './floor/index.ts'
import { measureHeavyNeighbour } from './heavy-neighbour.ts'
import { cpuMsOf, fire, signAll, timed, type Ask, type Fired, type Signed } from './load.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Compares the API with a minimal program that does the same (`floor/server.ts`), on the same
 * database server, which waits for the disk at each commit. The server uses one processor and the
 * load generator the other. Both receive the same signed requests, alternately, round by round.
 */

const CONNECTIONS = 32
const ROUNDS = Number(process.env['CUSTODY_BENCH_ROUNDS'] ?? 5)
const GETS = 640
const POSTS = 320
const WORKSPACES = 4
const SUB_ACCOUNTS = 4
const COINS = '1000'
const CREATED = ['USDT_ETH', 'USDC_ETH', 'BTC', 'LTC']
const only = process.argv.slice(2)
const wanted = (name: string) => only.length === 0 || only.includes(name)

const platform = new TestPlatform({ mode: 'prepared' })

/** Returns a process and all its descendants. */
function family(pid: number): number[] {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      parents.set(
        Number(name),
        Number(
          (readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1) as string).split(' ')[1],
        ),
      )
    } catch {
      /* The process has ended. */
    }
  }
  const pids = [pid]
  for (const each of pids)
    for (const [child, parent] of parents) if (parent === each) pids.push(child)
  return pids
}

const show = (fired: readonly Fired[]): string => {
  const of = (field: keyof Fired) => median(fired.map((each) => each[field]))
  return `p50 ${of('p50').toFixed(1)} ms, p99 ${of('p99').toFixed(1)} ms, CPU ${of('cpuMs').toFixed(2)} ms a request`
}

/**
 * Reports one figure: the rate of the platform compared with the floor's, measured alternately, and
 * the cost of a request in each.
 */
function print(
  name: string,
  ours: readonly Fired[],
  floors: readonly Fired[],
  atLeast?: number,
): void {
  const rate = (fired: readonly Fired[]) => median(fired.map((each) => each.rate))
  // Median of the ratios of the rounds: both halves of a round run under the same conditions.
  const ratio = median(ours.map((each, round) => each.rate / (floors[round] as Fired).rate))
  const value = rate(ours)
  report({
    name,
    unit: '/s',
    value,
    floor: value / ratio,
    ...(atLeast === undefined ? {} : { target: { atLeast } }),
    note: `${show(ours)}; floor: ${show(floors)}`,
  })
}

let floor: Awaited<ReturnType<typeof startFloor>> | null = null
const others: TestPlatform[] = []
try {
  // Blocks are produced at the default rate; the local chains of the tests are ten times as fast.
  await platform.start({ CUSTODY_RATE_LIMIT: '1000000', CUSTODY_LOCAL_PACE: '1' })
  // By default, the tests' database does not wait for the disk.
  await platform.database.query('alter system reset all')
  await platform.database.query('select pg_reload_conf()')
  const users: User[] = []
  for (let w = 0; w < WORKSPACES; w++) {
    for (let s = 0; s < SUB_ACCOUNTS; s++)
      users.push(
        await platform.user(`bench-${w}`, { subAccount: `sub-${s}`, rateLimit: 1_000_000 }),
      )
  }
  await platform.database.query(
    'select prepaid_adjust(id, gen_random_uuid()::text, 1000000000000, 0) from workspaces',
  )
  await Promise.all(
    users.map(async (user) => {
      await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'ETH' })
      const { address } = (
        await call<{ address: string }>(user, 'POST', '/dac/v1/address', { asset: 'ETH' })
      ).body
      await platform.fund('ETH', address, COINS)
    }),
  )
  await Promise.all(
    users.map((user) =>
      waitFor('the deposits', async () => (await balance(user, 'ETH')).balance !== '0'),
    ),
  )
  const { database_url: url } = JSON.parse(
    readFileSync(join(platform.home, 'runtime.json'), 'utf8'),
  ) as { database_url: string }
  floor = await startFloor(
    platform.database,
    asAdmin(url),
    users.map(({ apiKey }) => apiKey),
  )
  const main = platform.process?.pid as number
  const postmaster = Number(
    readFileSync(join(platform.home, 'postgres', 'data', 'postmaster.pid'), 'utf8').split(
      '\n',
      1,
    )[0],
  )
  const floorPid = floor.pid
  const pinAll = () => [pin(main, 0), pin(floorPid, 0), pin(process.pid, 1)].every(Boolean)
  console.log(
    pinAll()
      ? 'servers on one processor, load on the other'
      : 'nothing is pinned (taskset is missing)',
  )

  const at = (n: number, from: readonly User[]) => (from[n % from.length] as User).apiKey
  const gets = (count: number, from: readonly User[]): Ask[] =>
    Array.from({ length: count }, (_, n) => ({
      apiKey: at(n, from),
      method: 'GET',
      path: '/dac/v1/wallets?asset=ETH',
    }))
  let sequence = 0
  const posts = (count: number, from: readonly User[]): Ask[] =>
    Array.from({ length: count }, (_, n) => ({
      apiKey: at(n, from),
      method: 'POST',
      path: '/dac/v1/transaction',
      body: transferBody('ETH', '0.0001', '0x00000000000000000000000000000000000000be', {
        sequence_id: `bench-${sequence++}`,
      }),
    }))
  /**
   * The floor is measured while the platform's workers are paused, because they would still process
   * earlier requests.
   */
  const floored = async (
    requests: Parameters<typeof fire>[1],
    connections: number,
  ): Promise<Fired> => {
    const database = family(postmaster)
    const still = family(main).filter((pid) => !database.includes(pid))
    for (const pid of still) process.kill(pid, 'SIGSTOP')
    try {
      return await fire((floor as NonNullable<typeof floor>).base, requests, connections, [
        (floor as NonNullable<typeof floor>).pid,
      ])
    } finally {
      for (const pid of still.reverse()) process.kill(pid, 'SIGCONT')
    }
  }
  const measure = async (
    name: string,
    asks: () => Ask[],
    atLeast?: number,
    connections = CONNECTIONS,
  ): Promise<void> => {
    const [ours, floors]: [Fired[], Fired[]] = [[], []]
    // The first round is a warm-up.
    for (let round = 0; round <= ROUNDS; round++) {
      const requests = await signAll(asks())
      const order = round % 2 === 0 ? ['floor', 'ours'] : ['ours', 'floor']
      for (const which of order) {
        const fired =
          which === 'floor'
            ? await floored(requests, connections)
            : await fire(platform.base, requests, connections, [main])
        if (round > 0) (which === 'floor' ? floors : ours).push(fired)
      }
    }
    print(name, ours, floors, atLeast)
  }
  if (wanted('get'))
    await measure('authenticated GET (wallets of one asset)', () => gets(GETS, users), 0.85)
  if (wanted('get')) await measure('the same of one API key', () => gets(GETS, users.slice(0, 1)))
  if (wanted('create')) {
    const [warm] = users
    for (const asset of CREATED)
      await call(warm as User, 'POST', '/dac/v1/create-wallet', { asset })
    const created: number[] = []
    const read: number[] = []
    for (const asset of CREATED) {
      const fresh = users.slice(1)
      const [reads, writes] = [
        await signAll(gets(fresh.length, fresh)),
        await signAll(
          fresh.map(({ apiKey }) => ({
            apiKey,
            method: 'POST' as const,
            path: '/dac/v1/create-wallet',
            body: JSON.stringify({ asset }),
          })),
        ),
      ]
      for (let n = 0; n < fresh.length; n++) {
        read.push(await timed(platform.base, reads[n] as Signed))
        created.push(await timed(platform.base, writes[n] as Signed))
      }
    }
    report({
      name: 'create-wallet, p50; floor: that of the GET',
      unit: 'ms',
      value: median(created),
      floor: median(read),
      target: { atMost: 2 },
      note: `p99 ${percentile(created, 0.99).toFixed(1)} ms against ${percentile(read, 0.99).toFixed(1)} ms`,
    })
  }
  if (wanted('two')) {
    others.push(await platform.startApi(), await platform.startApi())
    const [first, second] = others as [TestPlatform, TestPlatform]
    const rest = [process.pid, ...family(main), ...family(postmaster)]
    const one: number[] = []
    const two: number[] = []
    const cpu: [number, number][] = []
    for (let round = 0; round <= ROUNDS; round++) {
      for (const pid of [...rest, ...family(postmaster), first.process?.pid as number]) pin(pid, 0)
      const costs = () =>
        cpuMsOf([
          first.process?.pid as number,
          second.process?.pid as number,
          ...family(postmaster),
        ])
      const requests = await signAll(gets(GETS, users))
      const before = costs()
      const alone = await fire(first.base, requests, CONNECTIONS, [])
      const between = costs()
      for (const pid of [...rest, ...family(postmaster)]) pin(pid, 0, 1)
      pin(second.process?.pid as number, 1)
      const halves = [await signAll(gets(GETS, users)), await signAll(gets(GETS, users))] as const
      const started = costs()
      const both = await Promise.all([
        fire(first.base, halves[0], CONNECTIONS, []),
        fire(second.base, halves[1], CONNECTIONS, []),
      ])
      if (round > 0) {
        one.push(alone.rate)
        two.push(both[0].rate + both[1].rate)
        cpu.push([(between - before) / GETS, (costs() - started) / (2 * GETS)])
      }
    }
    const ratio = median(two.map((rate, round) => rate / (2 * (one[round] as number))))
    report({
      name: 'two API processes on two processors',
      unit: '/s',
      value: median(two),
      floor: median(two) / ratio,
      target: { atLeast: 0.8 },
      note:
        `floor: twice one process on one processor; database and load share them both times. CPU of API and database ` +
        `${median(cpu.map(([, both]) => both)).toFixed(2)} ms a request, with one process ${median(cpu.map(([alone]) => alone)).toFixed(2)}`,
    })
    for (const each of others.splice(0)) await each.stop()
    pinAll()
  }
  if (wanted('neighbour')) {
    for (const pid of [process.pid, ...family(main), ...family(postmaster)]) pin(pid, 0, 1)
    const [heavy, quiet] = [users[0] as User, users.at(-1) as User]
    await measureHeavyNeighbour(platform, heavy, quiet, 'bench-0')
    pinAll()
  }
  // Measured last, because the workers continue to process these requests.
  if (wanted('post'))
    await measure('POST /transaction, 16 wallets, workers running', () => posts(POSTS, users), 0.75)
  if (wanted('hot'))
    await measure(
      'POST /transaction, one hot wallet, 32 at once',
      () => posts(POSTS, users.slice(0, 1)),
      0.75,
    )
} finally {
  await floor?.stop()
  for (const other of others) await other.stop()
  // Pending transfers need not end.
  await platform.kill()
  await sleep(100)
  await platform.remove()
}
