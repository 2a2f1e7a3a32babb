import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadRegistry } from '@custody/chains'
import * as fc from '../../../../../../testing/property.ts'
import { scanLoop } from '../../../custody/deposits/scanner.ts'
import { HeadPolling } from './head-polling.ts'
import { useDatabase, DepositFixture } from '../../../../testing/deposits-support.ts'

/**
 * Tests of how often an endpoint is polled for its head: by the chain's block time, and by the
 * limits of the endpoint's plan.
 */
const database = useDatabase()
const POLL_MS = 5000
const DAY_MS = 86_400_000

test('polls once per pause or a tenth of the block time, and at least every 30 seconds', () => {
  const pauseOf = (blockMs: number | undefined) =>
    new HeadPolling({ blockMs, perDay: undefined, environment: { now: () => 0 } }).pauseMs(POLL_MS)
  assert.deepEqual(
    [undefined, 200, 12_000, 60_000, 150_000, 600_000, 10 ** 9].map(pauseOf),
    [5000, 5000, 5000, 6000, 15_000, 30_000, 30_000],
  )
})

test('each main network has a block time, and no local network has one', () => {
  assert.deepEqual(
    loadRegistry('mainnet')
      .networks.filter(({ block_ms: ms }) => !ms)
      .map(({ code }) => code),
    [],
  )
  assert.deepEqual(
    loadRegistry('local')
      .networks.filter(({ block_ms: ms }) => ms !== undefined)
      .map(({ code }) => code),
    [],
  )
})

/**
 * Returns the number of requests in a day in which only the head is polled.
 * @param each requests for each poll
 * @param otherPerHour other requests
 */
function dayOf(perDay: number, each: number, otherPerHour = 0): number {
  let now = 0
  let requestCount = 0
  const pace = new HeadPolling({ blockMs: undefined, perDay, environment: { now: () => now } })
  const ask = (count: number) => {
    requestCount += count
    for (let at = 0; at < count; at++) pace.recordRequest()
  }
  for (let hour = 0; now < DAY_MS;) {
    ask(each)
    now += pace.pauseMs(POLL_MS)
    if (now >= (hour + 1) * 3_600_000) {
      hour++
      ask(otherPerHour)
    }
  }
  return requestCount
}

test('polling stays within the provider’s plan, and runs at least once a minute', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 5000, max: 200_000 }),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 0, max: 3000 }),
      (perDay, each, others) => {
        const requestCount = dayOf(perDay, each, others)
        const least = (DAY_MS / 60_000) * each + others * 24
        // The allowance of one hour may be used in advance, and the burst of the last hour can come
        // at any time.
        const most = Math.max(perDay, least) * 1.05 + perDay / 24 + others + each
        assert.ok(requestCount <= most, `${requestCount} of ${perDay}; ${least} at least`)
      },
    ),
    { numRuns: 60 },
  )
})

test('a sufficient plan does not slow polling, and a burst slows polling for at most an hour', () => {
  assert.equal(dayOf(100_000, 2), Math.ceil(DAY_MS / POLL_MS) * 2)
  let now = 0
  const pace = new HeadPolling({
    blockMs: undefined,
    perDay: 24_000,
    environment: { now: () => now },
  })
  for (let at = 0; at < 1_000_000; at++) pace.recordRequest()
  assert.equal(pace.pauseMs(POLL_MS), 60_000)
  now += 2 * 3_600_000
  assert.equal(pace.pauseMs(POLL_MS), POLL_MS)
})

test('the scan pauses only at the head of the chain and while the endpoint works', async () => {
  await database.started
  const fixture = new DepositFixture(database.get(), 'utxo')
  await fixture.open()
  await fixture.tenant('alice')
  await fixture.scan()
  const { services } = fixture
  Object.assign(services.settings, { pollMs: POLL_MS })
  const chain = Object.assign(services.networks.get('BTC'), {
    pace: new HeadPolling({
      blockMs: 600_000,
      perDay: undefined,
      environment: { now: () => fixture.now },
    }),
  })
  let looks = 0
  let fails = false
  const tip = fixture.chain.tip.bind(fixture.chain)
  fixture.chain.tip = async () => {
    looks++
    if (fails) throw new Error('away')
    return tip()
  }
  const loop = scanLoop(services, chain, async () => new Set(['BTC']))
  const run = () => loop.run(new AbortController().signal)
  const minutes = async (count: number) => {
    looks = 0
    for (let at = 0; at < (count * 60_000) / POLL_MS; at++) {
      while (await run().catch(() => false));
      fixture.now += POLL_MS
    }
    return looks
  }
  assert.equal(await minutes(10), 20)
  fixture.chain.mine()
  assert.equal(await minutes(1), 2)
  fails = true
  assert.equal(await minutes(1), 12, 'a failing endpoint is asked again as ever')
  fails = false
  assert.equal(await minutes(1), 2)
  fixture.now -= 7 * DAY_MS
  assert.equal(await minutes(1), 2)
})
