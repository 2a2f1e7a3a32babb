import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { readList, type ListQuestion } from './counted.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import * as fc from '../../../../../testing/property.ts'

const installation = useDatabase()
const database = () => installation.get()
const START = Date.UTC(2026, 0, 30, 21, 30)
const HOUR_MS = 3_600_000

/** Creates a workspace with a sub-account whose lists are empty. */
async function subAccount(): Promise<{ workspace: string; owner: string }> {
  const workspace = randomUUID()
  const owner = randomUUID()
  await database().query('insert into workspaces (id, name) values ($1, $2)', [
    workspace,
    workspace,
  ])
  await database().query(
    `insert into sub_accounts (id, workspace_id, name, path_index) values ($1, $2, 'main', 1)`,
    [owner, workspace],
  )
  return { workspace, owner }
}

const KINDS = ['WITHDRAWAL', 'DEPOSIT', 'SWEEP'] as const
const ASSETS = ['ETH', 'BTC'] as const
const STATUSES = ['pending', 'confirmed', 'failed'] as const
const STATES = { pending: 'CONFIRMING', confirmed: 'CONFIRMED', failed: 'FAILED' }

/** Rows are created some hours apart, many at the same time, and some exactly on the hour. */
const row = fc.record({
  kind: fc.constantFrom(...KINDS),
  asset: fc.constantFrom(...ASSETS),
  status: fc.constantFrom(...STATUSES),
  at: fc
    .integer({ min: 0, max: 60 })
    .chain((hours) =>
      fc.constantFrom(0, 0, 1, 1_799_999, 1_800_000).map((ms) => START + hours * HOUR_MS + ms),
    ),
})
const moment = fc.option(
  fc.integer({ min: -2, max: 124 }).map((halves) => new Date(START + (halves * HOUR_MS) / 2)),
  { nil: null },
)
const question = fc.record({
  kind: fc.constantFrom(null, ['WITHDRAWAL', 'DEPOSIT'], 'SWEEP'),
  asset: fc.constantFrom(null, ...ASSETS),
  status: fc.constantFrom(null, ...STATUSES),
  from: moment,
  before: moment,
  page: fc.integer({ min: 1, max: 12 }),
  limit: fc.integer({ min: 1, max: 9 }),
})

function countsOf(
  owner: string,
  {
    kind,
    asset,
    status,
    from,
    before,
  }: { [Name in 'kind' | 'asset' | 'status']: string | string[] | null } & {
    from: Date | null
    before: Date | null
  },
): ListQuestion {
  const values: unknown[] = [owner]
  const conditions = ['sub_account_id = $1']
  const filters: Record<string, string | string[]> = {}
  for (const [name, value] of Object.entries({ kind, asset, status })) {
    if (value === null) continue
    filters[name] = value
    values.push(value)
    conditions.push(
      typeof value === 'string'
        ? `${name} = $${values.length}`
        : `${name} = any($${values.length}::text[])`,
    )
  }
  if (from) conditions.push(`created_at > $${values.push(from)}`)
  if (before) conditions.push(`created_at < $${values.push(before)}`)
  return {
    list: 'transactions',
    columns: 'id, created_at',
    where: conditions.join(' and '),
    values,
    filters,
    from,
    before,
    indexed: 'asset',
  }
}

test('list pages and totals equal a row-by-row count, for any query, write and aggregation', async () => {
  await installation.started
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: 1, maxLength: 60 }),
      fc.array(fc.tuple(fc.nat(), fc.constantFrom(...STATUSES)), { maxLength: 20 }),
      fc.integer({ min: 0, max: 90 }),
      fc.array(question, { minLength: 12, maxLength: 12 }),
      async (rows, changes, folded, questions) => {
        const { workspace, owner } = await subAccount()
        const ids: { id: string }[] = await database().query(
          `insert into transactions (id, kind, workspace_id, sub_account_id, asset, network, amount,
            fee_asset, source_type, destination_type,
           state, status, created_at)
         select gen_random_uuid(), kind, $1, $2, asset, 'ETH', 1, 'ETH', 'INTERNAL', 'EXTERNAL',
           state, status, at
         from jsonb_to_recordset($3) r(kind text, asset text, status text, state text,
           at timestamptz) returning id`,
          [
            workspace,
            owner,
            JSON.stringify(
              rows.map((each) => ({
                ...each,
                state:
                  each.kind === 'DEPOSIT' && each.status === 'confirmed'
                    ? 'CREDITED'
                    : each.kind === 'DEPOSIT' && each.status === 'failed'
                      ? 'REORGED'
                      : STATES[each.status],
                at: new Date(each.at),
              })),
            ),
          ],
        )
        await database().query('select fold_list_counts($1)', [folded])
        for (const [at, status] of changes) {
          await database().query('update transactions set status = $2 where id = $1', [
            ids[at % ids.length]?.id,
            status,
          ])
        }
        for (const each of questions) {
          const list = countsOf(owner, each)
          const { where, values } = list
          const all = await database().query<{ id: string }>(
            `select id from transactions where ${where} order by created_at desc, id desc`,
            values,
          )
          const page = all
            .slice((each.page - 1) * each.limit, each.page * each.limit)
            .map(({ id }) => id)
          // Maximum number of rows that are read in list order: with 2000 the page is found by
          // reading the index, with 0 by the stored counts.
          for (const walkMax of [2000, 0]) {
            const answer = await readList<{ id: string }>(
              database(),
              list,
              each.page,
              each.limit,
              walkMax,
            )
            assert.deepEqual(
              { total: answer.total, page: answer.rows.map(({ id }) => id) },
              { total: all.length, page },
            )
          }
        }
      },
    ),
    { numRuns: 25 },
  )
})

test('every list counts additions, changes and removals during concurrent aggregation', async () => {
  await installation.started
  const { workspace, owner } = await subAccount()
  const hook = randomUUID()
  const account = randomUUID()
  await database().query(
    `insert into webhooks (id, workspace_id, sub_account_id, url, events, format, sealed_secret,
      secret_made_at, created_at, updated_at)
     values ($1, $2, $3, 'http://127.0.0.1/', '{*}', 'standard', '', $4, $4, $4)`,
    [hook, workspace, owner, new Date(START)],
  )
  await database().query(
    `insert into exchange_accounts (id, workspace_id, sub_account_id, exchange, label, key_hash,
       key_hint, allow_withdrawal, permissions,
       checked_at, balances_at, created_at, updated_at) values ($1, $2, $3, 'kraken', 'a', 'h', 'h',
         true, '{}', $4, $4, $4, $4)`,
    [account, workspace, owner, new Date(START)],
  )
  const made = `$2::timestamptz + n * interval '17 minutes'`
  const inserts: Record<string, string> = {
    invoices: `insert into invoices (id, workspace_id, sub_account_id, status, exception, tolerance,
      response, expires_at, created_at, updated_at)
      select 'inv' || n, '${workspace}', $1, (array['Pending', 'Paid'])[1 + n % 2],
        (array['late', null])[1 + n % 2], 0, '', $2, ${made}, $2
      from generate_series(1, 40) n`,
    orders: `insert into orders (id, workspace_id, sub_account_id, account_id, exchange, market,
        base, quote, side, type, amount, price,
        time_in_force, post_only, client_id, status, platform_fee, response, created_at, updated_at)
      select gen_random_uuid(), '${workspace}', $1, '${account}', 'kraken', 'BTC/USD', 'BTC', 'USD',
        (array['buy', 'sell'])[1 + n % 2], 'limit',
        1, 1, 'GTC', false, 'c' || n, (array['open', 'filled'])[1 + n % 2], 0, '', ${made}, $2
          from generate_series(1, 40) n`,
    exchange_transfers: `insert into exchange_transfers (id, workspace_id, sub_account_id,
        account_id, exchange, direction, asset, network,
        coin, amount, address, state, status, response, created_at, updated_at)
      select gen_random_uuid(), '${workspace}', $1, '${account}', 'kraken', 'to_exchange', 'BTC',
        'BTC', 'XBT', 1, 'a', 'NEW', 'pending', '',
        ${made}, $2 from generate_series(1, 40) n`,
    webhook_deliveries: `insert into webhook_deliveries (id, webhook_id, workspace_id, event_uid,
        type, object, position, body, status,
        tries_left, next_at, created_at, updated_at)
      select gen_random_uuid(), $1, '${workspace}', gen_random_uuid(), 'wallet.updated', 'o', n, '',
        'pending', 1, $2, ${made}, $2
      from generate_series(1, 40) n`,
  }
  const changes: Record<string, string> = {
    invoices: `update invoices set status = 'Invalid' where sub_account_id = $1
      and status = 'Pending'`,
    orders: `update orders set status = 'cancelled' where sub_account_id = $1 and status = 'open'`,
    exchange_transfers: `update exchange_transfers set status = 'completed'
      where sub_account_id = $1 and created_at < $2::timestamptz + interval '3 hours'`,
    webhook_deliveries: `update webhook_deliveries set status = 'delivered', next_at = null
      where webhook_id = $1 and position % 3 = 0`,
  }
  const lists = Object.keys(inserts) as ListQuestion['list'][]
  const fold = () => database().query('select fold_list_counts(7)')
  await Promise.all(
    lists.flatMap((list) => [
      database().query(inserts[list] as string, [
        list === 'webhook_deliveries' ? hook : owner,
        new Date(START),
      ]),
      fold(),
      fold(),
    ]),
  )
  const values = (list: string) => [list === 'webhook_deliveries' ? hook : owner, new Date(START)]
  await Promise.all(
    lists.flatMap((list) => [
      database().query(
        changes[list] as string,
        changes[list]?.includes('$2') ? values(list) : values(list).slice(0, 1),
      ),
      fold(),
      fold(),
    ]),
  )
  for (const list of lists) {
    const column = list === 'webhook_deliveries' ? 'webhook_id' : 'sub_account_id'
    for (const status of [
      undefined,
      'Invalid',
      'Paid',
      'cancelled',
      'filled',
      'completed',
      'delivered',
      'pending',
    ]) {
      const where = `${column} = $1${status === undefined ? '' : ' and status = $2'}`
      const all = [values(list)[0], ...(status === undefined ? [] : [status])]
      const real = await database().query(`select 1 from ${list} where ${where}`, all)
      const { total, rows } = await readList(
        database(),
        {
          list,
          columns: '*',
          where,
          values: all,
          filters: status === undefined ? {} : { status },
          from: null,
          before: null,
        },
        2,
        5,
        0,
      )
      assert.deepEqual(
        [list, status, total, rows.length],
        [list, status, real.length, Math.max(0, Math.min(5, real.length - 5))],
      )
    }
  }
  await database().query('delete from webhooks where id = $1', [hook])
  const { total } = await readList(
    database(),
    {
      list: 'webhook_deliveries',
      columns: '*',
      where: 'webhook_id = $1',
      values: [hook],
      filters: {},
      from: null,
      before: null,
    },
    1,
    5,
  )
  assert.equal(total, 0)
})
