import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, test } from 'node:test'
import * as fc from '../../../../../testing/property.ts'
import type { Database } from '../../core/database/pool.ts'
import { ApiError } from '../../core/errors.ts'
import { reservePlatformFee } from './fees.ts'
import {
  DEFAULT_TIERS,
  feeOf,
  readTiers,
  tierNamed,
  tierOfVolume,
} from '../../core/settings/tiers.ts'
import {
  createTestDatabase,
  openTestDatabase,
  type TestDatabase,
} from '../../../testing/test-database.ts'
import { testEmittedEvents } from '../../../testing/event-assertions.ts'

/**
 * Tests of reservations, charges, refunds and adjustments in any order, sequentially and
 * concurrently, on the real database. The account never becomes negative, each operation is
 * executed once, and every millionth of a USD is accounted for.
 */
let created: TestDatabase
let database: Database

before(async () => {
  created = await createTestDatabase()
  database = openTestDatabase(created)
})
after(async () => {
  await database.close()
  await created.remove()
})

const LEAST = 50n
const DAY = '2026-02-03'

/** Expected state, derived only from the responses. */
class Model {
  workspace = ''
  adjusted = 0n
  readonly fees = new Map<
    string,
    { fee: bigint; value: bigint; charged: boolean; refunded: boolean }
  >()

  async open(): Promise<void> {
    this.workspace = (await database.one<{ id: string }>(
      'insert into workspaces (name) values ($1) returning id',
      [randomUUID()],
    ))!.id
  }

  async reserve(fee: bigint): Promise<void> {
    const id = randomUUID()
    const value = fee * 7n
    const done = await database
      .transaction(async (tx) => {
        await tx.query(
          `insert into transactions (id, kind, workspace_id, asset, network, amount, fee_asset,
            source_type, destination_type, state, status)
            values ($1, 'WITHDRAWAL', $2, 'ETH', 'ETH', 1, 'ETH', 'INTERNAL', 'EXTERNAL', 'CREATED',
            'pending')`,
          [id, this.workspace],
        )
        await reservePlatformFee(tx, {
          transactionId: id,
          workspaceId: this.workspace,
          quote: { amountUsd: value, fee, least: LEAST },
        })
        return true
      })
      .catch((error: unknown) => {
        if (error instanceof ApiError && error.code === 'PREPAID_FEE_EXHAUSTED') return false
        throw error
      })
    assert.equal(
      (await database.one('select 1 from transactions where id = $1', [id])) !== undefined,
      done,
      'a refusal leaves nothing behind',
    )
    if (done) this.fees.set(id, { fee, value, charged: false, refunded: false })
  }

  async #once(call: 'prepaid_charge' | 'prepaid_release', at: number): Promise<void> {
    const [id, charge] = [...this.fees][at % Math.max(1, this.fees.size)] ?? []
    if (!id || !charge) return
    const { done } = (await database.one<{ done: boolean }>(`select ${call}($1, $2, $3) done`, [
      this.workspace,
      id,
      DAY,
    ])) as { done: boolean }
    const field = call === 'prepaid_charge' ? 'charged' : 'refunded'
    if (done) {
      assert.equal(charge[field], false, `${field} twice`)
      charge[field] = true
    }
  }

  charge = (at: number) => this.#once('prepaid_charge', at)
  release = (at: number) => this.#once('prepaid_release', at)

  async adjust(amount: bigint): Promise<void> {
    try {
      await database.query('select prepaid_adjust($1, $2, $3, $4)', [
        this.workspace,
        randomUUID(),
        amount.toString(),
        LEAST.toString(),
      ])
      this.adjusted += amount
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'CU001')
      assert.ok(amount < 0n)
    }
  }

  async check(): Promise<void> {
    const rows = await database.query<{ kind: string; balance: string }>(
      `select kind, balance::text from ledger_accounts where workspace_id = $1 and asset = 'USD'`,
      [this.workspace],
    )
    const of = (kind: string) => BigInt(rows.find((row) => row.kind === kind)?.balance ?? '0')
    const sum = (
      pick: (each: { charged: boolean; refunded: boolean }) => boolean,
      what: 'fee' | 'value' = 'fee',
    ) => [...this.fees.values()].filter(pick).reduce((total, each) => total + each[what], 0n)
    assert.deepEqual(
      [of('prepaid'), of('prepaid_reserved'), of('fees'), of('chain')],
      [
        this.adjusted - sum(({ refunded }) => !refunded),
        sum(({ charged, refunded }) => !charged && !refunded),
        sum(({ charged, refunded }) => charged && !refunded),
        -this.adjusted,
      ],
    )
    assert.ok(
      rows.every(({ kind, balance }) => kind === 'chain' || BigInt(balance) >= 0n),
      'would make it negative',
    )
    const volume = await database.one<{ sum: string }>(
      'select coalesce(sum(amount_usd), 0)::text sum from prepaid_volumes where workspace_id = $1',
      [this.workspace],
    )
    assert.equal(
      BigInt(volume?.sum ?? '0'),
      sum(({ charged, refunded }) => charged && !refunded, 'value'),
    )
    const wrong = await database.query(
      `select a.id from ledger_accounts a left join ledger_postings p on p.account_id = a.id
        where a.workspace_id = $1 group by a.workspace_id, a.id
        having a.balance <> coalesce(sum(p.amount), 0)
       union all select p.entry_id from ledger_postings p
         join ledger_accounts a on a.id = p.account_id where a.workspace_id = $1 group by p.entry_id
         having sum(p.amount) <> 0`,
      [this.workspace],
    )
    assert.deepEqual(wrong, [])
  }
}

type Event = (model: Model) => Promise<void>
const named = (name: string, run: Event) => Object.assign(run, { toString: () => name })
const single: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .bigInt(0n, 600n)
      .map((fee) => named(`reserve ${fee}`, (model) => model.reserve(fee))),
  },
  {
    weight: 3,
    arbitrary: fc.nat(12).map((at) => named(`charge ${at}`, (model) => model.charge(at))),
  },
  {
    weight: 2,
    arbitrary: fc.nat(12).map((at) => named(`release ${at}`, (model) => model.release(at))),
  },
  {
    weight: 1,
    arbitrary: fc
      .bigInt(-1500n, 1500n)
      .filter((amount) => amount !== 0n)
      .map((amount) => named(`adjust ${amount}`, (model) => model.adjust(amount))),
  },
)
const event = fc.oneof(
  { weight: 3, arbitrary: single },
  {
    weight: 1,
    arbitrary: fc.array(single, { minLength: 2, maxLength: 12 }).map((events) =>
      named(`race(${events.join(', ')})`, async (model) => {
        await Promise.all(events.map((each) => each(model)))
      }),
    ),
  },
)

test('no sequence of events makes the account negative or loses a millionth of a USD', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.bigInt(0n, 2000n),
      fc.array(event, { minLength: 5, maxLength: 30 }),
      async (start, events) => {
        const model = new Model()
        await model.open()
        if (start > 0n) await model.adjust(start)
        for (const each of events) {
          await each(model)
          await model.check()
        }
      },
    ),
    { numRuns: Number(process.env['CUSTODY_TEST_RUNS'] ?? 40) },
  )
})

test('a prepaid balance for N fees allows exactly N transactions, in any sequence', async () => {
  for (const fits of [0, 1, 7, 20]) {
    const model = new Model()
    await model.open()
    await model.adjust(100n * BigInt(fits) + 99n)
    await Promise.all(Array.from({ length: 50 }, () => model.reserve(100n)))
    assert.equal(model.fees.size, fits)
    await model.check()
  }
})

test('events at a fifth, a twentieth and zero are emitted once until the next top-up', async () => {
  const model = new Model()
  await model.open()
  const events = async () =>
    (
      await database.query<{ type: string; payload: { percent: number } }>(
        `select type, payload from events where workspace_id = $1 order by id`,
        [model.workspace],
      )
    ).map(({ type, payload }) => `${type} ${payload.percent}`)
  await model.adjust(10_000n)
  await model.reserve(7_900n)
  assert.deepEqual(await events(), [])
  await model.reserve(200n)
  await model.reserve(100n)
  assert.deepEqual(await events(), ['prepaid_fee.low 20'])
  await model.reserve(1_400n)
  assert.deepEqual(await events(), ['prepaid_fee.low 20', 'prepaid_fee.low 5'])
  await model.reserve(351n)
  assert.deepEqual(
    (await events()).slice(2),
    ['prepaid_fee.empty 0'],
    'below the least fee nothing can be paid',
  )
  await model.release(0)
  await model.adjust(20_000n)
  await model.reserve(27_000n)
  assert.deepEqual((await events()).slice(3), ['prepaid_fee.low 5'])
  await model.check()
})

test('each balance level is reported exactly at its threshold, with the balance', async () => {
  const events = async (workspace: string) =>
    (
      await database.query<{ type: string; payload: object }>(
        'select type, payload from events where workspace_id = $1 order by id',
        [workspace],
      )
    ).map(({ type, payload }) => ({ type, ...payload }))
  const after = async (topUp: bigint, ...fees: bigint[]) => {
    const model = new Model()
    await model.open()
    await model.adjust(topUp)
    for (const fee of fees) await model.reserve(fee)
    await model.check()
    return events(model.workspace)
  }
  const usd = { currency: 'USD', topped_up_to: 10 }
  const [low, twentieth] = [
    { type: 'prepaid_fee.low', balance: 2, percent: 20, ...usd },
    { type: 'prepaid_fee.low', balance: 0.5, percent: 5, ...usd },
  ]
  assert.deepEqual(await after(10_000_000n, 7_999_999n), [])
  assert.deepEqual(await after(10_000_000n, 8_000_000n), [low])
  assert.deepEqual(await after(10_000_000n, 8_000_000n, 1_499_999n), [low])
  assert.deepEqual(await after(10_000_000n, 8_000_000n, 1_500_000n), [low, twentieth])
  // The minimum fee of this test is 50 millionths.
  assert.deepEqual(
    (await after(10_000_000n, 9_999_950n)).map(({ type, ...more }) => [type, more]),
    [['prepaid_fee.low', { balance: 0.00005, percent: 5, ...usd }]],
  )
  assert.deepEqual(await after(10_000_000n, 9_999_951n), [
    { type: 'prepaid_fee.empty', balance: 0.000049, percent: 0, ...usd },
  ])
  assert.deepEqual(
    (await after(100n, 100n)).map(({ type }) => type),
    ['prepaid_fee.empty'],
  )
  assert.deepEqual(await after(100n, 0n), [], 'a fee of nothing tells nothing')
  const twice = new Model()
  await twice.open()
  await twice.adjust(100n)
  for (let time = 0; time < 2; time++)
    await database.query(`select prepaid_reserve($1, 'the same', 40, 0)`, [twice.workspace])
  await database.query(`select prepaid_reserve($1, 'for nothing', 0, 1000)`, [twice.workspace])
  assert.deepEqual(
    await events(twice.workspace),
    [],
    'what is reserved already is not taken off again',
  )
  await database.query(`select prepaid_reserve($1, 'the rest but one', 59, 0)`, [twice.workspace])
  await database.query(`select prepaid_reserve($1, 'the last', 1, 0)`, [twice.workspace])
  assert.equal((await events(twice.workspace)).at(-1)?.type, 'prepaid_fee.empty')
})

test('a correction deducts at most the balance, and returns the remaining amount', async () => {
  const model = new Model()
  await model.open()
  const adjust = async (amount: bigint, reference: string = randomUUID(), least = 0n) =>
    (
      await database.one<{ left: string }>('select prepaid_adjust($1, $2, $3, $4)::text as left', [
        model.workspace,
        reference,
        `${amount}`,
        `${least}`,
      ])
    )?.left
  const account = () =>
    database.one('select level::text, told from prepaid_accounts where workspace_id = $1', [
      model.workspace,
    ])
  const events = async () =>
    (
      await database.query<{ type: string }>(
        'select type from events where workspace_id = $1 order by id',
        [model.workspace],
      )
    ).map(({ type }) => type)
  assert.equal(await adjust(100n, 'first'), '100')
  assert.equal(await adjust(100n, 'first'), '100', 'once for each reference')
  assert.deepEqual(await account(), { level: '100', told: 0 })
  assert.equal(await adjust(-21n), '79')
  assert.deepEqual([await account(), await events()], [{ level: '100', told: 0 }, []])
  assert.equal(await adjust(-59n), '20')
  assert.deepEqual(
    [await account(), await events()],
    [{ level: '100', told: 1 }, ['prepaid_fee.low']],
  )
  assert.equal(await adjust(0n), '20')
  assert.deepEqual(await account(), { level: '100', told: 1 }, 'what changes nothing is no top-up')
  await assert.rejects(adjust(-21n), { code: 'CU001', detail: '20' })
  assert.equal(await adjust(-20n), '0', 'all that it holds')
  assert.deepEqual(
    [await account(), await events()],
    [{ level: '100', told: 3 }, ['prepaid_fee.low', 'prepaid_fee.empty']],
  )
  assert.equal(await adjust(1n), '1')
  assert.deepEqual(await account(), { level: '1', told: 0 }, 'the announcements start again')
  assert.equal(await adjust(1n, 'short', 3n), '2')
  assert.deepEqual(
    [await account(), (await events()).at(-1)],
    [{ level: '2', told: 3 }, 'prepaid_fee.empty'],
    'too little for any transfer',
  )
})

test('an unreserved fee is neither charged nor returned', async () => {
  const model = new Model()
  await model.open()
  await model.adjust(1000n)
  const once = async (call: string, id: string) =>
    (
      await database.one<{ done: boolean }>(`select ${call}($1, $2, $3) done`, [
        model.workspace,
        id,
        DAY,
      ])
    )?.done
  const free = randomUUID()
  await database.query(
    `insert into transactions (id, kind, workspace_id, asset, network, amount, fee_asset,
      source_type, destination_type, state, status, platform_fee)
     values ($1, 'WITHDRAWAL', $2, 'ETH', 'ETH', 1, 'ETH', 'INTERNAL', 'EXTERNAL', 'CREATED',
       'pending', 5)`,
    [free, model.workspace],
  )
  assert.deepEqual(
    [await once('prepaid_charge', free), await once('prepaid_release', free)],
    [false, false],
  )
  await model.reserve(960n)
  const id = [...model.fees.keys()][0] as string
  const events = async () =>
    (
      await database.one<{ told: number }>(
        'select told from prepaid_accounts where workspace_id = $1',
        [model.workspace],
      )
    )?.told
  assert.equal(await events(), 3, 'less is left than the least fee')
  assert.deepEqual(
    [await once('prepaid_charge', free), await once('prepaid_release', free)],
    [false, false],
    'what others have is not its own',
  )
  assert.equal(await once('prepaid_release', id), true)
  assert.equal(await events(), 2)
  assert.deepEqual(
    [await once('prepaid_charge', id), await once('prepaid_release', id)],
    [false, false],
  )
  await database.query('update prepaid_accounts set told = 1 where workspace_id = $1', [
    model.workspace,
  ])
  await model.reserve(10n)
  assert.equal(await once('prepaid_release', [...model.fees.keys()][1] as string), true)
  assert.equal(await events(), 1, 'only the empty account is announced again')
})

test('a reserved fee is charged or returned once, in its own workspace only', async () => {
  const [model, other] = [new Model(), new Model()]
  for (const each of [model, other]) {
    await each.open()
    await each.adjust(1000n)
    await each.reserve(100n)
  }
  const [[id], [foreign]] = [[...model.fees.keys()], [...other.fees.keys()]] as [[string], [string]]
  const once = async (call: string, of: string) =>
    (
      await database.one<{ done: boolean }>(`select ${call}($1, $2, $3) done`, [
        model.workspace,
        of,
        DAY,
      ])
    )?.done
  const books = async () =>
    Object.fromEntries(
      (
        await database.query<{ kind: string; balance: string }>(
          `select kind, balance::text from ledger_accounts where workspace_id = $1
            and kind <> 'chain'
     union all select 'volume', coalesce(sum(amount_usd), 0)::text from prepaid_volumes
       where workspace_id = $1`,
          [model.workspace],
        )
      ).map(({ kind, balance }) => [kind, balance]),
    )
  assert.equal(await once('prepaid_charge', foreign), false)
  assert.equal(await once('prepaid_release', foreign), false)
  assert.deepEqual(
    [await once('prepaid_charge', id), await once('prepaid_charge', id)],
    [true, false],
  )
  assert.deepEqual(await books(), {
    prepaid: '900',
    prepaid_reserved: '0',
    fees: '100',
    volume: '700',
  })
  assert.deepEqual(
    [await once('prepaid_release', id), await once('prepaid_release', id)],
    [true, false],
  )
  assert.deepEqual(await books(), {
    prepaid: '1000',
    prepaid_reserved: '0',
    fees: '0',
    volume: '0',
  })
  // One transaction has no fee, and the value of the other one is unknown.
  const [free, unvalued] = [randomUUID(), randomUUID()]
  for (const [of, fee] of [
    [free, null],
    [unvalued, '50'],
  ] as const) {
    await database.query(
      `insert into transactions
         (id, kind, workspace_id, asset, network, amount, fee_asset, source_type, destination_type,
           state, status, platform_fee)
       values ($1, 'WITHDRAWAL', $2, 'ETH', 'ETH', 1, 'ETH', 'INTERNAL', 'EXTERNAL', 'CREATED',
         'pending', $3)`,
      [of, model.workspace, fee],
    )
  }
  await database.query('select prepaid_reserve($1, $2, 0, 0), prepaid_reserve($1, $3, 50, 0)', [
    model.workspace,
    free,
    unvalued,
  ])
  assert.deepEqual(
    [await once('prepaid_charge', free), await once('prepaid_release', free)],
    [false, false],
  )
  assert.equal(await once('prepaid_charge', unvalued), true)
  assert.deepEqual(await books(), {
    prepaid: '950',
    prepaid_reserved: '0',
    fees: '50',
    volume: '0',
  })
  assert.equal(await once('prepaid_release', unvalued), true)
  assert.deepEqual(await books(), {
    prepaid: '1000',
    prepaid_reserved: '0',
    fees: '0',
    volume: '0',
  })
})

test('an account that another transaction creates concurrently is locked like an existing one', async () => {
  const [model, other] = [new Model(), new Model()]
  await model.open()
  await other.open()
  const lock = 'select prepaid_lock($1)'
  const second = await database.transaction(async (tx) => {
    await tx.query(lock, [model.workspace])
    const pending = {
      ended: false,
      answer: database
        .transaction(async (late) => {
          await late.query(lock, [model.workspace])
          return database.query(
            'select 1 from prepaid_accounts where workspace_id = $1 for update skip locked',
            [model.workspace],
          )
        })
        .finally(() => {
          pending.ended = true
        }),
    }
    const isWaiting = async () =>
      (
        await database.query(
          `select 1 from pg_stat_activity where wait_event_type = 'Lock'
            and datname = current_database() and query = $1`,
          [lock],
        )
      ).length > 0
    while (!pending.ended && !(await isWaiting()))
      await new Promise((resolve) => {
        setTimeout(resolve, 10)
      })
    return pending
  })
  assert.deepEqual(await second.answer, [], 'nobody else has it while the second does')
  await database.query('select prepaid_adjust($1, $2, 0, 0)', [other.workspace, randomUUID()])
  assert.deepEqual(
    await database.query('select type from events where workspace_id = $1', [other.workspace]),
    [{ type: 'prepaid_fee.empty' }],
  )
  assert.deepEqual(
    await database.query('select type from events where workspace_id = $1', [model.workspace]),
    [],
  )
})

test('fees are percentages with a minimum, rounded up, and invalid tier settings are named', () => {
  const tiers = readTiers(DEFAULT_TIERS)
  const usd = (amount: number) => BigInt(amount) * 1_000_000n
  assert.deepEqual(
    [0, 999_999, 1_000_000, 9_999_999, 10_000_000, 50_000_000, 900_000_000].map(
      (volume) => tierOfVolume(tiers, usd(volume)).name,
    ),
    ['STARTER', 'STARTER', 'GROWTH', 'GROWTH', 'BUSINESS', 'ENTERPRISE', 'ENTERPRISE'],
  )
  assert.equal(tierOfVolume(tiers, -5n).name, 'STARTER')
  assert.equal(tierNamed(tiers, 'GONE').name, 'STARTER')
  for (const [name, value, fee] of [
    ['STARTER', 100, 500_000n],
    ['STARTER', 200, 500_000n],
    ['STARTER', 1000, 2_500_000n],
    ['GROWTH', 1000, 1_500_000n],
    ['BUSINESS', 1000, 800_000n],
    ['ENTERPRISE', 1000, 400_000n],
    ['ENTERPRISE', 0, 100_000n],
  ] as const)
    assert.equal(feeOf(tierNamed(tiers, name), usd(value)), fee)
  assert.equal(feeOf(tierNamed(tiers, 'STARTER'), 400_000_001n), 1_000_001n)
  for (const bad of [
    '',
    'A',
    'A:1:1:1:1',
    'A:0:1:1:1,B:0:1:1:1',
    'A:0:1:1:1,A:5:1:1:1',
    'A:0:10001:0:0',
    'A:0:1:0.0000001:0',
    'A:0:1:x:0',
    'a:0:1:1:1',
    'A:0:1:1:1:1',
  ])
    assert.throws(() => readTiers(bad), /; a tier is NAME:VOLUME:/, bad)
})

testEmittedEvents(() => database, ['prepaid_fee.low', 'prepaid_fee.empty'])
