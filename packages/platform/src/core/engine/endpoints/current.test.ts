import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ChainError,
  RpcRefused,
  RpcUnavailable,
  type ChainClient,
  type EndpointHead,
  type Network,
} from '@custody/chains'
import { agreedRates, BlockAges, NoCurrentEndpoint, type KnownOfNetwork } from './belief.ts'
import { ROUNDS } from './current.ts'
import { EndpointGroup } from './group.ts'
import { headLoop } from './head-loop.ts'

/** Answers about an old state: which end a transfer, and which endpoints they are believed of. */

const NOW = Date.UTC(2030, 0, 15, 12)
const FRESH_MS = NOW - 12_000

interface Endpoint {
  head: EndpointHead
  /** Heads of the next answers; then `head`. */
  heads: EndpointHead[]
  /** What the endpoint would say to a transfer; null: it allows it. */
  refuses: string | null
  rate: bigint
  refusesRates: boolean
  isDead: boolean
  isAway: boolean
  asked: string[]
}

const at = (height: number, timeMs: number | null = FRESH_MS, lacks: string | null = null) => ({
  height,
  timeMs,
  lacks,
})

function staged(
  count: number,
  {
    quorum = 1,
    code = 'ETH',
    ages,
    clock = { now: NOW },
  }: { quorum?: number; code?: string; ages?: BlockAges; clock?: { now: number } } = {},
) {
  const known: KnownOfNetwork = { scanned: 100, trustedUntil: null, contradiction: null }
  const endpoints = Array.from({ length: count }, (): Endpoint => ({
    head: at(100),
    heads: [],
    refuses: null,
    rate: 10n,
    refusesRates: false,
    isDead: true,
    isAway: false,
    asked: [],
  }))
  const clientOf = (of: Endpoint) => {
    const answer = <T>(what: string, value: T): Promise<T> => {
      of.asked.push(what)
      return of.isAway ? Promise.reject(new RpcUnavailable('away')) : Promise.resolve(value)
    }
    return {
      probe: () => answer('probe', undefined),
      tip: () => answer('tip', { height: of.head.height, hash: 'h', finalHeight: null }),
      head: () => answer('head', of.heads.shift() ?? of.head),
      block: () => answer('block', null),
      status: () => answer('status', { state: 'absent' }),
      refusal: () => answer('refusal', of.refuses),
      isDead: () => answer('isDead', of.isDead),
      feeRates: async () => {
        const rates = await answer('feeRates', { medium: of.rate })
        if (of.refusesRates) throw new RpcRefused(-32_601, 'method not found')
        return rates
      },
    }
  }
  const names = endpoints.map((_, n) => 'abc'[n] as string)
  const group = new EndpointGroup({
    network: { code, block_ms: 12_000, stale_after_s: 240 },
    quorum,
    environment: { now: () => clock.now },
    endpoints: names.map((name) => ({ name, endpoint: { url: `https://${name}` }, fetch })),
    watch: { changed: () => undefined, warn: () => undefined },
    known: () => Promise.resolve(known),
    ...(ages ? { ages } : {}),
  })
  let made = 0
  const client = group.client<ChainClient>(
    () => clientOf(endpoints[made++] as Endpoint) as unknown as ChainClient,
  ) as unknown as ReturnType<typeof clientOf>
  return {
    known,
    endpoints: endpoints as [Endpoint, Endpoint, Endpoint],
    client,
    group,
    /** Returns why the transfer ends; null if it does not. */
    ended: () =>
      group.belief.assure(
        () => client.refusal(),
        (refusal) => refusal !== null,
      ),
  }
}

const BEHIND: [string, EndpointHead, RegExp][] = [
  ['below what was read', at(99), /its newest block is 99, and block 100 was already read/],
  ['at the start of a sync', at(0, Date.UTC(1970, 0, 2)), /newest block 0 is 21\d\d\d days old/],
  ['standing still', at(100, NOW - 241_000), /newest block 100 is 4 minutes old/],
  ['ahead of the clock', at(100, NOW + 241_000), /4 minutes in the future by the clock/],
  ['without an index', at(100, FRESH_MS, 'no index of transactions'), /no index of transactions/],
]

for (const [what, head, reason] of BEHIND) {
  test(`an endpoint ${what} ends no transfer, prices none, and proves none dead`, async () => {
    const one = staged(1)
    one.endpoints[0].head = head
    one.endpoints[0].refuses = 'insufficient funds'
    const refused = (error: unknown) =>
      error instanceof NoCurrentEndpoint && reason.test((error as Error).message)
    await assert.rejects(one.ended(), refused)
    assert.ok(!one.endpoints[0].asked.includes('refusal'), 'it is not even asked')
    await assert.rejects(one.client.isDead(), refused)
    await assert.rejects(one.client.feeRates(), refused)
    // Blocks, inclusion and finality are read regardless.
    await Promise.all([one.client.tip(), one.client.block(), one.client.status()])

    const [state] = await one.group.belief.states()
    assert.match(String(state?.doubt), reason)

    const two = staged(2)
    two.endpoints[0].head = head
    two.endpoints[0].refuses = 'insufficient funds'
    assert.equal(await two.ended(), null, 'the second endpoint is current, and allows it')
    two.endpoints[1].refuses = 'insufficient funds'
    assert.equal(await two.ended(), 'insufficient funds')
    two.endpoints[0].rate = 1n
    assert.deepEqual(await two.client.feeRates(), { medium: 10n })
    assert.equal(await two.client.isDead(), true)
    two.endpoints[1].isAway = true
    await assert.rejects(two.ended(), refused)
    await assert.rejects(two.client.feeRates(), RpcUnavailable)
    await assert.rejects(two.client.isDead(), RpcUnavailable)
  })
}

test('an endpoint that is behind ranks after a current one although its head moves, until it is current', async () => {
  const clock = { now: NOW }
  const { client, endpoints } = staged(2, { clock })
  const [a, b] = endpoints
  const isUsed = async () => {
    clock.now += 61_000
    for (const each of endpoints) each.head = { ...each.head, height: each.head.height + 20 }
    b.head.timeMs = clock.now
    await client.tip()
    for (let turn = 0; turn < 50; turn++) await Promise.resolve()
    for (const each of endpoints) each.asked = []
    await client.status()
    return endpoints.map(({ asked }) => asked.includes('status'))
  }
  assert.deepEqual(await isUsed(), [true, false])
  a.head = at(5, Date.UTC(1970, 0, 2))
  assert.deepEqual(await isUsed(), [false, true], 'its head is 20 blocks higher than before')
  assert.deepEqual(await isUsed(), [false, true])
  // Ten blocks below is no reason.
  a.head = at(90 - 20, clock.now + 61_000)
  await isUsed()
  assert.deepEqual(await isUsed(), [true, false])
})

test('an endpoint that falls behind while it is asked is not believed', async () => {
  const { ended, endpoints } = staged(1)
  endpoints[0].refuses = 'insufficient funds'
  endpoints[0].heads = [at(100), at(99)]
  await assert.rejects(ended(), NoCurrentEndpoint)
  assert.equal(await ended(), 'insufficient funds', 'by itself it is believed again')
})

test('with a quorum, a transfer ends only by as many current endpoints', async () => {
  const { ended, endpoints, group, client } = staged(3, { quorum: 2 })
  const [a, b, c] = endpoints
  a.refuses = 'execution reverted'
  assert.equal(await ended(), null)
  b.refuses = c.refuses = 'execution reverted'
  assert.equal(await ended(), 'execution reverted')
  b.head = c.head = at(99)
  await assert.rejects(ended(), /ETH: fewer than 2 endpoints are current \(b: .*; c: /)
  // Each request of one question goes to one endpoint.
  b.head = c.head = at(100)
  for (const each of endpoints) each.asked = []
  await group.belief.assure(
    async () => [await client.refusal(), await client.refusal()],
    () => true,
  )
  assert.deepEqual(
    endpoints.map(({ asked }) => asked.filter((each) => each === 'refusal').length),
    [2 * ROUNDS, 2 * ROUNDS, 0],
  )
})

test('the loop of a network fails while every endpoint that answers is behind', async () => {
  const { endpoints, group, known } = staged(2)
  const [a, b] = endpoints
  let isFollowed = true
  const network = { code: 'ETH' } as Network
  const loop = headLoop({ network, belief: group.belief }, () => isFollowed)
  const { signal } = new AbortController()
  a.head = at(0, 0)
  assert.equal(await loop.run(signal), false, 'the second endpoint is current')
  b.isAway = true
  await assert.rejects(
    async () => loop.run(signal),
    /wait for a current endpoint \(a: it is behind: /,
  )
  isFollowed = false
  assert.equal(await loop.run(signal), false)
  isFollowed = true
  known.trustedUntil = new Date(NOW + 1)
  assert.equal(await loop.run(signal), false, 'the operator trusts it')
  known.trustedUntil = null
  a.isAway = true
  assert.equal(await loop.run(signal), false, 'the scan reports it')
})

test('the operator trusts endpoints that seem to be behind until a time', async () => {
  const { ended, endpoints, known, group, client } = staged(1)
  endpoints[0].head = at(100, NOW - 86_400_000)
  endpoints[0].refuses = 'insufficient funds'
  known.trustedUntil = new Date(NOW + 1)
  assert.equal(await ended(), 'insufficient funds')
  assert.deepEqual(await client.feeRates(), { medium: 10n })
  const [state] = await group.belief.states()
  assert.match(String(state?.doubt), /24 hours old/, 'it is still reported')
  known.trustedUntil = new Date(NOW)
  await assert.rejects(ended(), NoCurrentEndpoint)
})

test('a network without a limit of age is judged by what was read only', async () => {
  const { ended, endpoints, known } = staged(1)
  endpoints[0].head = at(100, null)
  endpoints[0].refuses = 'insufficient funds'
  assert.equal(await ended(), 'insufficient funds')
  known.scanned = null
  endpoints[0].head = at(0, null)
  assert.equal(await ended(), 'insufficient funds')
})

test('if three networks seem equally late, the clock of the host is named', async () => {
  const ages = new BlockAges()
  const networks = ['BTC', 'ETH', 'XRP'].map((code) => staged(1, { code, ages }))
  for (const [n, { endpoints }] of networks.entries())
    endpoints[0].head = at(100, NOW + 600_000 + n * 20_000)
  const said = async () =>
    Promise.all(networks.map(async ({ group }) => String((await group.belief.states())[0]?.doubt)))
  await said()
  for (const each of await said())
    assert.match(each, /^CLOCK: .*far in the future \(1\d minutes\): correct the clock/)
  // Networks that are late by different times have different reasons.
  for (const [n, { endpoints }] of networks.entries())
    endpoints[0].head = at(100, NOW - 600_000 * (n + 1))
  await said()
  for (const each of await said()) assert.match(each, /^it is behind: /)
})

test('the fee rates of several endpoints are their median, and two must be alike', async () => {
  const rates = (...all: bigint[]) => agreedRates(all.map((medium) => ({ low: 1n, medium })))
  assert.deepEqual(rates(7n), { low: 1n, medium: 7n })
  assert.deepEqual(rates(7n, 20n), { low: 1n, medium: 20n })
  assert.equal(rates(7n, 24n), null)
  for (const liar of [0n, 10n ** 30n])
    assert.deepEqual(rates(10n, liar, 11n)?.medium, liar === 0n ? 10n : 11n)

  const { client, endpoints } = staged(3)
  const [a, b, c] = endpoints
  a.rate = 10n ** 12n
  assert.deepEqual(await client.feeRates(), { medium: 10n })
  c.isAway = true
  assert.deepEqual(await client.feeRates(), { medium: 10n }, 'the rates that were used last')
  b.rate = 10n ** 12n / 2n
  assert.deepEqual(await client.feeRates(), { medium: 10n ** 12n })
  // An endpoint that refuses the method, or is down, neither prices nor delays.
  const two = staged(2)
  two.endpoints[1].refusesRates = true
  assert.deepEqual(await two.client.feeRates(), { medium: 10n })
  two.endpoints[1].isAway = true
  await two.client.feeRates()
  two.endpoints[1].asked = []
  await two.client.feeRates()
  assert.deepEqual(two.endpoints[1].asked, [])
  two.endpoints[0].refusesRates = true
  await assert.rejects(two.client.feeRates(), ChainError)

  const fresh = staged(2)
  fresh.endpoints[0].rate = 10n ** 12n
  await assert.rejects(fresh.client.feeRates(), /differ too much/)
})
