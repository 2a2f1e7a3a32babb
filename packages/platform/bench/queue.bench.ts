import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median, report } from '../../../testing/figures.ts'
import { startEmbeddedPostgres } from '../src/core/database/embedded.ts'
import { migrate } from '../src/core/database/migrate.ts'
import { openDatabase } from '../src/core/database/pool.ts'
import { advance, claim } from '../src/core/engine/lease.ts'

/**
 * Measures how fast the worker's own statements claim and advance queued transfers, without any
 * chain: the first thousand compared with the last thousand. The queue has 30,000 transfers, or the
 * number in CUSTODY_BENCH_QUEUE. Those in between are completed in bulk, as fast as the server
 * writes, so that they leave as many dead rows and index entries as a busy day.
 */
const COUNT = Number(process.env['CUSTODY_BENCH_QUEUE'] ?? 30_000)
const MEASURED = 1000
/** Reserve for parts that process more transfers than they need. */
const SPARE = 500
/** Number of concurrent steps in one process. */
const AT_ONCE = 16

const untriggered = (text: string) =>
  database.query(`begin; set local session_replication_role = replica; ${text}; commit`)

const home = mkdtempSync(join(tmpdir(), 'custody-queue-'))
const postgres = await startEmbeddedPostgres(home)
const database = openDatabase(postgres.adminUrl)
try {
  await migrate(database)
  const [workspace, owner] = [randomUUID(), randomUUID()]
  await database.query('insert into workspaces (id, name) values ($1, $2)', [workspace, workspace])
  await database.query(
    `insert into sub_accounts (id, workspace_id, name, path_index) values ($1, $2, 'main', 1)`,
    [owner, workspace],
  )
  const PART = 10_000
  for (let from = 0; from < COUNT; from += PART) {
    await untriggered(
      `insert into transactions (id, kind, workspace_id, sub_account_id, asset, network, amount,
         fee_asset, source_type, destination_type,
         destination_id, state, status, request, created_at, updated_at, next_run_at)
       select gen_random_uuid(), 'WITHDRAWAL', '${workspace}', '${owner}', 'ETH', 'ETH', n, 'ETH',
         'INTERNAL', 'EXTERNAL',
         '0x' || md5(n::text), 'QUEUED', 'pending', jsonb_build_object('body', repeat('x', 400)),
           made, made,
         made - interval '1 hour' + n * interval '1 millisecond'
       from generate_series(${from}, ${Math.min(COUNT, from + PART) - 1}) n,
         (select '${new Date().toISOString()}'::timestamptz made) t`,
    )
  }
  await database.query('analyze transactions')
  const services = { database }
  /**
   * Runs this number of transfers through two steps each: signed, and confirmed.
   * @returns transfers per second
   */
  const work = async (count: number): Promise<number> => {
    const started = performance.now()
    let done = 0
    while (done < count) {
      const rows = await claim(services, AT_ONCE)
      if (rows.length === 0) throw new Error('the queue has run empty')
      await Promise.all(
        rows.map((row) =>
          advance(
            database,
            row,
            row.state === 'QUEUED'
              ? { state: 'SIGNED', run_in_ms: -7_200_000 }
              : { state: 'CONFIRMED', status: 'confirmed' },
          ),
        ),
      )
      done += rows.filter(({ state }) => state !== 'QUEUED').length
    }
    return done / ((performance.now() - started) / 1000)
  }
  const parts = async (): Promise<number> => {
    const rates: number[] = []
    for (let part = 0; part < 5; part++) rates.push(await work(MEASURED / 5))
    return median(rates)
  }
  await work(200)
  const first = await parts()
  for (let rest = COUNT - 200 - 2 * MEASURED - SPARE; rest > 0; rest -= 5000) {
    await untriggered(
      `update transactions set state = 'CONFIRMED', status = 'confirmed', next_run_at = null
         where (workspace_id, id) in (
         select workspace_id, id from transactions where next_run_at is not null
           order by next_run_at limit ${Math.min(rest, 5000)})`,
    )
  }
  const last = await parts()
  report({
    name: `${COUNT} queued transfers: the last thousand`,
    unit: '/s',
    value: last,
    floor: first,
    target: { atLeast: 0.9 },
    note: 'against the first',
  })
  const [plan] = await database.query<Record<string, string>>(
    `explain (analyze, buffers, format json) select id from transactions where next_run_at <= $1 and (lease_until is null or lease_until < $1)
     order by next_run_at limit 16 for update skip locked`,
    [database.now()],
  )
  const { Plan } = (plan as unknown as { 'QUERY PLAN': { Plan: Record<string, number> }[] })[
    'QUERY PLAN'
  ][0] as { Plan: Record<string, number> }
  report({
    name: 'a claim behind all that is done: pages read',
    unit: '',
    value: (Plan['Shared Hit Blocks'] ?? 0) + (Plan['Shared Read Blocks'] ?? 0),
    floor: null,
  })
} finally {
  await database.close()
  await postgres.stop()
  rmSync(home, { recursive: true, force: true })
}
