import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseAmount } from '@custody/chains'
import { Devnet } from '../../../../devnet/src/devnet.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { FamilyFixture, type WalletAddress } from '../../../testing/chains/family-fixture.ts'
import { ManualClock } from '../../../testing/manual-clock.ts'

/**
 * Tests of each family behind several endpoints that must agree. The responses of honest endpoints
 * do not differ in any field that must match.
 */
const clock = new ManualClock()
const database = useDatabase({ migrated: true, clock })
const home = mkdtempSync(join(tmpdir(), 'custody-several-families-'))
let devnet: Devnet

const PLACES: readonly WalletAddress[] = [
  { code: 'BTC', to: 'bcrt1q6z64a43mjgkcq0ul2znwneq3spghrlau9slefp', held: '2', amount: '0.5' },
  { code: 'ETH', to: '0x00000000000000000000000000000000000000AA', held: '5', amount: '1' },
  { code: 'FTM', to: '0x00000000000000000000000000000000000000AA', held: '5', amount: '1' },
  { code: 'TRX', to: 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY', held: '300', amount: '12.345678' },
  { code: 'XRP', to: 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh', held: '500', amount: '2.345678' },
  {
    code: 'XLM',
    to: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
    held: '500',
    amount: '2.3456789',
  },
  {
    code: 'SOL',
    to: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin',
    held: '20',
    amount: '0.345678912',
  },
  {
    code: 'ADA',
    to: 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz',
    held: '50',
    amount: '3',
  },
]

before(async () => {
  devnet = await Devnet.start(home, 0, { now: () => clock.startMs })
})
after(() => {
  devnet.close()
  rmSync(home, { recursive: true, force: true })
})

for (const place of PLACES) {
  test(`${place.code}: credits deposits and completes transfers with one of three endpoints down`, async () => {
    let away = ''
    const requested = new Set<string>()
    const ask: typeof fetch = async (url, init) => {
      const { hostname, pathname, search } = new URL(String(url))
      if (hostname === away) throw new Error('away')
      requested.add(hostname)
      return fetch(`${devnet.url}${pathname}${search}`, init)
    }
    const fixture = new FamilyFixture(database.get(), devnet, place, clock, ask, {
      endpoints: ['a', 'b', 'c'].map((host) => ({
        url: `http://${host}/${place.code.toLowerCase()}`,
      })),
      quorum: 2,
    })
    try {
      await fixture.open()
      for (away of ['', 'a', 'b', 'c']) {
        const id = await fixture.create(`away-${away}`)
        await fixture.run()
        const row = await fixture.read(id)
        assert.equal(row.status, 'confirmed', JSON.stringify(row))
        assert.equal(await fixture.onChain(id), 1)
        const held = await fixture.available()
        await fixture.fund(place.held)
        assert.ok((await fixture.available()) > held, 'the deposit is credited')
      }
      away = ''
      await fixture.check()
      assert.deepEqual([...requested].sort(), ['a', 'b', 'c'])
      const counts = (await fixture.services.metrics.endpointDisagreements.get()).values
      assert.deepEqual(
        counts.map(({ labels, value }) => [labels['endpoint'], value]),
        [
          ['a', 0],
          ['b', 0],
          ['c', 0],
        ],
      )
    } finally {
      await fixture.close()
    }
  })
}

/**
 * What an endpoint changes in its responses so that a deposit of `paid` reads as one of 100 times the
 * amount, by network.
 */
const MULTIPLIED: Record<string, { paid: string; lie: (text: string) => string }> = {
  BTC: { paid: '0.25', lie: (text) => text.replaceAll(/"value":\s*0\.250*(?!\d)/g, '"value":25') },
  ETH: {
    paid: '0.25',
    lie: (text) =>
      text.replaceAll(
        `0x${(25n * 10n ** 16n).toString(16)}`,
        `0x${(25n * 10n ** 18n).toString(16)}`,
      ),
  },
  XRP: { paid: '7.25', lie: (text) => text.replaceAll('"7250000"', '"725000000"') },
  TRX: { paid: '7.25', lie: (text) => text.replaceAll('"amount":7250000', '"amount":725000000') },
}

for (const [code, { paid, lie }] of Object.entries(MULTIPLIED))
  for (const duration of ['for a moment', 'permanently'])
    test(`${code}: a deposit that one of three endpoints multiplies ${duration} is replaced by the quorum's`, async () => {
      const place = PLACES.find((each) => each.code === code) as WalletAddress
      const others: string[] = []
      let lies = false
      const ask: typeof fetch = async (url, init) => {
        const { hostname, pathname, search } = new URL(String(url))
        const response = await fetch(`${devnet.url}${pathname}${search}`, init)
        const text = await response.text()
        return new Response(lies && hostname === 'a' ? lie(text) : text, {
          status: response.status,
        })
      }
      const fixture = new FamilyFixture(database.get(), devnet, place, clock, ask, {
        endpoints: ['a', 'b', 'c'].map((host) => ({
          url: `http://${host}/${code.toLowerCase()}`,
        })),
        quorum: 2,
      })
      const { decimals } = fixture.asset
      const deposits = () =>
        fixture.database.query<{ state: string; amount: string }>(
          `select state, amount::text from transactions where kind = 'DEPOSIT'
             and amount in ($1, $2) order by amount`,
          [parseAmount(paid, decimals), parseAmount(paid, decimals) * 100n],
        )
      try {
        await fixture.open()
        const held = await fixture.available()
        const log = fixture.services.log as unknown as { error: (...args: unknown[]) => void }
        log.error = (fields, message) => {
          if (/quorum|does not return deposits/.test(String(message)))
            others.push(`${String((fields as { endpoint: string }).endpoint)}: ${String(message)}`)
        }
        lies = true
        await fixture.control({
          command: 'fund',
          asset: code,
          address: fixture.source,
          amount: paid,
        })
        await fixture.control({ command: 'mine', blocks: 1 })
        await fixture.scan()
        for (let round = 0; round < 30; round++) {
          if (round === 2 && duration === 'for a moment') lies = false
          clock.advance(11_000)
          await fixture.control({ command: 'mine', blocks: 1 })
          await fixture.scan()
          while (await fixture.step());
        }
        assert.equal((await fixture.available()) - held, parseAmount(paid, decimals))
        assert.deepEqual(
          (await deposits()).map(({ state, amount }) => [state, BigInt(amount)]),
          [
            ['CREDITED', parseAmount(paid, decimals)],
            ['REORGED', parseAmount(paid, decimals) * 100n],
          ],
        )
        assert.ok(
          others.some((each) => each.startsWith('a: an endpoint returned')),
          'a is named',
        )
        assert.deepEqual(
          others.filter((each) => !each.startsWith('a: ')),
          [],
          'no honest endpoint is named',
        )
        // The books agree with the chain, and everything can be sent.
        lies = false
        clock.advance(600_000)
        const id = await fixture.create('afterwards')
        await fixture.run()
        assert.equal((await fixture.read(id)).status, 'confirmed')
        await fixture.check()
      } finally {
        await fixture.close()
      }
    })

test('BTC: an output that one endpoint reports at a wrong position is credited at the quorum’s', async () => {
  const place = PLACES[0] as WalletAddress
  let lies = false
  const ask: typeof fetch = async (url, init) => {
    const { hostname, pathname } = new URL(String(url))
    const text = await (await fetch(`${devnet.url}${pathname}`, init)).text()
    // The outputs change their order; amounts and addresses stay the same.
    return new Response(
      lies && hostname === 'a'
        ? text
            .replaceAll('"n":1,', '"n":7,')
            .replaceAll('"n":0,', '"n":1,')
            .replaceAll('"n":7,', '"n":0,')
        : text,
    )
  }
  const fixture = new FamilyFixture(database.get(), devnet, place, clock, ask, {
    endpoints: ['a', 'b', 'c'].map((host) => ({ url: `http://${host}/btc` })),
    quorum: 2,
  })
  try {
    await fixture.open()
    const held = await fixture.available()
    const coins = () => fixture.database.query('select txid, vout from utxos order by txid')
    const coinsBefore = await coins()
    lies = true
    await fixture.control({
      command: 'fund',
      asset: 'BTC',
      address: fixture.source,
      amount: '0.25',
    })
    for (let round = 0; round < 30; round++) {
      clock.advance(11_000)
      await fixture.control({ command: 'mine', blocks: 1 })
      await fixture.scan()
      while (await fixture.step());
    }
    assert.equal((await coins()).length, coinsBefore.length + 1)
    lies = false
    clock.advance(600_000)
    await fixture.run()
    assert.equal((await fixture.available()) - held, parseAmount('0.25', 8))
    assert.equal((await coins()).length, coinsBefore.length + 1)
    // The whole amount can be sent.
    const id = await fixture.create('all', { amount: '2.2499' })
    await fixture.run()
    assert.equal((await fixture.read(id)).status, 'confirmed')
    await fixture.check()
  } finally {
    await fixture.close()
  }
})
