import { mkdtempSync, rmSync } from 'node:fs'
import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { loadRegistry } from '@custody/chains'
import pg from 'pg'
import { percentile, report } from '../../../testing/figures.ts'
import { startEmbeddedPostgres } from '../src/core/database/embedded.ts'
import { migrate } from '../src/core/database/migrate.ts'
import { openDatabase } from '../src/core/database/pool.ts'
import { Networks } from '../src/core/engine/networks.ts'
import type { Caller } from '../src/core/http/endpoint.ts'
import { listTransactions } from '../src/custody/transactions/list-transactions.ts'

/**
 * Measures a page of GET /dac/v1/transactions of a sub-account with many transactions, compared
 * with one that has ten thousand in the same database, by filter and by depth: p99 of alternating
 * requests. `--rows N` or CUSTODY_BENCH_ROWS: number of transactions, 1,000,000 by default.
 */
const {
  values: { rows: option },
} = parseArgs({ options: { rows: { type: 'string' } } })
const MANY = Number(option ?? process.env['CUSTODY_BENCH_ROWS'] ?? 1_000_000)
const FEW = 10_000
const ROUNDS = 60
/** Number of transactions with the same address, memo or sender, in both lists. */
const ALIKE = 20
const START_S = 1_767_225_600
const SPAN_S = 300 * 86_400

const home = mkdtempSync(join(tmpdir(), 'custody-history-'))
const postgres = await startEmbeddedPostgres(home)
const database = openDatabase(postgres.adminUrl)
try {
  await migrate(database)
  const workspace = randomUUID()
  await database.query('insert into workspaces (id, name) values ($1, $2)', [workspace, workspace])
  const many = await fill(workspace, MANY, 1)
  const few = await fill(workspace, FEW, 2)
  // Inserts the rows that the triggers would have written, folded as the worker folds them.
  await unlimited(`insert into list_deltas (list, owner, bucket, dims, n)
    select 'transactions', sub_account_id, date_trunc('hour', created_at, 'UTC'),
      jsonb_build_object('kind', kind, 'asset', asset,
      'status', status, 'source_type', source_type, 'destination_type', destination_type), count(*)
    from transactions group by 2, 3, 4`)
  while ((await database.one<{ n: number }>('select fold_list_counts(20000) n'))?.n) continue
  await unlimited('vacuum analyze transactions')
  await unlimited('vacuum analyze list_counts')
  await unlimited('vacuum analyze list_deltas')
  const services = { database, registry: loadRegistry('local'), networks: new Networks([]) }
  const ask = async (subAccountId: string, query: Record<string, unknown>) => {
    const parsed = listTransactions.query?.parse(query) as never
    const started = performance.now()
    const { body } = await listTransactions.handler(
      {
        caller: { subAccountId } as Caller,
        query: parsed,
      } as never,
      services,
    )
    return { ms: performance.now() - started, total: (body as { total: number }).total }
  }
  /** Queries of a list with this number of rows. */
  const questions: Record<string, (count: number) => Record<string, unknown>> = {
    everything: () => ({}),
    'everything, page 10': () => ({ page: '10' }),
    'everything, at half': (count) => ({ page: String(Math.ceil(count / 100)) }),
    'everything, the last page': (count) => ({ page: String(Math.floor((count * 0.85) / 50)) }),
    asset: () => ({ asset: 'BTC' }),
    'asset that is seldom': () => ({ asset: 'SOL' }),
    'asset, at half': (count) => ({ asset: 'BTC', page: String(Math.ceil(count / 1000)) }),
    'status confirmed': () => ({ status: 'confirmed' }),
    'status failed': () => ({ status: 'failed' }),
    'status pending': () => ({ status: 'pending' }),
    type: () => ({ type: 'Deposit' }),
    'type that is seldom': () => ({ type: 'Stake' }),
    source_type: () => ({ source_type: 'EXTERNAL' }),
    dest_type: () => ({ dest_type: 'OMNIBUS' }),
    before: () => ({ before: String(START_S + SPAN_S / 2 + 1234) }),
    after: () => ({ after: String(START_S + SPAN_S / 2 + 1234) }),
    'a month, asset and status': () => ({
      after: String(START_S + 100 * 86_400 + 77),
      before: String(START_S + 130 * 86_400 + 77),
      asset: 'ETH',
      status: 'confirmed',
    }),
    'a month, at half': (count) => ({
      after: String(START_S + 100 * 86_400 + 77),
      before: String(START_S + 130 * 86_400 + 77),
      page: String(Math.ceil(count / 20 / 50)),
    }),
    source_id: () => ({ source_id: 'from-7' }),
    dest_id: () => ({ dest_id: 'to-7' }),
    memo: () => ({ memo: 'memo 7' }),
    hash: () => ({ id: '00000000000000000000000000000000000000aa' }),
    sequence_id: () => ({ sequence_id: 's7' }),
  }
  const all: { many: number[]; few: number[] } = { many: [], few: [] }
  for (const [name, of] of Object.entries(questions)) {
    const times: { many: number[]; few: number[] } = { many: [], few: [] }
    for (let round = -5; round < ROUNDS; round++) {
      const [long, short] = [await ask(many, of(MANY)), await ask(few, of(FEW))]
      if (round < 0) continue
      times.many.push(long.ms)
      times.few.push(short.ms)
    }
    all.many.push(...times.many)
    all.few.push(...times.few)
    const { total } = await ask(many, of(MANY))
    report({
      name: `page of history: ${name}, p50`,
      unit: 'ms',
      value: percentile(times.many, 0.5),
      floor: percentile(times.few, 0.5),
      note: `${total} found`,
    })
  }
  report({
    name: `page of history, all of these, p99, ${MANY} against ${FEW}`,
    unit: 'ms',
    value: percentile(all.many, 0.99),
    floor: percentile(all.few, 0.99),
    target: { atMost: 1.5 },
  })
} finally {
  await database.close()
  await postgres.stop()
  rmSync(home, { recursive: true, force: true })
}

/** Runs statements without the platform's time limits. */
async function unlimited(text: string): Promise<void> {
  const patient = new pg.Client(postgres.adminUrl)
  await patient.connect()
  await patient.query(text)
  await patient.end()
}

/**
 * Creates a sub-account with this number of transactions, spread over the same months.
 * @returns its id
 */
async function fill(workspace: string, count: number, index: number): Promise<string> {
  const owner = randomUUID()
  await database.query(
    'insert into sub_accounts (id, workspace_id, name, path_index) values ($1, $2, $3, $4)',
    [owner, workspace, `of ${count}`, index],
  )
  // Number of rows per commit. Triggers and checks of references are skipped, because they would
  // take ten times as long.
  const PART = 250_000
  for (let from = 0; from < count; from += PART) {
    await unlimited(`begin; set local session_replication_role = replica;
      insert into transactions (id, kind, workspace_id, sub_account_id, asset, network, amount, fee_asset, source_type, source_id,
        destination_type, destination_id, memo, sequence_id, state, status, hash, created_at, updated_at, request)
      select gen_random_uuid(), kind, '${workspace}', '${owner}', asset, asset, 100000 + n, asset,
        case kind when 'DEPOSIT' then 'EXTERNAL' else 'INTERNAL' end, 'from-' || n / ${ALIKE},
        case kind when 'SWEEP' then 'OMNIBUS' when 'DEPOSIT' then 'INTERNAL' when 'STAKE' then 'STAKING' else 'EXTERNAL' end,
        'to-' || n / ${ALIKE}, 'memo ' || n / ${ALIKE}, 's' || n, state,
        case state when 'FAILED' then 'failed' when 'QUEUED' then 'pending' else 'confirmed' end, lpad(to_hex(n), 40, '0'), made, made,
        '{"uri":"/dac/v1/transaction","method":"POST"}'
      from (
        select n, to_timestamp(${START_S} + n::float8 * ${SPAN_S} / ${count}) made,
          case when n % 3001 = 7 then 'SOL' when n % 10 = 3 then 'BTC' else 'ETH' end asset,
          case when n % 5003 = 11 then 'STAKE' when n % 7 = 2 then 'SWEEP' when n % 3 = 1 then 'DEPOSIT' else 'WITHDRAWAL' end kind,
          case when n % 7 = 2 or n % 5003 = 11 then 'CONFIRMED' when n % 3 = 1 then 'CREDITED'
            when n % 2003 = 5 then 'FAILED' when n % 9001 = 17 then 'QUEUED' else 'CONFIRMED' end state
        from generate_series(${from}, ${Math.min(from + PART, count) - 1}) n
      ) made; commit`)
  }
  return owner
}
