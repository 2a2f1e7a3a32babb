import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseAmount } from '@custody/chains'
import { StrKey } from '@stellar/stellar-sdk'
import { address as bech32Address } from 'bitcoinjs-lib'
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

/** What an endpoint changes in its responses so that a payment to `own` is missing, by network. */
const OMITTED: Record<string, (text: string) => string> = {
  // Receipts that report a failure look like a payment that did not move anything.
  'ETH receipts': (text) => text.replaceAll('"status":"0x1"', '"status":"0x0"'),
  // The bytes of a transaction are bound to its id, but the list of a block's transactions is not.
  ADA: (text) =>
    text
      .replaceAll(/"tx_count":\d+/g, '"tx_count":0')
      .replaceAll(/"output":"\d+"/g, '"output":null')
      .replace(/^\[\{"tx_hash.*/s, '[]'),
  TRX: (text) => text.replaceAll('"contractRet":"SUCCESS"', '"contractRet":"REVERT"'),
}
/** The bytes that stand for an address in scripts and envelopes, as hex. */
const bytesIn: Record<string, (address: string) => string> = {
  BTC: (address) => Buffer.from(bech32Address.fromBech32(address).data).toString('hex'),
  XLM: (address) => Buffer.from(StrKey.decodeEd25519PublicKey(address)).toString('hex'),
}
/** Replaces an address by another one, as text, in hex and in Base64. */
function hide(code: string, text: string, own: string, other: string): string {
  const told = text.replaceAll(new RegExp(own, 'gi'), other)
  const bytes = bytesIn[code]
  if (!bytes) return told
  const [from, to] = [bytes(own), bytes(other)]
  return told.replaceAll(from, to).replaceAll(/"([A-Za-z0-9+/]{40,}={0,2})"/g, (all, base64) => {
    const hex = Buffer.from(base64, 'base64').toString('hex')
    return hex.includes(from)
      ? `"${Buffer.from(hex.replaceAll(from, to), 'hex').toString('base64')}"`
      : all
  })
}

/** Endpoints, those that omit the payment, the round after which they no longer do, what is credited. */
const OMISSIONS = [
  { of: 'abc', lying: 'a', until: Infinity, isCredited: true, named: ['a'] },
  // Two of three agree on the lie.
  { of: 'abc', lying: 'ab', until: Infinity, isCredited: false, named: [] },
  { of: 'ab', lying: 'a', until: 20, isCredited: true, named: ['a'] },
  { of: 'ab', lying: 'a', until: Infinity, isCredited: false, named: ['a'] },
]
for (const name of [...PLACES.map(({ code }) => code), 'ETH receipts'])
  for (const { of, lying, until, isCredited, named } of OMISSIONS)
    test(`${name}: ${lying} of ${of} omits a deposit until round ${until}; it is ${isCredited ? '' : 'not '}credited`, async () => {
      const code = name.split(' ')[0] as string
      const place = PLACES.find((each) => each.code === code) as WalletAddress
      let liars = ''
      let changed = 0
      const ask: typeof fetch = async (url, init) => {
        const { hostname, pathname, search } = new URL(String(url))
        const response = await fetch(`${devnet.url}${pathname}${search}`, init)
        const text = await response.text()
        const told = liars.includes(hostname)
          ? (OMITTED[name]?.(text) ?? hide(code, text, fixture.source, place.to))
          : text
        if (told !== text) changed++
        return new Response(told, { status: response.status })
      }
      const fixture: FamilyFixture = new FamilyFixture(database.get(), devnet, place, clock, ask, {
        endpoints: [...of].map((host) => ({ url: `http://${host}/${code.toLowerCase()}` })),
        quorum: 2,
      })
      const logged = new Set<string>()
      try {
        await fixture.open()
        const held = await fixture.available()
        const log = fixture.services.log as unknown as { error: (...args: unknown[]) => void }
        log.error = (fields, message) => {
          if (message === 'an endpoint does not return deposits that another returned')
            logged.add((fields as { endpoint: string }).endpoint)
        }
        const paid = parseAmount('7.25', fixture.asset.decimals)
        liars = lying
        await fixture.control({
          command: 'fund',
          asset: code,
          address: fixture.source,
          amount: '7.25',
        })
        for (let round = 0; round < 60; round++) {
          if (round === until) liars = ''
          clock.advance(11_000)
          await fixture.control({ command: 'mine', blocks: 1 })
          await fixture.scan()
          while (await fixture.step());
        }
        assert.ok(changed > 0, 'something was omitted')
        assert.equal((await fixture.available()) - held, isCredited ? paid : 0n)
        assert.deepEqual([...logged], named)
        liars = ''
        clock.advance(600_000)
        const id = await fixture.create('afterwards')
        await fixture.run()
        assert.equal((await fixture.read(id)).status, 'confirmed')
        if (isCredited) await fixture.check()
      } finally {
        await fixture.close()
      }
    })

/** What an endpoint changes so that an account has sent `nonce` transactions, by network. */
const COUNTED: Record<string, (text: string, asked: string, nonce: number) => string> = {
  ETH: (text, asked, nonce) =>
    asked.includes('eth_getTransactionCount')
      ? text.replaceAll(/"result":"0x[0-9a-f]+"/g, `"result":"0x${nonce.toString(16)}"`)
      : text,
  XRP: (text, asked, nonce) =>
    asked.includes('account_info')
      ? text.replaceAll(/"Sequence":\d+/g, `"Sequence":${nonce}`)
      : text,
}
for (const [code, lie] of Object.entries(COUNTED))
  for (const nonce of [0, 65_535])
    test(`${code}: transfers are made while one of three endpoints states the nonce ${nonce}`, async () => {
      const place = PLACES.find((each) => each.code === code) as WalletAddress
      let lies = false
      let changed = 0
      const ask: typeof fetch = async (url, init) => {
        const { hostname, pathname } = new URL(String(url))
        const text = await (await fetch(`${devnet.url}${pathname}`, init)).text()
        const told = lies && hostname === 'a' ? lie(text, String(init?.body), nonce) : text
        if (told !== text) changed++
        return new Response(told)
      }
      const fixture = new FamilyFixture(database.get(), devnet, place, clock, ask, {
        endpoints: ['a', 'b', 'c'].map((host) => ({ url: `http://${host}/${code.toLowerCase()}` })),
        quorum: 2,
      })
      try {
        await fixture.open()
        lies = true
        for (const name of ['first', 'second']) {
          const id = await fixture.create(name)
          await fixture.run()
          assert.equal((await fixture.read(id)).status, 'confirmed')
          assert.equal(await fixture.onChain(id), 1)
        }
        assert.ok(changed > 0, 'a nonce was changed')
        lies = false
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
