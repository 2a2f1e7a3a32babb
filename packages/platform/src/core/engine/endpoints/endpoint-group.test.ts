import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ChainError,
  RpcRefused,
  RpcUnavailable,
  type Asset,
  type BroadcastResult,
  type ChainClient,
  type ChainTip,
  type EndpointHead,
  type TransactionStatus,
} from '@custody/chains'
import { EndpointGroup, oneEndpoint, type EndpointState } from './group.ts'

/** An endpoint whose behaviour a test sets. It records each request. */
class Endpoint implements ChainClient {
  readonly name: string
  readonly requests: string[]
  isAway = false
  isForeign = false
  height = 100
  dead = true
  transaction: { hash: string; raw: string } | null = null
  sent: BroadcastResult = { kind: 'accepted' }
  state: TransactionStatus = { state: 'absent' }
  refuses = false

  constructor(name: string, calls: string[]) {
    this.name = name
    this.requests = calls
  }

  #answer<T>(what: string, value: T): T {
    this.requests.push(`${this.name} ${what}`)
    if (this.isAway) throw new RpcUnavailable(`${this.name} is away`)
    if (this.refuses) throw new RpcRefused(-32000, `${this.name} refuses`)
    return value
  }

  async probe() {
    this.#answer('probe', null)
    if (this.isForeign) throw new ChainError('WRONG_NETWORK', `${this.name} serves another network`)
  }

  async tip(): Promise<ChainTip> {
    return this.#answer('tip', { height: this.height, hash: `${this.height}`, finalHeight: null })
  }
  async head(): Promise<EndpointHead> {
    return { height: this.height, timeMs: null, lacks: null }
  }
  async block(height: number) {
    return this.#answer('block', {
      height,
      hash: `${height}`,
      parent: `${height - 1}`,
      txids: [],
      transfers: [],
    })
  }
  async status() {
    return this.#answer('status', this.state)
  }
  async balances(addresses: readonly string[]) {
    return this.#answer(
      'balances',
      addresses.map(() => 1n),
    )
  }
  async broadcast() {
    return this.#answer('broadcast', this.sent)
  }
  async isDead() {
    return this.#answer('isDead', this.dead)
  }
  async findSigned() {
    return this.#answer('findSigned', this.transaction)
  }
}

function staged(names: string[], quorum = 1) {
  const requests: string[] = []
  const clock = { now: 1_000_000 }
  const endpoints = names.map((name) => new Endpoint(name, requests))
  const states: Record<string, EndpointState> = {}
  const warnings: string[] = []
  const group = new EndpointGroup({
    network: { code: 'ETH', block_ms: 12_000 },
    quorum,
    environment: { now: () => clock.now },
    endpoints: names.map((name) => ({ name, endpoint: { url: `https://${name}` }, fetch })),
    watch: {
      changed: (name, state) => {
        states[name] = state
      },
      warn: ({ endpoint, reason }, message) =>
        warnings.push(`${String(endpoint)}: ${message}: ${String(reason)}`),
    },
  })
  let made = 0
  const client: ChainClient = group.client<ChainClient>(() => endpoints[made++] as Endpoint)
  const took = async (ask: () => Promise<unknown>): Promise<string[]> => {
    requests.length = 0
    await ask()
    return requests.filter((each) => !each.endsWith('probe'))
  }
  /** Waits until pending work that no caller awaits has ended. */
  const settled = async () => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  const used = () =>
    Object.entries(states)
      .filter(([, { isInUse }]) => isInUse)
      .map(([name]) => name)
  return {
    asked: requests,
    clock,
    endpoints: endpoints as [Endpoint, ...Endpoint[]],
    group,
    client,
    states,
    warnings,
    took,
    settled,
    used,
  }
}

test('a single endpoint is neither probed, compared nor replaced', async () => {
  const { client, group, took } = staged(['a'])
  assert.deepEqual(await took(() => client.tip()), ['a tip'])
  assert.equal(group.agreement, null)
})

test('balances of many addresses are those of the first endpoint that answers, also with a quorum', async () => {
  for (const quorum of [1, 2]) {
    const { client, endpoints, took } = staged(['a', 'b', 'c'], quorum)
    const ask = async () =>
      assert.deepEqual(await client.balances?.(['x', 'y'], {} as Asset), [1n, 1n])
    assert.deepEqual(await took(ask), ['a balances'])
    endpoints[0].isAway = true
    assert.deepEqual(await took(ask), ['a balances', 'b balances'])
  }
})

test('queries the next endpoint if the first fails, and the first again once it answers', async () => {
  const {
    client,
    endpoints: [a],
    took,
    clock,
    settled,
    used,
    states,
  } = staged(['a', 'b'])
  assert.deepEqual(await took(() => client.status('x')), ['a status'])
  a.isAway = true
  a.requests.length = 0
  assert.deepEqual(await took(() => client.status('x')), ['a status', 'b status'])
  assert.deepEqual(
    await took(() => client.status('x')),
    ['b status'],
    'one that is down is not waited for each time',
  )
  assert.deepEqual([used(), states['a']?.isUp], [['b'], false])
  a.isAway = false
  clock.now += 9000
  assert.deepEqual(await took(() => client.status('x')), ['b status'])
  clock.now += 2000
  await client.status('x')
  await settled()
  assert.deepEqual(used(), ['a'])
  assert.deepEqual(await took(() => client.status('x')), ['a status'])
})

test('a refusal counts as an answer, so no other endpoint is queried', async () => {
  const {
    client,
    endpoints: [a],
    took,
  } = staged(['a', 'b'])
  await client.probe()
  a.refuses = true
  assert.deepEqual(await took(() => assert.rejects(client.status('x'), /a refuses/)), ['a status'])
})

test('if every endpoint fails, reports the last reason, and uses the first that answers again', async () => {
  const { client, endpoints, took, used } = staged(['a', 'b', 'c'])
  for (const each of endpoints) each.isAway = true
  await took(() => assert.rejects(client.status('x'), /is away/))
  endpoints[2]!.isAway = false
  await client.status('x')
  assert.deepEqual(used(), ['c'])
})

test('detects an endpoint of another network with the first query, and never uses it', async () => {
  const {
    client,
    endpoints: [a, b],
    took,
    used,
    warnings,
  } = staged(['a', 'b'])
  b!.isForeign = true
  await client.probe()
  assert.match(warnings.join('\n'), /b: a chain endpoint serves another network/)
  a.isAway = true
  assert.deepEqual(await took(() => assert.rejects(client.status('x'), /a is away/)), ['a status'])
  a.isAway = false
  await client.status('x')
  assert.deepEqual(used(), ['a'])
  const all = staged(['a', 'b'])
  for (const each of all.endpoints) each.isForeign = true
  await assert.rejects(all.client.probe(), { code: 'WRONG_NETWORK' })
  await assert.rejects(all.client.status('x'), /all of its endpoints serve another network/)
})

test('replaces an endpoint whose head stalls only if another endpoint’s head advances', async () => {
  const {
    client,
    endpoints: [a, b],
    clock,
    settled,
    used,
    warnings,
  } = staged(['a', 'b'])
  b!.height = 1_000_000
  const minute = async () => {
    clock.now += 60_000
    await client.status('x')
    await settled()
  }
  for (let minutes = 0; minutes < 6; minutes++) {
    a.height++
    await minute()
  }
  assert.deepEqual(used(), ['a'])
  for (let minutes = 0; minutes < 6; minutes++) await minute()
  assert.deepEqual(used(), ['a'], 'the chain may stand still')
  for (let minutes = 0; minutes < 4; minutes++) {
    b!.height++
    await minute()
  }
  assert.deepEqual(used(), ['b'])
  assert.match(
    warnings.join('\n'),
    /a: a chain endpoint is down; another one is used: its head stays at 106 while other endpoints advance/,
  )
  await minute()
  assert.deepEqual(used(), ['b'], 'it answers, and is not back by that')
  a.height++
  await minute()
  await minute()
  assert.deepEqual(used(), ['a'])
})

test('queries of one view use only its endpoint, and failures count against that endpoint', async () => {
  const {
    client,
    endpoints: [a],
    took,
    used,
  } = staged(['a', 'b'])
  const view = await oneEndpoint(client)
  await view.tip()
  a.isAway = true
  assert.deepEqual(await took(() => assert.rejects(view.status('x'), /a is away/)), ['a status'])
  assert.deepEqual(used(), ['b'])
  assert.deepEqual(await took(async () => (await oneEndpoint(client)).status('x')), ['b status'])
})

test('broadcasts to all endpoints; one acceptance suffices, and a refusal needs all of them', async () => {
  const {
    client,
    endpoints: [a, b],
    took,
  } = staged(['a', 'b'])
  await client.probe()
  a.sent = { kind: 'rejected', reason: 'full' }
  assert.deepEqual(
    await took(async () => assert.deepEqual(await client.broadcast('00'), { kind: 'accepted' })),
    ['a broadcast', 'b broadcast'],
  )
  b!.isAway = true
  assert.deepEqual(await client.broadcast('00'), { kind: 'unknown', reason: 'b is away' })
  b!.isAway = false
  b!.sent = { kind: 'rejected', reason: 'low fee' }
  assert.deepEqual(await staged(['a', 'b']).client.broadcast('00'), { kind: 'accepted' })
  assert.equal((await client.broadcast('00')).kind, 'rejected')
})

test('a transaction is dead, or was not published under another signature, only by quorum', async () => {
  const {
    client,
    endpoints: [a, b, c],
  } = staged(['a', 'b', 'c'], 2)
  const dying = client as Endpoint
  assert.equal(await dying.isDead(), true)
  b!.dead = false
  assert.equal(
    await dying.isDead(),
    true,
    'one that is behind, or keeps too little, to prove it says nothing',
  )
  for (const state of [
    { state: 'mempool' },
    { state: 'included', height: 7, blockHash: '7', succeeded: true, fee: null },
  ] as const) {
    b!.state = state
    assert.equal(await dying.isDead(), false, 'one that shows it is enough')
  }
  c!.dead = false
  b!.state = { state: 'absent' }
  assert.equal(await dying.isDead(), false, 'one alone proves nothing')
  c!.dead = true
  b!.isAway = true
  assert.equal(await dying.isDead(), true, 'the two others')
  c!.isAway = true
  await assert.rejects(
    dying.isDead(),
    /ETH: 1 of its endpoints respond, and 2 must agree \([bc] is away\)/,
  )
  b!.isAway = c!.isAway = false
  assert.equal(await dying.findSigned(), null)
  b!.transaction = { hash: 'h', raw: '00' }
  assert.deepEqual(await dying.findSigned(), { hash: 'h', raw: '00' })
  a.isAway = true
  assert.deepEqual(await dying.findSigned(), { hash: 'h', raw: '00' })
})

test('every endpoint that answers has one vote, and fewer votes than the quorum are an error', async () => {
  const {
    group,
    endpoints: [a, b, c],
  } = staged(['a', 'b', 'c'], 2)
  const agreement = group.agreement
  assert.ok(agreement)
  const heights = async () => {
    const votes: string[] = []
    for await (const { name, answer } of agreement.votes((client) => client.tip()))
      votes.push(`${name} ${answer.height}`)
    return votes
  }
  b!.height = 7
  assert.deepEqual(await heights(), ['a 100', 'b 7', 'c 100'])
  a.isAway = true
  assert.deepEqual(await heights(), ['b 7', 'c 100'])
  c!.isForeign = true
  c!.isAway = true
  await assert.rejects(heights(), /: 1 of its endpoints respond, and 2 must agree \(/)
})

test('does not use a distrusted endpoint for ten minutes, although it answers', async () => {
  const { client, group, clock, settled, used } = staged(['a', 'b'], 2)
  const view = await oneEndpoint(client)
  await view.tip()
  group.agreement?.distrust(view, 'it returns another block')
  assert.deepEqual(used(), ['b'])
  for (let minutes = 0; minutes < 9; minutes++) {
    clock.now += 60_000
    await client.status('x')
    await settled()
    assert.deepEqual(used(), ['b'])
  }
  clock.now += 61_000
  await client.status('x')
  await settled()
  assert.deepEqual(used(), ['a'])
})

test('retries a failed vote after ten seconds, and then at growing intervals', () => {
  const { group, clock } = staged(['a', 'b'], 2)
  const agreement = group.agreement
  assert.ok(agreement)
  const requests = (isSlower: boolean) => {
    let count = 0
    for (let second = 0; second < 3600; second++) {
      if (agreement.isDue(`asked-${isSlower}`, isSlower)) count++
      clock.now += 1000
    }
    return count
  }
  assert.equal(requests(false), 360)
  assert.equal(requests(true), 16)
  clock.now += 601_000
  assert.ok(agreement.isDue('asked-true', true))
  clock.now += 10_000
  assert.ok(
    agreement.isDue('asked-true', true),
    'it starts again if it was not requested in between',
  )
  clock.now -= 3_600_000
  assert.ok(agreement.isDue('asked-true', true), 'a clock that is put back holds nothing up')
})

test('concurrent failures count once, so the endpoint is tried again after ten seconds', async () => {
  const {
    client,
    endpoints: [a],
    clock,
    settled,
    used,
  } = staged(['a', 'b'])
  await client.probe()
  a.isAway = true
  await Promise.all(Array.from({ length: 10 }, () => client.status('x')))
  assert.deepEqual(used(), ['b'])
  a.isAway = false
  clock.now += 10_000
  await client.status('x')
  await settled()
  assert.deepEqual(used(), ['a'])
})
