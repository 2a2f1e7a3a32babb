import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, beforeEach, test } from 'node:test'
import { loadRegistry, type Asset } from '@custody/chains'
import type { Chain } from '../../core/engine/chain.ts'
import type { Networks } from '../../core/engine/networks.ts'
import { useDatabase } from '../../../testing/deposits-support.ts'
import { accountDifferences } from './accounts.ts'
import { atMost } from './at-most.ts'
import { isDust } from '../../custody/assets/dust.ts'
import { reportDust } from './dust.ts'
import { coinsOnChain } from './utxo.ts'
import { compareNetworks } from './networks.ts'
import type { Difference } from './report.ts'

/** Tests of how many requests an audit makes, and in which order it reports differences. */
const database = useDatabase({ migrated: true })
const registry = loadRegistry('local')
const COUNT = 1200
const addressAt = (at: number) => `0x${at.toString(16).padStart(40, '0')}`
const workspace = randomUUID()
const services = () => ({
  database: database.get(),
  registry,
  networks: undefined as never as Networks,
})

before(async () => {
  await database.started
  await database
    .get()
    .query('insert into workspaces (id, name) values ($1, $2)', [workspace, 'acme'])
  for (const network of ['ETH', 'POL'])
    await database.get().query(
      `insert into chain_addresses (network, address, workspace_id, path_index, kind)
       select $1, a, $2, n - 1, 'tank' from unnest($3::text[]) with ordinality t(a, n)`,
      [network, workspace, Array.from({ length: COUNT }, (_, at) => addressAt(at + 1))],
    )
})

/** What each address of the scripted chain holds, by `ADDRESS ASSET`; otherwise 0. */
const held = new Map<string, bigint>()
let requests: string[] = []
let pending = 0
let most = 0
beforeEach(() => {
  held.clear()
  requests = []
  most = 0
})

/** Counts a request, and answers when every request that can be made at the same time was made. */
async function request<Answer>(name: string, answer: () => Answer): Promise<Answer> {
  requests.push(name)
  most = Math.max(most, ++pending)
  await new Promise((resolve) => setImmediate(resolve))
  pending--
  return answer()
}
const amount = (address: string, asset: Asset) => held.get(`${address} ${asset.asset_name}`) ?? 0n
const chainOf = (code: string, methods: Partial<Chain>): Chain =>
  ({ network: registry.network(code)!, coins: null, stakes: null, ...methods }) as Chain
const together: Partial<Chain> = {
  balances: (addresses, asset) =>
    request(`${addresses.length} ${asset.asset_name}`, () =>
      addresses.map((address) => amount(address, asset)),
    ),
}
const single: Partial<Chain> = {
  balance: (address, asset) => request(asset.asset_name, () => amount(address, asset)),
}

test('1,200 addresses with three assets take nine calls, and differences are in the order of the addresses', async () => {
  const [first, last] = [addressAt(1), addressAt(COUNT)]
  for (const name of [`${last} USDC_ETH`, `${last} ETH`, `${first} USDT_ETH`, `${first} ETH`])
    held.set(name, 10n ** 18n)
  const differences: Difference[] = []
  const result = await accountDifferences(services(), chainOf('ETH', together), differences)
  assert.deepEqual(
    [result.addresses, requests],
    [
      COUNT,
      [500, 500, 200].flatMap((count) =>
        ['ETH', 'USDT_ETH', 'USDC_ETH'].map((asset) => `${count} ${asset}`),
      ),
    ],
  )
  const expected = [`${first} ETH`, `${first} USDT_ETH`, `${last} ETH`, `${last} USDC_ETH`]
  assert.deepEqual(
    differences.map(({ subject, asset }) => `${subject.split(' ')[1]} ${asset}`),
    expected,
  )
  assert.deepEqual(result.differing, expected)
})

test('without balances by the hundred, eight requests are made at a time', async () => {
  held.set(`${addressAt(700)} ETH`, 5n * 10n ** 17n)
  const differences: Difference[] = []
  const result = await accountDifferences(services(), chainOf('ETH', single), differences)
  assert.deepEqual([result.addresses, requests.length, most], [COUNT, COUNT * 3, 8])
  assert.deepEqual(
    differences.map(({ subject, chain }) => [subject, chain]),
    [[`tank ${addressAt(700)}`, '0.5']],
  )
})

test('a chain that lists coins in other places is asked for each address’s tokens', async () => {
  const holdings: Chain['holdings'] = (address, asset) =>
    request(asset.asset_name, () => ({
      balance: 0n,
      elsewhere:
        address === addressAt(3) && asset.asset_name === 'USDT_ETH'
          ? [{ place: 'second', amount: 7n, reason: 'TOKEN_ACCOUNT' as const }]
          : [],
    }))
  const result = await accountDifferences(services(), chainOf('ETH', { ...together, holdings }), [])
  assert.deepEqual(
    result.notCounted.map(({ address, place, asset, amount: text }) => [
      address,
      place,
      asset,
      text,
    ]),
    [[addressAt(3), 'second', 'USDT_ETH', '0.000007']],
  )
  assert.deepEqual([requests.length, most], [3 + COUNT * 2, 8])
})

test('a repeated comparison reads only what differed', async () => {
  const network = (code: string) => chainOf(code, together)
  const chains = [network('ETH'), network('POL')]
  const all = { ...services(), networks: { all: () => chains } as unknown as Networks }
  held.set(`${addressAt(5)} ETH`, 10n ** 18n)
  held.set(`${addressAt(900)} USDC_ETH`, 10n ** 6n)
  const first = await compareNetworks(all, [], undefined)
  assert.deepEqual(
    first.map(({ code, counts, differences }) => [code, counts, differences.length]),
    [
      ['ETH', { addresses: COUNT, coins: 0 }, 2],
      ['POL', { addresses: COUNT, coins: 0 }, 0],
    ],
  )
  requests = []
  held.delete(`${addressAt(5)} ETH`)
  const second = await compareNetworks(all, first, undefined)
  assert.deepEqual(requests, ['2 ETH', '2 USDT_ETH', '2 USDC_ETH'])
  assert.deepEqual(
    second.map(({ code, counts, differences }) => [
      code,
      counts,
      differences.map(({ subject, asset }) => `${subject} ${asset}`),
    ]),
    [
      ['ETH', { addresses: COUNT, coins: 0 }, [`tank ${addressAt(900)} USDC_ETH`]],
      ['POL', { addresses: COUNT, coins: 0 }, []],
    ],
  )
  requests = []
  held.clear()
  const third = await compareNetworks(all, second, undefined)
  assert.deepEqual(requests, ['1 ETH', '1 USDT_ETH', '1 USDC_ETH'])
  requests = []
  assert.deepEqual(await compareNetworks(all, third, undefined), third)
  assert.deepEqual(requests, [])
})

test('dust is counted once for each balance, also if others are compared again', async () => {
  const networks = { all: () => [chainOf('ETH', together)] } as unknown as Networks
  const all = { ...services(), networks }
  held.set(`${addressAt(5)} ETH`, 1n)
  held.set(`${addressAt(5)} USDC_ETH`, 10n ** 6n)
  held.set(`${addressAt(600)} ETH`, 2n)
  held.set(`${addressAt(601)} USDT_ETH`, 10n ** 6n)
  const [first] = await compareNetworks(all, [], undefined)
  assert.deepEqual([...first!.dust], [['ETH', { addresses: 2, amount: 3n }]])
  assert.deepEqual(first!.differing, [`${addressAt(5)} USDC_ETH`, `${addressAt(601)} USDT_ETH`])
  held.set(`${addressAt(601)} USDT_ETH`, 4n)
  const [second] = await compareNetworks(all, [first!], undefined)
  assert.deepEqual(second!.differing, [`${addressAt(5)} USDC_ETH`])
  assert.deepEqual(reportDust(registry, 'ETH', second!.dust), [
    { kind: 'dust', network: 'ETH', asset: 'ETH', addresses: 2, amount: '0.000000000000000003' },
    { kind: 'dust', network: 'ETH', asset: 'USDT_ETH', addresses: 1, amount: '0.000004' },
  ])
})

test('every asset has a minimum of dust, in every mode', () => {
  for (const mode of ['mainnet', 'local'] as const) {
    const loaded = loadRegistry(mode)
    for (const asset of loaded.assets) {
      const whole = 10n ** BigInt(asset.decimals)
      assert.equal(isDust(loaded, asset, 0n), false, asset.asset_name)
      assert.equal(isDust(loaded, asset, -1n), false, asset.asset_name)
      assert.equal(isDust(loaded, asset, 1n), true, asset.asset_name)
      assert.equal(isDust(loaded, asset, whole), false, asset.asset_name)
    }
  }
})

test('a network that failed is compared again completely, and others are unaffected', async () => {
  let fails = true
  const broken: Partial<Chain> = {
    balances: (addresses, asset) =>
      fails ? Promise.reject(new Error('away')) : together.balances!(addresses, asset),
  }
  const chains = [chainOf('ETH', broken), chainOf('POL', together)]
  const all = { ...services(), networks: { all: () => chains } as unknown as Networks }
  const first = await compareNetworks(all, [], undefined)
  assert.deepEqual(
    first.map(({ counts, differences }) => [
      counts?.addresses,
      differences.map(({ kind, note }) => `${kind} ${note}`),
    ]),
    [
      [undefined, ['unknown away']],
      [COUNT, []],
    ],
  )
  fails = false
  requests = []
  const second = await compareNetworks(all, first, undefined)
  assert.deepEqual(second[0]?.counts, { addresses: COUNT, coins: 0 })
  assert.equal(requests.length, 9)
})

test('four networks are compared at a time', async () => {
  const fourPending = Promise.withResolvers<void>()
  let underWay = 0
  let mostUnderWay = 0
  const waiting: Partial<Chain> = {
    balances: async (addresses) => {
      mostUnderWay = Math.max(mostUnderWay, ++underWay)
      if (underWay === 4) {
        // A fifth network would have sent its request by then.
        await database.get().query('select count(*) from chain_addresses')
        fourPending.resolve()
      }
      await fourPending.promise
      underWay--
      return addresses.map(() => 0n)
    },
  }
  const chains = Array.from({ length: 6 }, () => chainOf('ETH', waiting))
  const all = { ...services(), networks: { all: () => chains } as unknown as Networks }
  assert.equal((await compareNetworks(all, [], undefined)).length, 6)
  assert.equal(mostUnderWay, 4)
})

test('an abort ends the comparison between two lots', async () => {
  const stop = new AbortController()
  const ending: Partial<Chain> = {
    balances: (addresses, asset) => {
      stop.abort(new Error('stopped'))
      return together.balances!(addresses, asset)
    },
  }
  const networks = { all: () => [chainOf('ETH', ending)] } as unknown as Networks
  await assert.rejects(
    compareNetworks({ ...services(), networks }, [], stop.signal),
    /^Error: stopped$/,
  )
  assert.equal(requests.length, 1)
})

test('the coins of a UTXO network are read eight at a time, in their order', async () => {
  const coins = Array.from({ length: 600 }, (_, vout) => ({ txid: 'a', vout, value: '1' }))
  const stub = { query: async () => coins }
  const chainCoins = {
    unspent: (_txid: string, vout: number) => request('unspent', () => BigInt(vout)),
  }
  const read: unknown[] = []
  for await (const { vout, there } of coinsOnChain(
    { database: stub as never },
    registry.network('BTC')!,
    chainCoins as never,
    'true',
  ))
    read.push([vout, there])
  assert.deepEqual(
    read,
    coins.map(({ vout }) => [vout, BigInt(vout)]),
  )
  assert.deepEqual([requests.length, most], [600, 8])
})

test('after a failure no further item is begun, and those under way are awaited', async () => {
  const begun: number[] = []
  const ended: number[] = []
  await assert.rejects(
    atMost(2, [0, 1, 2, 3, 4], async (item) => {
      begun.push(item)
      await new Promise((resolve) => setImmediate(resolve))
      if (item === 0) throw new Error('first')
      await new Promise((resolve) => setImmediate(resolve))
      ended.push(item)
    }),
    /first/,
  )
  assert.deepEqual([begun, ended], [[0, 1], [1]])
  assert.deepEqual(await atMost(3, [1, 2, 3, 4], async (item) => item * 2), [2, 4, 6, 8])
  assert.deepEqual(await atMost(3, [], async () => 1), [])
})
