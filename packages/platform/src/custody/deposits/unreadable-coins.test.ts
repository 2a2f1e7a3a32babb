import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture, type WalletAddress } from '../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests of a coin whose transaction the endpoint does not return, or returns incorrectly: a wallet
 * pays with its other coins, and a transfer that needs the coin reports the reason.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-unreadable-'))
let devnet: Devnet

const PLACES: readonly WalletAddress[] = [
  { code: 'BTC', to: 'bcrt1q6z64a43mjgkcq0ul2znwneq3spghrlau9slefp', held: '1', amount: '0.5' },
  { code: 'DASH', to: 'yNPbcFfabtNmmxKdGwhHomdYfVs6gikbPf', held: '1', amount: '0.5' },
]

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

for (const place of PLACES) {
  for (const [what, change] of [
    [
      'is not returned',
      () => ({
        result: null,
        error: { code: -5, message: 'No such mempool or blockchain transaction' },
      }),
    ],
    ['cannot be decoded', (raw: string) => ({ result: `${raw.slice(0, 8)}00${raw.slice(8)}` })],
    ['is another one', (raw: string) => ({ result: `${raw.slice(0, -8)}01000000` })],
  ] as const) {
    test(`${place.code}: if the transaction of an input ${what}, only transfers that need it wait`, async () => {
      const odd = new Set<string>()
      const fixture = new FamilyFixture(database.get(), devnet, place, clock, async (url, init) => {
        const response = await fetch(url, init)
        const { method, params } = JSON.parse(String(init.body)) as {
          method: string
          params: [string, boolean]
        }
        if (method !== 'getrawtransaction' || params[1] || !odd.has(params[0])) return response
        const { result } = (await response.json()) as { result: string }
        const changed = change(result)
        return Response.json(
          { jsonrpc: '2.0', id: 1, ...changed },
          { status: 'error' in changed ? 500 : 200 },
        )
      })
      try {
        await fixture.open()
        await fixture.fund('1')
        await fixture.fund('1')
        const coins = await fixture.database.query<{ txid: string }>(
          'select txid from utxos order by txid',
        )
        assert.equal(coins.length, 3)
        // Two of three coins cannot be read, so the selection order does not matter.
        for (const { txid } of coins.slice(0, 2)) odd.add(txid)
        const paid = await fixture.create('paid')
        await fixture.run()
        assert.equal((await fixture.read(paid)).state, 'CONFIRMED')
        const waits = await fixture.create('waits', { amount: '0.9' })
        for (let turn = 0; turn < 8; turn++) await fixture.turn()
        const { state, status, last_error: reason } = await fixture.read(waits)
        assert.deepEqual([state, status], ['QUEUED', 'pending'])
        assert.match(
          reason ?? '',
          /^it waits for coins that cannot be spent now: [0-9a-f]{64}:\d+ \(.+\) and 1 more$/,
        )
        odd.clear()
        await fixture.run()
        assert.equal((await fixture.read(waits)).state, 'CONFIRMED')
        await fixture.check()
      } finally {
        await fixture.close()
      }
    })
  }
}

for (const [what, change] of [
  [
    'is not returned',
    () =>
      Response.json(
        { status_code: 404, error: 'Not Found', message: 'not found' },
        { status: 404 },
      ),
  ],
  [
    'cannot be decoded',
    ({ cbor }: { cbor: string }) => Response.json({ cbor: cbor.slice(0, -20) }),
  ],
  [
    'is another one',
    ({ cbor }: { cbor: string }) =>
      Response.json({ cbor: `84a3${'00800180'}0200a0f5f6${cbor.slice(0, 0)}` }),
  ],
] as const) {
  test(`ADA: if the transaction of an input ${what}, only transfers that need it wait`, async () => {
    const odd = new Set<string>()
    const place: WalletAddress = {
      code: 'ADA',
      to: 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz',
      held: '10',
      amount: '5',
    }
    const fixture = new FamilyFixture(database.get(), devnet, place, clock, async (url, init) => {
      const response = await fetch(url, init)
      const txid = /\/txs\/([0-9a-f]{64})\/cbor$/.exec(url)?.[1]
      if (txid === undefined || !odd.has(txid)) return response
      return change((await response.json()) as { cbor: string })
    })
    try {
      await fixture.open()
      await fixture.fund('10')
      await fixture.fund('10')
      const coins = await fixture.database.query<{ txid: string }>(
        'select txid from utxos order by txid',
      )
      assert.equal(coins.length, 3)
      for (const { txid } of coins.slice(0, 2)) odd.add(txid)
      const paid = await fixture.create('paid')
      await fixture.run()
      assert.equal((await fixture.read(paid)).state, 'CONFIRMED')
      const waits = await fixture.create('waits', { amount: '8' })
      for (let turn = 0; turn < 8; turn++) await fixture.turn()
      const { state, status, last_error: reason } = await fixture.read(waits)
      assert.deepEqual([state, status], ['QUEUED', 'pending'])
      assert.match(
        reason ?? '',
        /^it waits for coins that cannot be spent now: [0-9a-f]{64}:\d+ \(.+\) and 1 more$/,
      )
      odd.clear()
      await fixture.run()
      assert.equal((await fixture.read(waits)).state, 'CONFIRMED')
      await fixture.check()
    } finally {
      await fixture.close()
    }
  })
}
