import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import type { AsideCoin } from '@custody/chains'
import { findAside, recordAside } from '../deposits/coins-aside.ts'
import { useApi } from '../../../testing/api-support.ts'
import { call, type User } from '../../../testing/harness.ts'

/**
 * Tests of `GET /dac/v1/coins-aside` over HTTP: pages, filters and invalid parameters. The tests
 * insert the rows in the same form as the scan.
 */
const api = useApi()
let alice: User
let bob: User
before(async () => {
  await api.started
  alice = await api.user('alice')
  bob = await api.user('bob')
})

interface Page {
  data: { txid: string; vout: string; amount: string; asset: string; token: unknown }[]
  next: string | null
  has_more: boolean
}
const list = (user: User, query = '') =>
  call<Page & { code: string; field: string }>(user, 'GET', `/dac/v1/coins-aside${query}`)
const TXID = 'ab'.repeat(32)
const CATEGORY = 'cd'.repeat(32)

async function detectCoins(
  user: User,
  height: number,
  vouts: number[],
  token: AsideCoin['token'],
): Promise<void> {
  const network = api.services.registry.network('BCH')!
  const {
    body: [wallet],
  } = await call<{ omnibus_address: string }[]>(user, 'GET', '/dac/v1/wallets?asset=BCH')
  const address = wallet!.omnibus_address
  const aside = vouts.map((vout): AsideCoin => ({
    txid: TXID,
    vout,
    address,
    amount: 1000n + BigInt(vout),
    reason: 'CASH_TOKENS',
    token,
  }))
  const block = { height, hash: `block ${height}`, parent: '', txids: [TXID], transfers: [], aside }
  const [own = []] = await findAside(api.database, network, [block], (addresses) => [...addresses])
  await api.database.transaction((tx) => recordAside(api.services, tx, network, block, own))
}

test('lists each of the caller’s outputs once, even if a node repeats it, and no foreign outputs', async () => {
  for (const user of [alice, bob])
    await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'BCH' })
  await detectCoins(alice, 5, [0, 1, 1, 2], {
    category: CATEGORY,
    amount: '9223372036854775807',
    nft: null,
  })
  await detectCoins(alice, 6, [3, 4], null)
  await detectCoins(bob, 6, [7], {
    category: CATEGORY,
    amount: '0',
    nft: { capability: 'none', commitment: '' },
  })
  const seen: number[] = []
  let query = '?limit=2'
  for (let pages = 1; ; pages++) {
    const { status, body, text } = await list(alice, query)
    assert.equal(status, 200, text)
    assert.equal(body.has_more, body.next !== null)
    seen.push(...body.data.map(({ vout }) => Number(vout)))
    if (body.next === null) {
      assert.equal(pages, 3)
      break
    }
    query = `?limit=2&after=${body.next}`
  }
  assert.deepEqual(seen.sort(), [0, 1, 2, 3, 4])
  const { body } = await list(bob)
  assert.deepEqual(
    body.data.map(({ txid, vout, amount, asset, token }) => ({
      txid,
      vout: Number(vout),
      amount,
      asset,
      token,
    })),
    [
      {
        txid: TXID,
        vout: 7,
        amount: '0.00001007',
        asset: 'BCH',
        token: { category: CATEGORY, amount: '0', nft: { capability: 'none', commitment: '' } },
      },
    ],
  )
})

test('an output first read without its tokens is completed when a node returns them', async () => {
  await detectCoins(bob, 8, [9], null)
  await detectCoins(bob, 8, [9], { category: CATEGORY, amount: '3', nft: null })
  await detectCoins(bob, 8, [9], null)
  const { body } = await list(bob)
  assert.deepEqual(
    body.data.filter(({ vout }) => Number(vout) === 9).map(({ token }) => token),
    [{ category: CATEGORY, amount: '3', nft: null }],
  )
})

test('the filters for asset and network can be combined', async () => {
  const count = async (query: string) => (await list(bob, query)).body.data.length
  const all = await count('')
  assert.ok(all > 0)
  assert.deepEqual(
    [
      await count('?asset=BCH'),
      await count('?network=BCH'),
      await count('?asset=BCH&network=BCH'),
      await count('?asset=BTC'),
      await count('?network=LTC'),
      await count('?asset=BCH&network=BTC'),
    ],
    [all, all, all, 0, 0, 0],
  )
})

test("bad parameters get 400 with the field's name", async () => {
  for (const [query, field, code] of [
    ['?asset=NOPE', 'asset', 'UNSUPPORTED_ASSET'],
    ['?asset=bch', 'asset', 'UNSUPPORTED_ASSET'],
    ['?network=NOPE', 'network', 'INVALID_REQUEST'],
    ['?network=', 'network', 'INVALID_REQUEST'],
    [`?network=${'B'.repeat(51)}`, 'network', 'INVALID_REQUEST'],
    ['?limit=0', 'limit', 'INVALID_REQUEST'],
    ['?limit=501', 'limit', 'INVALID_REQUEST'],
    ['?limit=x', 'limit', 'INVALID_REQUEST'],
    ['?after=x', 'after', 'INVALID_REQUEST'],
    ['?after=999999999999999.00000000-0000-0000-0000-000000000000', 'after', 'INVALID_REQUEST'],
    ['?after=1', 'after', 'INVALID_REQUEST'],
    ['?page=1', 'page', 'UNKNOWN_FIELD'],
  ] as const) {
    const { status, body, text } = await list(alice, query)
    assert.deepEqual([status, body.field, body.code], [400, field, code], `${query}: ${text}`)
  }
})
