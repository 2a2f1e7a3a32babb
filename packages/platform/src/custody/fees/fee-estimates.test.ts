import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { networkFeeRates } from './network-fee-rates.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture } from '../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests with a restarted node that has no fee estimate. Earlier rates are returned with their age,
 * and without any rate a transfer waits.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-fee-estimates-'))
const PLACE = {
  code: 'BTC',
  to: 'bcrt1q6z64a43mjgkcq0ul2znwneq3spghrlau9slefp',
  held: '1',
  amount: '0.5',
}
const MINUTE_MS = 60_000
let devnet: Devnet

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

interface Rates {
  low: number
  medium: number
  high: number
  updated_at: string
  warning?: string
}

/**
 * Creates a fixture whose node may lack a fee estimate.
 * @param hasEstimate called at each request for an estimate; whether the node has one
 */
function staged(hasEstimate: () => boolean): FamilyFixture {
  return new FamilyFixture(database.get(), devnet, PLACE, clock, async (url, init) => {
    const { method } = JSON.parse(String(init.body)) as { method: string }
    if (method !== 'estimatesmartfee' || hasEstimate()) return fetch(url, init)
    return Response.json({
      result: { errors: ['Insufficient data or no feerate found'], blocks: 2 },
      error: null,
      id: 1,
    })
  })
}

const ratesOf = async ({ services, caller }: FamilyFixture): Promise<Rates> =>
  (
    (await networkFeeRates.handler(
      {
        caller,
        params: { asset: 'BTC' },
      } as unknown as Parameters<typeof networkFeeRates.handler>[0],
      services,
    )) as { body: Rates }
  ).body

test('without an estimate the API returns 503 with the reason, and an accepted transfer waits', async () => {
  let hasEstimate = false
  const fixture = staged(() => hasEstimate)
  try {
    await fixture.open()
    await assert.rejects(ratesOf(fixture), {
      code: 'NETWORK_UNAVAILABLE',
      message: /^BTC: the node has no estimate of fee rates now, .*set fee_rate/,
    })
    const waits = await fixture.create('waits', { fee_level: 'high' })
    for (let turn = 0; turn < 8; turn++) await fixture.turn()
    const { state, status, last_error: reason } = await fixture.read(waits)
    assert.deepEqual([state, status], ['QUEUED', 'pending'])
    assert.match(reason ?? '', /^BTC: the node has no estimate of fee rates now/)
    hasEstimate = true
    await fixture.run()
    assert.equal((await fixture.read(waits)).state, 'CONFIRMED')
    await fixture.check()
  } finally {
    await fixture.close()
  }
})

test('a transfer with a fee_rate needs no estimate', async () => {
  const fixture = staged(() => false)
  try {
    await fixture.open()
    const paid = await fixture.create('paid', { fee_rate: '25' })
    await fixture.run()
    assert.equal((await fixture.read(paid)).state, 'CONFIRMED')
    await fixture.check()
  } finally {
    await fixture.close()
  }
})

test('earlier fee rates are returned for two hours, with their time and a warning', async () => {
  let hasEstimate = true
  const fixture = staged(() => hasEstimate)
  try {
    await fixture.open()
    const first = await ratesOf(fixture)
    assert.equal(first.warning, undefined)
    hasEstimate = false
    clock.advance(MINUTE_MS)
    const { warning, ...later } = await ratesOf(fixture)
    assert.deepEqual(later, first)
    assert.equal(
      warning,
      `the node has no estimate of fee rates now: these were estimated at ${first.updated_at}`,
    )
    clock.advance(2 * 3_600_000)
    await assert.rejects(ratesOf(fixture), { code: 'NETWORK_UNAVAILABLE' })
  } finally {
    await fixture.close()
  }
})
