import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { eth, SINK_ETH } from '../../../signer/testing/signer-cluster.ts'
import { openDatabase } from '../../src/core/database/pool.ts'
import { SeededRandom } from './seeded-random.ts'
import { LockLog, SimulatedServer } from './setup-mode.ts'
import { read, Signatures } from './hostile/oracle.ts'
import { closeLedgers } from './hostile/orders/play.ts'
import { playHostile } from './hostile/play.ts'
import { People, SINKS } from './hostile/requests.ts'
import { Actor, Schedule } from './schedule.ts'
import { watched } from './ledger-watch.ts'
import { shrink } from './shrink.ts'
import { simulate } from './simulate.ts'

/**
 * Tests of the simulator itself: the oracle detects violations, recorded draws replay a run, and
 * the shrinker keeps the draws that cause a failure.
 */
const NO_COINS = new Map<string, bigint>()
async function plannedRequest() {
  const people = new People(1, new SeededRandom(1, []), () => Date.UTC(2030, 0, 1))
  await people.plan()
  const planned = people.wishes[0] as (typeof people.wishes)[number]
  const signed = (options: Parameters<typeof eth>[1], path = [1, 60, 0]) => {
    const unsigned = eth(path, { to: planned.to, value: planned.units, ...options })
    return [read(unsigned, SINK_ETH, NO_COINS), `ETH ${unsigned.bytes}`] as const
  }
  return { wish: planned, signed }
}

test('the oracle accepts the requested payment, and its replacement with a higher fee', async () => {
  const { wish: planned, signed } = await plannedRequest()
  const signatures = new Signatures()
  signatures.payment(planned, ...signed({}), null)
  signatures.payment(planned, ...signed({ maxFeePerGas: 3_000_000_000n }), null)
  assert.deepEqual(signatures.problems, [])
})

test('the oracle detects second, wrong and unrequested payments, and payments after two voids', async () => {
  const { wish: planned, signed } = await plannedRequest()
  const seen = (act: (signatures: Signatures) => void): string => {
    const signatures = new Signatures()
    signatures.payment(planned, ...signed({}), null)
    act(signatures)
    return signatures.problems.join('\n')
  }
  assert.match(
    seen((all) => all.payment(planned, ...signed({ nonce: 1 }), null)),
    /do not exclude each other/,
  )
  assert.match(
    seen((all) => all.payment(planned, ...signed({ value: 1n }), null)),
    /not what/,
  )
  assert.match(
    seen((all) =>
      all.payment(
        planned,
        ...signed({ to: SINKS.find((sink) => sink !== planned.to) as string }),
        null,
      ),
    ),
    /not what/,
  )
  assert.match(
    seen((all) => all.payment(planned, ...signed({}, [2, 60, 0]), null)),
    /from another wallet/,
  )
  assert.match(
    seen((all) => all.payment(undefined, ...signed({}), null)),
    /nobody wished/,
  )
  assert.match(
    seen((all) => {
      all.voided(planned.name)
      all.payment(planned, ...signed({ maxFeePerGas: 3_000_000_000n }), null)
    }),
    /after two nodes had voided/,
  )
  assert.match(
    seen((all) =>
      all.fuel([planned], '', 5n, SINK_ETH, ...signed({ to: SINK_ETH, value: 6n }, [0, 60, 0])),
    ),
    /fuel of more than 5/,
  )
})

test('a seed of the hostile run gives the same result each time, and its draws replay that run', async () => {
  // One seed draws orders of every purpose, and the other forges payments.
  for (const seed of [4, 5]) {
    const first = await playHostile(seed)
    assert.equal(first.failure, null)
    assert.ok(first.signed > 0 && first.refusals.size > 5)
    const again = await playHostile(seed, first.draws)
    assert.deepEqual(
      [again.count, again.signed, [...again.refusals]],
      [first.count, first.signed, [...first.refusals]],
    )
  }
  await closeLedgers()
})

test('a randomized run with one seed gives the same trace, whatever ran before in its database', async () => {
  const databaseServer = new SimulatedServer()
  try {
    await databaseServer.start()
    const messages: string[] = []
    for (const seed of [204, 29, 204]) {
      const { failure, trace } = await simulate(databaseServer, seed)
      assert.equal(failure, null)
      messages.push(trace.join('\n'))
    }
    assert.ok(messages[0] && messages[0] === messages[2], 'the same seed, another story')
    assert.notEqual(messages[0], messages[1])
  } finally {
    await databaseServer.stop()
  }
})

test('the scheduler runs operations that may release locks one after the other', async () => {
  const schedule = new Schedule(new SeededRandom(1, []), 0, async () => ({
    pids: [],
    isKnot: false,
    areChecked: true,
  }))
  const order: string[] = []
  const act = (what: string) => async () => {
    order.push(`${what} begins`)
    await new Promise((resolve) => setTimeout(resolve, 1))
    order.push(`${what} ends`)
  }
  const committed = schedule.pauseAt(new Actor('platform-1'), '  commit', act('commit'))
  await Promise.all([
    schedule.freed([], act('first end')),
    schedule.step(100),
    schedule.freed([], act('second end')),
    committed,
  ])
  assert.deepEqual(
    order,
    ['first end', 'second end', 'commit'].flatMap((what) => [`${what} begins`, `${what} ends`]),
  )
})

test('a wait for a lock counts as checked only until it ends', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lock-log-'))
  const path = join(folder, 'postgres.log')
  const log = (pid: number, time: string, event: string) => {
    const text = `2026-01-01 00:00:${time} UTC [${pid}] LOG:  process ${pid} ${event} ShareLock\n`
    appendFileSync(path, text)
  }
  const at = (time: string) => Date.parse(`2026-01-01T00:00:${time}Z`)
  log(7, '01.000', 'still waiting for')
  const locks = new LockLog(path)
  try {
    assert.deepEqual(
      [
        locks.hasChecked(7, at('00.990')),
        locks.hasChecked(7, at('01.000')),
        locks.hasChecked(8, 0),
      ],
      [true, false, false],
    )
    // A new wait is listed with the time of the earlier one at first.
    log(7, '02.000', 'acquired')
    log(8, '02.000', 'avoided deadlock for')
    assert.deepEqual([locks.hasChecked(7, at('00.990')), locks.hasChecked(8, 0)], [false, true])
    log(7, '03.000', 'still waiting for')
    log(8, '03.000', 'detected deadlock while waiting for')
    assert.deepEqual([locks.hasChecked(7, at('00.990')), locks.hasChecked(8, 0)], [true, false])
  } finally {
    locks.close()
    rmSync(folder, { recursive: true })
  }
})

test('the shrinker finds the one draw that causes the failure', async () => {
  const run = async (draws: readonly number[]) => ({
    failure: draws[70] === 3 ? 'it failed' : null,
    draws,
  })
  const failed = await run(Array.from({ length: 200 }, (_, at) => (at === 70 ? 3 : at % 5)))
  const { draws, failure } = await shrink(failed, run, 5000)
  assert.equal(failure, 'it failed')
  assert.ok(draws.filter((draw) => draw !== 0).length < 20, String(draws))
})

test('the check refuses a commit with an unbalanced entry or a negative or unposted balance', async () => {
  const databaseServer = new SimulatedServer()
  try {
    await databaseServer.start()
    const { adminUrl } = await databaseServer.database()
    const problems: string[] = []
    const raw = openDatabase(adminUrl('test'), { onError: () => undefined })
    const database = watched(raw, (problem) => problems.push(problem))
    const { id } = (await database.one<{ id: string }>(
      `insert into workspaces (name) values ('acme') returning id`,
    )) as { id: string }
    const post = (reference: string, ...amounts: string[]) =>
      database.query('select ledger_post($1, $2, $3, $4)', [
        id,
        'TEST',
        reference,
        JSON.stringify(
          amounts.map((amount, at) => ({
            asset: 'ETH',
            kind: at === 0 ? 'chain' : 'suspense',
            amount,
          })),
        ),
      ])
    await post('1', '-5', '5')
    const refused = async (work: () => Promise<unknown>, by: RegExp) => {
      problems.length = 0
      await assert.rejects(work(), by)
      assert.match(problems.join(), by)
    }
    await refused(
      () => database.query('update ledger_accounts set balance = balance + 1'),
      /has -?\d+, and -?\d+ was posted/,
    )
    await refused(
      () => database.query(`update ledger_postings set amount = amount + 1 where amount > 0`),
      /does not sum to zero: ETH 1/,
    )
    const moved = (by: string) =>
      `update ledger_accounts set balance = balance + (case when kind = 'chain' then ${by}
        else -${by} end)`
    await database.query('alter table ledger_accounts drop constraint ledger_not_negative')
    await refused(
      () =>
        database.transaction(async (tx) => {
          await tx.query(moved('6'))
          await tx.query(
            'update ledger_postings set amount = amount + (case when amount < 0 then 6 else -6 end)',
          )
        }),
      /suspense ETH has -1/,
    )
    await post('2', '-1', '1')
    await raw.query(
      `insert into transactions (id, kind, workspace_id, asset, network, amount, fee_asset,
         source_type, destination_type, state, status)
       values (gen_random_uuid(), 'DRAIN', $1, 'ETH', 'ETH', 1, 'ETH', 'GAS_TANK', 'EXTERNAL',
         'CONFIRMED', 'confirmed')`,
      [id],
    )
    await refused(
      () => database.query(`update transactions set state = 'QUEUED'`),
      /the table of DRAIN does not allow QUEUED after CONFIRMED/,
    )
    await raw.close()
  } finally {
    await databaseServer.stop()
  }
})
