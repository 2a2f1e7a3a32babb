import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call, transferBody, type User } from '../../../testing/harness.ts'

/** Tests of lists with cursors: the balances of all wallets and the addresses of one wallet. */
const api = useApi()
before(() => api.started)

interface Page<T> {
  data: T[]
  next: string | null
  has_more: boolean
}
interface Balance {
  wallet_id: string
  asset: string
  network: string
  status: string
  available: string
  pending: string
  total: string
}
interface Address {
  id: string
  address: string
}

/** Returns all pages of a list, with `limit` items per page. */
async function pages<T>(user: User, path: string, limit: number): Promise<T[][]> {
  const pagesRead: T[][] = []
  for (let next: string | null = ''; next !== null;) {
    const page: { status: number; text: string; body: Page<T> } = await call<Page<T>>(
      user,
      'GET',
      `${path}${path.includes('?') ? '&' : '?'}limit=${limit}${next === '' ? '' : `&after=${next}`}`,
    )
    assert.equal(page.status, 200, page.text)
    assert.equal(page.body.has_more, page.body.next !== null)
    pagesRead.push(page.body.data)
    next = page.body.next
  }
  return pagesRead
}

test('the list of all balances equals the balances of the sub-account’s wallets, in fixed order', async () => {
  const workspace = randomUUID()
  const user = await api.user(workspace)
  const empty = await call<Page<Balance>>(user, 'GET', '/dac/v1/balances')
  assert.deepEqual(
    [empty.status, empty.body],
    [200, { data: [], next: null, has_more: false }],
    empty.text,
  )
  for (const asset of ['XRP', 'BTC', 'USDT_ETH', 'ETH', 'SOL'])
    await call(user, 'POST', '/dac/v1/create-wallet', { asset })
  await api.fund(user, 'BTC', 1_000_000_000n)
  await api.fund(user, 'USDT_ETH', 5_000_001n)
  await api.fund(user, 'XRP', 500_000n)
  const sent = await call(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('BTC', '0.25', 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'),
  )
  assert.equal(sent.status, 200, sent.text)
  const other = await api.user(workspace, { subAccount: 'other' })
  await call(other, 'POST', '/dac/v1/create-wallet', { asset: 'DOGE' })

  const { data } = (await call<Page<Balance>>(user, 'GET', '/dac/v1/balances')).body
  assert.deepEqual(
    data.map(({ asset }) => asset),
    ['BTC', 'ETH', 'SOL', 'USDT_ETH', 'XRP'],
  )
  for (const each of data) {
    const [single] = (
      await call<{ id: string; balance: string; omnibus_balance: string; status: string }[]>(
        user,
        'GET',
        `/dac/v1/wallets?asset=${each.asset}`,
      )
    ).body
    assert.deepEqual(
      [each.wallet_id, each.available, each.total, each.status],
      [single?.id, single?.balance, single?.omnibus_balance, single?.status],
    )
    assert.ok(
      Math.abs(Number(each.available) + Number(each.pending) - Number(each.total)) < 1e-9,
      JSON.stringify(each),
    )
  }
  const bitcoin = data[0] as Balance
  assert.deepEqual([bitcoin.network, bitcoin.total], ['BTC', '10'])
  assert.ok(Number(bitcoin.pending) >= 0.25, 'what a transfer reserves is pending')
  for (const limit of [1, 2, 5]) {
    const pagesRead = await pages<Balance>(user, '/dac/v1/balances', limit)
    assert.deepEqual(pagesRead.flat(), data)
    assert.ok(pagesRead.every((page) => page.length <= limit))
  }
  assert.deepEqual(
    (await pages<Balance>(other, '/dac/v1/balances', 100)).flat().map(({ asset }) => asset),
    ['DOGE'],
  )
  for (const [query, field] of [
    ['limit=0', 'limit'],
    ['limit=501', 'limit'],
    ['after=', 'after'],
    ['asset=BTC', 'asset'],
  ] as const) {
    const { status, body } = await call<Problem>(user, 'GET', `/dac/v1/balances?${query}`)
    assert.deepEqual([status, body.field], [400, field], query)
  }
})

test("a wallet whose network is not connected is listed with the ledger's balance", async () => {
  const user = await api.user()
  for (const asset of ['BTC', 'ETH']) await call(user, 'POST', '/dac/v1/create-wallet', { asset })
  await api.fund(user, 'BTC', 150_000_000n)
  const { networks } = api.services
  const without = {
    has: (code: string) => code !== 'BTC',
    get: (code: string) => networks.get(code),
  }
  Object.assign(api.services, { networks: without })
  const { status, body, text } = await call<Page<Balance>>(user, 'GET', '/dac/v1/balances').finally(
    () => Object.assign(api.services, { networks }),
  )
  assert.deepEqual(
    [status, body.data?.map(({ asset, available }) => [asset, available])],
    [
      200,
      [
        ['BTC', '1.5'],
        ['ETH', '0'],
      ],
    ],
    text,
  )
})

test('addresses are returned as one array, or in pages if the request asks for pages', async () => {
  const user = await api.user()
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'ETH' })
  for (let count = 0; count < 7; count++)
    await call(user, 'POST', '/dac/v1/address', { asset: 'ETH' })
  const path = '/dac/v1/addresses?asset=ETH'
  const all = (await call<Address[]>(user, 'GET', path)).body
  assert.deepEqual([Array.isArray(all), all.length], [true, 7])
  // Sets the same creation time for all rows, as if one transaction had created them.
  await api.database.query(
    `update wallet_addresses a set created_at = '2026-01-01T00:00:00.123456Z' from wallets w
     where w.id = a.wallet_id and w.sub_account_id = $1`,
    [user.subAccountId],
  )
  const same = (await call<Address[]>(user, 'GET', path)).body.map(({ id }) => id)
  for (const limit of [1, 3, 7, 500]) {
    assert.deepEqual(
      (await pages<Address>(user, path, limit)).flat().map(({ id }) => id),
      same,
      String(limit),
    )
  }
  const rest = await call<Page<Address>>(user, 'GET', `${path}&after=${same[4]}`)
  assert.deepEqual(
    [rest.body.data?.map(({ id }) => id), rest.body.next],
    [same.slice(5), null],
    rest.text,
  )

  const other = await api.user()
  await call(other, 'POST', '/dac/v1/create-wallet', { asset: 'ETH' })
  for (const after of [same[0], randomUUID(), 'x', '']) {
    const { status, body } = await call<Problem>(other, 'GET', `${path}&after=${after}`)
    assert.deepEqual(
      [status, body.field],
      [400, 'after'],
      `${after}: of another sub-account, or none`,
    )
  }
})
