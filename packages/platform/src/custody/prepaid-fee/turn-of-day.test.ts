import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseJson, stringifyJson } from '@custody/request-auth'
import type { Logger } from 'pino'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import type { Endpoint } from '../../core/http/endpoint.ts'
import { DEFAULT_TIERS, readTiers } from '../../core/settings/tiers.ts'
import type { Application } from '../../server/app/application.ts'
import { audit } from '../../server/audit/audit.ts'
import { adjustPrepaidFee } from '../../server/operator/prepaid-fee.ts'
import { FamilyFixture } from '../../../testing/chains/family-fixture.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { testEmittedEvents } from '../../../testing/event-assertions.ts'
import { plain } from '../../../testing/harness.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'
import { listPrepaidEntries } from './list-entries.ts'
import { readPrepaidFee } from './read-account.ts'
import { turnOfDayLoop } from './turn-of-day.ts'

/** Tests of the tier and the subscription of a prepaid fee account when a UTC day begins. */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-turn-of-day-'))
const MILLION = 1_000_000_000_000n
const USD = 10n ** 12n
let devnet: Devnet

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

interface Account {
  balance: string
  tier: string
  fees: Record<string, string>
}
interface Entry {
  type: string
  balance_change: string
}

test('a new day sets the tier by the last 30 days and charges the monthly subscription', async () => {
  const fixture = new FamilyFixture(
    database.get(),
    devnet,
    {
      code: 'ETH',
      to: '0x00000000000000000000000000000000000000c1',
      held: '2',
      amount: '0.5',
    },
    clock,
  )
  const { services } = fixture
  const tiers = readTiers(DEFAULT_TIERS)
  Object.assign(services.settings, { prepaidTiers: tiers })
  Object.assign(services, {
    prices: {
      price: () => ({ price: 3000n * USD, at: clock.now(), sources: ['test'], stale: false }),
    },
  })
  const loop = turnOfDayLoop({ ...services, log: services.log as unknown as Logger })
  await fixture.open()
  const { workspaceId } = fixture.caller
  /** The UTC day of the platform's clock, YYYY-MM-DD. */
  const today = new Date(clock.now()).toISOString().slice(0, 10)
  await database
    .get()
    .query('insert into prepaid_accounts (workspace_id, tier, decided_on) values ($1, $2, $3)', [
      workspaceId,
      tiers[0]?.name,
      today,
    ])
  await database
    .get()
    .query('select prepaid_adjust($1, $2, 100000000000, 0)', [
      workspaceId,
      `initial:${workspaceId}`,
    ])
  const ask = async <T>(endpoint: Endpoint<Application>, query?: object) => {
    const { text, body } = await endpoint.handler(
      {
        caller: fixture.caller,
        body: {},
        query,
        params: undefined,
        signed: undefined as never,
        askedAt: clock.now(),
      },
      services,
    )
    return plain(parseJson(text ?? stringifyJson(body))) as T
  }
  const account = () => ask<Account>(readPrepaidFee)
  const entries = async () =>
    (await ask<{ data: Entry[] }>(listPrepaidEntries, { page: 1, limit: 500 })).data
  const tierAndBalance = async () => {
    const { tier, balance } = await account()
    return [tier, balance]
  }
  /** Sets the volume of a day, in millionths of a dollar. */
  const setVolume = (daysAgo: number, amount: bigint) =>
    database.get().query(
      `insert into prepaid_volumes values ($1, $2::date - $3::int, $4)
         on conflict (workspace_id, day) do update set amount_usd = excluded.amount_usd`,
      [workspaceId, today, daysAgo, amount.toString()],
    )
  /** Sets yesterday as the day for which the tier was last decided, and decides it for today. */
  const nextDay = async () => {
    await database
      .get()
      .query('update prepaid_accounts set decided_on = $2::date - 1 where workspace_id = $1', [
        workspaceId,
        today,
      ])
    assert.equal(await loop.run(new AbortController().signal), true)
    assert.equal(await loop.run(new AbortController().signal), false, 'once a day')
  }
  try {
    await setVolume(30, MILLION)
    await setVolume(31, 90n * MILLION)
    assert.equal(await loop.run(new AbortController().signal), false)
    assert.equal((await account()).tier, 'STARTER', 'nothing changes before the day begins')
    await nextDay()
    const growth = await account()
    assert.deepEqual(
      [growth.tier, growth.balance, growth.fees['basis_points'], growth.fees['monthly']],
      ['GROWTH', '99501', '15', '499'],
    )
    assert.equal((await entries())[0]?.type, 'subscription')
    const paid = await fixture.create('paid')
    assert.equal(
      (
        await database
          .get()
          .one<{ fee: string }>('select platform_fee::text fee from transactions where id = $1', [
            paid,
          ])
      )?.fee,
      '2250000',
    )
    await fixture.run()
    assert.equal((await fixture.read(paid)).status, 'confirmed')
    await nextDay()
    assert.equal((await account()).balance, '99498.75', 'a month is paid once')
    await setVolume(2, 10n * MILLION)
    await nextDay()
    assert.deepEqual(
      await tierAndBalance(),
      ['BUSINESS', '98498.75'],
      'an upgrade pays the difference',
    )

    // A month later, the balance does not cover the subscription.
    await adjustPrepaidFee(services, { workspace: 'acme', amount: '-98000' })
    await database.get().query(
      `update prepaid_accounts
         set paid_month = (date_trunc('month', $2::date) - interval '1 month')::date
         where workspace_id = $1`,
      [workspaceId, today],
    )
    await nextDay()
    assert.deepEqual(
      await tierAndBalance(),
      ['STARTER', '498.75'],
      'a subscription that is not covered is not taken',
    )
    await setVolume(2, 100n * MILLION)
    await nextDay()
    assert.deepEqual(await tierAndBalance(), ['ENTERPRISE', '498.75'])

    const changes = await database.get().query<{ tier: string }>(
      `select payload->>'tier' tier from events where workspace_id = $1
         and type = 'prepaid_fee.tier_changed' order by id`,
      [workspaceId],
    )
    assert.deepEqual(
      changes.map(({ tier }) => tier),
      ['GROWTH', 'BUSINESS', 'STARTER', 'ENTERPRISE'],
    )
    const micro = (text: string) => BigInt(Math.round(Number(text) * 1e6))
    const explained = (await entries()).reduce(
      (sum, { balance_change: change }) => sum + micro(change),
      0n,
    )
    assert.equal(explained, micro((await account()).balance), 'the entries explain the balance')
    const { differences, dust } = await audit(services)
    assert.deepEqual([differences, dust], [[], []])
  } finally {
    await fixture.close()
  }
})

testEmittedEvents(() => database.get(), ['prepaid_fee.tier_changed'])
