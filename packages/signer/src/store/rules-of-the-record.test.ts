import { loadRegistry, type Network, type Registry } from '@custody/chains'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Refusal } from '../errors.ts'
import { assertExpiry } from '../policy/expiry.ts'
import { freezeRegistry } from '../policy/frozen.ts'
import { assertMeaningsAgree, assertNotVoided, assertOneMeaning } from '../policy/identity.ts'
import { assertLeftover, leftoverRefusal } from '../policy/leftover.ts'
import type { SeenRequest, Subject, Verdict } from '../policy/order.ts'
import { Ends } from './ends.ts'
import { FuelledAddresses } from './fuelled.ts'
import type { Store } from './index.ts'
import { State } from './state.ts'
import { ETH, registry } from '../../testing/signer-cluster.ts'
import { said, TRX } from '../../testing/judging.ts'

/**
 * Unit tests of the rules that read the record: meanings of networks, expiries, unused fuel,
 * and the first registry data.
 */
const net = (code: string): Network => registry.network(code) as Network
const [XRP, XLM, BASE] = [net('XRP'), net('XLM'), net('BASE')]
const OTHER = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'

test('rule 4: refuses a reused nonce with another request, and an intent with other content', () => {
  const used = 'INTENT_CONFLICT: This API key used the nonce for another request'
  const other = 'INTENT_CONFLICT: The same sequence_id was used for another payment'
  const meaning = (seen: object | null, recorded: object | null) =>
    said(() => {
      const state = {
        seen: new Map(seen ? [[State.requestKey('k', 'n'), seen]] : []),
        intents: new Map(recorded ? [['i', recorded]] : []),
      } as unknown as State
      assertOneMeaning(state, 'k', 'n', 'i', 'c')
    })
  assert.equal(meaning(null, null), null)
  assert.equal(meaning({ intent: 'i', content: 'c' }, { content: 'c' }), null)
  assert.equal(meaning(null, { content: null }), null, 'seen, and nothing signed of it yet')
  assert.equal(meaning({ intent: 'j', content: 'c' }, null), used)
  assert.equal(meaning({ intent: 'i', content: 'd' }, null), used)
  assert.equal(meaning(null, { content: 'd' }), other)

  const seen = (more: object = {}) =>
    ({ api_key: 'k', nonce: 'n', intent: 'i', content: 'c', ...more }) as unknown as SeenRequest
  const agree = (...list: SeenRequest[]) =>
    said(() => {
      assertMeaningsAgree(list)
    })
  const two = 'INTENT_CONFLICT: Two requests of this API key have the same nonce'
  assert.deepEqual([agree(), agree(seen(), seen())], [null, null])
  assert.deepEqual(
    [agree(seen(), seen({ content: 'd' })), agree(seen(), seen({ intent: 'j' }))],
    [two, two],
  )
  assert.equal(
    agree(seen(), seen({ nonce: 'm', content: 'd' }), seen({ api_key: 'l', intent: 'j' })),
    null,
  )
  assert.equal(agree(seen({ content: 'd' }), seen({ nonce: 'm' }), seen()), two)

  const voided = (...names: string[]) =>
    said(() => {
      assertNotVoided({ voids: new Map([['v', {}]]) } as unknown as State, names)
    })
  assert.deepEqual(
    [voided(), voided('a'), voided('a', 'v')],
    [null, null, 'VOIDED: The intent was voided'],
  )
})

test('rule 10: limits an expiry by the clock and by the record', () => {
  const NOW = 1_800_000_000
  const expires = (
    network: Network,
    valid_until: number | undefined,
    ...seen: { end: number; at: number }[]
  ) => {
    const ends = new Ends()
    for (const { end, at } of seen) ends.add(end, at, true)
    try {
      assertExpiry(
        { ends: new Map(seen.length > 0 ? [[network.code, ends]] : []) } as unknown as State,
        { network, decoded: { valid_until } } as unknown as Subject,
        NOW,
      )
      return null
    } catch (error) {
      const { code, message, detail } = error as Refusal
      return { said: `${code}: ${message}`, detail }
    }
  }
  const late = (unit: string, end: number, most: number) => ({
    said: `EXPIRY: The transaction is valid until ${unit} ${end}, and at most ${most} is allowed`,
    detail: { most },
  })
  assert.deepEqual([expires(ETH, undefined), expires(ETH, 5)], [null, null])
  assert.deepEqual(expires(XLM, undefined), {
    said: 'EXPIRY: The transaction never expires',
    detail: {},
  })
  assert.deepEqual(
    [expires(XLM, NOW + 1800), expires(XLM, NOW + 1801)],
    [null, late('second', NOW + 1801, NOW + 1800)],
  )
  // The latest expiry on record is irrelevant for times in seconds, except on a local chain, whose
  // operator can move its time forward.
  const far = { end: NOW + 10_000_000, at: NOW }
  assert.deepEqual(expires(XLM, NOW + 1801, far), late('second', NOW + 1801, NOW + 1800))
  const local = 400 * 86_400
  assert.deepEqual(
    [expires(TRX, NOW + local), expires(TRX, NOW + local + 1)],
    [null, late('second', NOW + local + 1, NOW + local)],
  )
  assert.deepEqual(
    [expires(TRX, far.end + local, far), expires(TRX, far.end + local + 1, far)],
    [null, late('second', far.end + local + 1, far.end + local)],
  )
  const mainnet = { ...TRX, mode: 'mainnet' } as Network
  assert.deepEqual(
    [expires(mainnet, NOW + 86_400, far), expires(mainnet, NOW + 86_401, far)],
    [null, late('second', NOW + 86_401, NOW + 86_400)],
  )
  // Ledgers: the first expiry is unrestricted. Afterwards 100,000 more than the chain can have
  // reached since an expiry that was seen is the limit.
  assert.equal(expires(XRP, 2 ** 32 - 1), null)
  const at = (seconds: number, most: number, network = XRP) => {
    const end = { end: 500, at: NOW - seconds }
    assert.deepEqual(
      [expires(network, most, end), expires(network, most + 1, end)],
      [null, late('ledger', most + 1, most)],
    )
  }
  at(0, 100_500)
  at(10, 100_520)
  at(-10, 100_500)
  at(11, 100_505, { ...XRP, mode: 'mainnet' })
  at(30 * 86_400, 100_500 + 15 * 86_400, { ...XRP, mode: 'mainnet' })
  // Slots of the main network follow from the clock: slot 4,492,800 began at 2020-07-29T21:44:51Z
  // (Shelley's genesis).
  const ada = loadRegistry('mainnet').network('ADA') as Network
  const slot = NOW - (Date.parse('2020-07-29T21:44:51Z') / 1000 - 4_492_800)
  for (const seen of [[], [{ end: 5, at: NOW }], [{ end: slot + 10_000_000, at: NOW }]]) {
    assert.deepEqual(
      [expires(ada, slot + 86_400, ...seen), expires(ada, slot + 86_401, ...seen)],
      [null, late('slot', slot + 86_401, slot + 86_400)],
    )
  }
})

test('rule 10: only time raises the limit of expiries, not payments that use the maximum', () => {
  const [START, HEAD, SPEED, DAY] = [1_800_000_000, 90_000_000, 0.26, 86_400]
  const mostAt = (ends: Ends, now: number): number => Number(ends.reachedMost(now, 0.5)) + 100_000
  const headAt = (now: number): number => HEAD + Math.floor((now - START) * SPEED)
  const dayOfLedgers = DAY * SPEED
  const ends = new Ends()
  ends.add(HEAD + 100, START, true)
  // A hostile platform orders thirty payments within the hour, each with the latest expiry that is
  // allowed.
  for (let at = 1; at <= 30; at++) ends.add(mostAt(ends, START + at * 60), START + at * 60, true)
  assert.ok(mostAt(ends, START + 3600) - headAt(START + 3600) < 102_000)
  // For a month, one such payment is made each hour and no other: the limit grows by one day per
  // day, four for each week.
  let now = START
  for (; now < START + 30 * DAY; now += 3600) ends.add(mostAt(ends, now), now, true)
  const ahead = (mostAt(ends, now) - headAt(now)) / dayOfLedgers
  assert.ok(ahead < 30 + 5 * 4.5 + 4.5, `${ahead} days`)
  // After one honest payment the limit is four days again.
  ends.add(headAt(now) + 100, now, true)
  assert.ok(mostAt(ends, now) - headAt(now) <= 100_100)
  // An expiry that a peer reported, or one that is too low on purpose, blocks nothing for more than
  // a week.
  ends.add(1, now, false)
  assert.ok(mostAt(ends, now) > headAt(now))
  ends.add(1, now, true)
  assert.ok(mostAt(ends, now) < headAt(now))
  assert.ok(mostAt(ends, now + 8 * DAY) > headAt(now + 8 * DAY))
})

test('rule 5: a changed definition of a stored ticker or network stops the node', () => {
  const written: Record<string, string>[] = []
  const state = new State()
  const store = {
    state,
    append: (kind: string, { frozen }: { frozen: Record<string, string> }) => {
      assert.equal(kind, 'registry')
      written.push(frozen)
      for (const [name, meaning] of Object.entries(frozen)) state.frozen.set(name, meaning)
    },
  } as unknown as Store
  const part = (
    change: (asset: Registry['assets'][number]) => object = () => ({}),
    mode?: string,
  ): Registry =>
    ({
      networks: [mode ? { ...ETH, mode } : ETH],
      assets: registry
        .assetsOf('ETH')
        .slice(0, 2)
        .map((asset) => ({ ...asset, ...change(asset) })),
    }) as unknown as Registry
  const [coin, token] = registry.assetsOf('ETH')
  freezeRegistry(part(), store)
  assert.deepEqual(
    written.map((each) => Object.keys(each)),
    [['network:ETH', 'asset:ETH', `asset:${token!.asset_name}`]],
  )
  assert.equal(written[0]!['asset:ETH'], '["ETH",18,"native",null]')
  assert.equal(
    written[0]![`asset:${token!.asset_name}`],
    JSON.stringify(['ETH', token!.decimals, 'token', token!.contract_address!.toLowerCase()]),
  )
  freezeRegistry(part(), store)
  assert.equal(written.length, 1, 'nothing new')
  freezeRegistry(
    part(({ contract_address: contract }) => ({
      contract_address: contract && `0x${contract.slice(2).toUpperCase()}`,
    })),
    store,
  )
  assert.equal(written.length, 1, 'another spelling of one contract')
  const changed = (act: Registry) => () => {
    freezeRegistry(act, store)
  }
  assert.throws(changed(part(() => ({ decimals: 8 }))), {
    message:
      'The registry defines asset:ETH differently than this node: ["ETH",8,"native",null], not ["ETH",18,"native",null]',
  })
  assert.throws(
    changed(part(({ type }) => (type === 'token' ? { contract_address: OTHER } : {}))),
    /differently/,
  )
  assert.throws(
    changed({ ...part(), networks: [{ ...ETH, chain_id: 5 }] } as Registry),
    /defines network:ETH differently/,
  )
  assert.throws(changed(part(undefined, 'mainnet')), {
    message:
      'This node belongs to the network "local", with which it was first started; config.json contains mode "mainnet". ' +
      'A node of another network requires its own home',
  })
  assert.throws(
    changed({ networks: [], assets: [{ ...coin, network: 'BASE' }] } as unknown as Registry),
    /The registry defines asset:ETH differently than this node/,
  )
  freezeRegistry({ networks: [BASE], assets: [] } as unknown as Registry, store)
  assert.deepEqual(Object.keys(written[1]!), ['network:BASE'])
})

test('a sweep must move more than unused gas, and new gas funding adds only the difference', () => {
  const fuelled = new FuelledAddresses()
  fuelled.count('ETH', 'a', 'fuel', '0', 10n)
  const state = { fuelled } as unknown as State
  const said = (leftover: Verdict['leftover'], code = 'ETH') => {
    const verdict = { leftover, network: { code } } as unknown as Verdict
    try {
      assertLeftover(state, verdict)
    } catch (error) {
      return [leftoverRefusal(state, verdict), (error as Refusal).code]
    }
    return [leftoverRefusal(state, verdict), null]
  }
  const none = [null, null]
  assert.deepEqual(said(null), none)
  assert.deepEqual(said({ address: 'b', amount: 1n, least: true }), none)
  assert.deepEqual(said({ address: 'a', amount: 1n, least: true }, 'BASE'), none)
  assert.deepEqual(said({ address: 'a', amount: 11n, least: true }), none)
  assert.deepEqual(said({ address: 'a', amount: 10n, least: true }), [
    'The sweep of 10 could move the 10 of unused fuel at the address, which belong to the gas tank',
    'SWEEP_MISMATCH',
  ])
  assert.deepEqual(said({ address: 'a', amount: 5n, most: 15n, place: '1' }), none)
  assert.deepEqual(
    said({ address: 'a', amount: 15n, most: 15n, place: '0' }),
    none,
    'it replaces the earlier fuel',
  )
  assert.deepEqual(said({ address: 'a', amount: 6n, most: 15n, place: '1' }), [
    'The fuel 6 and the 10 of unused fuel at the address exceed the allowed 15',
    'FUEL_TOO_LARGE',
  ])
  assert.deepEqual(
    said({ address: 'b', amount: 16n, most: 15n, place: '1' }),
    none,
    'what a fuel may bring at all is its own rule',
  )
})
