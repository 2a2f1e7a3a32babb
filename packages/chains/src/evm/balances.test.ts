// Balances of many addresses by one call: what endpoints answer, and what happens if they refuse.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  BALANCES_MAX,
  ChainError,
  EvmClient,
  RpcRefused,
  RpcUnavailable,
  type Unreadable,
} from '../index.ts'
import { ETH, ETH_ASSETS, USDT } from '../../testing/support.ts'

const NATIVE = ETH_ASSETS.find(({ type }) => type === 'native')!
const addressAt = (at: number) => `0x${at.toString(16).padStart(40, '0')}`
const addresses = (count: number) => Array.from({ length: count }, (_, at) => addressAt(at + 1))
const word = (value: number) => value.toString(16).padStart(64, '0')
const REFUSED = { error: { code: -32000, message: 'contract creation is not allowed' } }

type Call = { method: string; params: [{ to?: string; data: string }, string] }

/**
 * A node whose balances are the numbers of the addresses.
 * @param together its answer to the call of init code
 */
function nodeOf(together: (count: number) => unknown) {
  const calls: Call[] = []
  const reports: Unreadable[] = []
  let pending = 0
  let most = 0
  let now = 0
  const client = new EvmClient(
    ETH,
    ETH_ASSETS,
    { url: 'http://node' },
    async (_url, init) => {
      const call = JSON.parse(String(init.body)) as Call
      calls.push(call)
      most = Math.max(most, ++pending)
      await new Promise((resolve) => setImmediate(resolve))
      pending--
      const [first] = call.params
      if (call.method === 'eth_getBalance')
        return Response.json({ result: `0x${BigInt(String(first)).toString(16)}` })
      if (first.to !== undefined) return Response.json({ result: `0x${first.data.slice(-64)}` })
      const answered = together(first.data.length)
      return Response.json(
        typeof answered === 'object' ? answered : { jsonrpc: '2.0', result: answered },
      )
    },
    { report: (each) => reports.push(each), now: () => now },
  )
  return { client, calls, reports, most: () => most, at: (ms: number) => (now = ms) }
}

test('one call without `to` returns all balances in the order of the addresses', async () => {
  const { client, calls } = nodeOf(() => `0x${word(7)}${word(0)}${word(9)}`)
  assert.deepEqual(await client.balances(addresses(3), NATIVE), [7n, 0n, 9n])
  assert.deepEqual(await client.balances(addresses(3), USDT, 255), [7n, 0n, 9n])
  assert.deepEqual(
    calls.map(({ method, params: [{ to }, block] }) => [method, to, block]),
    [
      ['eth_call', undefined, 'latest'],
      ['eth_call', undefined, '0xff'],
    ],
  )
  for (const { params } of calls)
    assert.ok(
      params[0].data.endsWith(
        addresses(3)
          .map((each) => each.slice(2))
          .join(''),
      ),
    )
  assert.deepEqual(await client.balances([], NATIVE), [])
  assert.equal(calls.length, 2)
})

test('an answer of another length, or not in hex, is no balance', async () => {
  for (const answer of [
    `0x${word(1)}`,
    `0x${word(1)}${word(2)}${word(3)}`,
    `0x${word(1)}${word(2)}00`,
    `0x${word(1)}${'g'.repeat(64)}`,
    12,
    true,
  ]) {
    const { client, calls, reports } = nodeOf(() => answer)
    await assert.rejects(client.balances(addresses(2), NATIVE), RpcUnavailable)
    assert.deepEqual([calls.length, reports.length], [1, 0])
  }
})

test('the client refuses a longer list, and an address that would shift the others', async () => {
  const { client, calls } = nodeOf(() => '0x')
  const refused = (list: string[], code: string) =>
    assert.rejects(
      client.balances(list, NATIVE),
      (error) =>
        error instanceof ChainError && !(error instanceof RpcUnavailable) && error.code === code,
    )
  await refused(addresses(BALANCES_MAX + 1), 'TOO_MANY_ADDRESSES')
  await refused([addressAt(1), addressAt(2).slice(0, -2)], 'ADDRESS')
  assert.equal(calls.length, 0)
})

for (const [name, answer] of [
  ['refuses the call', REFUSED],
  ['returns nothing for init code', '0x'],
] as const) {
  test(`an endpoint that ${name} is asked for each balance, eight at a time, for an hour`, async () => {
    const { client, calls, reports, most, at } = nodeOf(() => answer)
    const expected = addresses(20).map((_, index) => BigInt(index + 1))
    for (const asset of [NATIVE, USDT]) {
      calls.length = 0
      reports.length = 0
      assert.deepEqual(await client.balances(addresses(20), asset), expected)
      assert.equal(calls.length, 21)
      assert.deepEqual(await client.balances(addresses(20), asset, 5), expected)
      assert.equal(calls.length, 41)
      assert.ok(calls.slice(21).every(({ params: [, block] }) => block === '0x5'))
      assert.deepEqual(
        reports.map(({ kind }) => kind),
        ['method'],
      )
    }
    assert.equal(most(), 8)
    calls.length = 0
    at(3_599_999)
    await client.balances(addresses(1), NATIVE)
    assert.equal(calls.length, 1)
    at(3_600_000)
    await client.balances(addresses(1), NATIVE)
    assert.equal(calls.length, 3)
  })
}

test('a refusal is not remembered if the endpoint refuses single balances too', async () => {
  let refuses = true
  const client = new EvmClient(ETH, ETH_ASSETS, { url: 'http://node' }, async () =>
    Response.json(refuses ? REFUSED : { result: `0x${word(3)}${word(4)}` }),
  )
  await assert.rejects(client.balances(addresses(2), NATIVE), RpcRefused)
  refuses = false
  assert.deepEqual(await client.balances(addresses(2), NATIVE), [3n, 4n])
})

test('a token that answers other than one word is an error, also by single requests', async () => {
  for (const result of ['0x', `0x${word(0)}${word(0)}`, '0x0']) {
    const client = new EvmClient(ETH, ETH_ASSETS, { url: 'http://node' }, async (_url, init) => {
      const { params } = JSON.parse(String(init.body)) as Call
      return Response.json(params[0].to === undefined ? REFUSED : { result })
    })
    await assert.rejects(client.balances(addresses(2), USDT), RpcUnavailable)
  }
})
