import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { useApi } from '../../../testing/api-support.ts'
import { call, type User } from '../../../testing/harness.ts'

/**
 * Tests of `GET /dac/v1/coins` and `POST /dac/v1/coins/{id}` over HTTP: pages, states, labels,
 * refusals and other tenants. The tests insert the coins in the same form as the scan.
 */
const api = useApi()
type Caller = Awaited<ReturnType<typeof api.user>>
let alice: Caller
let bob: Caller
before(async () => {
  await api.started
  alice = await api.user('alice')
  bob = await api.user('bob')
  for (const user of [alice, bob])
    for (const asset of ['BTC', 'ADA', 'ETH']) {
      const { status, text } = await call(user, 'POST', '/dac/v1/create-wallet', { asset })
      assert.equal(status, 200, text)
    }
})

interface Coin {
  id: string
  asset: string
  amount: string
  address: string
  hash: string
  index: string
  height: string | null
  state: string
  frozen: boolean
  reason: string | null
  label: string | null
}
interface Page {
  data: Coin[]
  next: string | null
  has_more: boolean
}
interface Problem {
  code: string
  field: string
}
const list = (user: User, query: string) =>
  call<Page & Problem>(user, 'GET', `/dac/v1/coins?${query}`)
const update = (user: User, id: string, body: unknown) =>
  call<Coin & Problem>(user, 'POST', `/dac/v1/coins/${encodeURIComponent(id)}`, body)

interface CoinOptions {
  spendable?: boolean
  origin?: 'deposit' | 'change'
  height?: number | null
  spentBy?: string
  contested?: boolean
}

/** Adds a coin to a wallet, and returns its id. */
async function addCoin(
  { workspaceId, subAccountId }: Caller,
  asset: string,
  value: number,
  o: CoinOptions = {},
): Promise<string> {
  const txid = randomUUID().replaceAll('-', '').repeat(2)
  await api.database.query(
    `insert into utxos (workspace_id, network, txid, vout, address, wallet_id, value, path_index, origin,
       spendable, contested, block_height, spent_by)
     select $1, network, $3, 1, 'address', id, $4, 0, $5, $6, $7, $8, $9 from wallets
     where workspace_id = $1 and sub_account_id = $2 and asset = $10`,
    [
      workspaceId,
      subAccountId,
      txid,
      value,
      o.origin ?? 'deposit',
      o.spendable ?? true,
      o.contested ?? false,
      o.height === undefined ? 7 : o.height,
      o.spentBy ?? null,
      asset,
    ],
  )
  return `${asset}-${txid}-1`
}

/** Writes a transaction of a wallet and its chain transaction, and returns both ids. */
async function addTransaction(
  { workspaceId, subAccountId }: Caller,
  asset: string,
  o: { kind: string; state: string; status: string },
): Promise<{ id: string; built: string }> {
  const [id, built] = [randomUUID(), randomUUID()]
  await api.admin.query(
    `insert into transactions (id, workspace_id, sub_account_id, wallet_id, kind, asset, network, amount, fee,
       fee_asset, source_type, destination_type, state, status)
     select $1, $2, $3, id, $5, asset, network, 1, 0, asset, 'INTERNAL', 'EXTERNAL', $6, $7
     from wallets where workspace_id = $2 and sub_account_id = $3 and asset = $4`,
    [id, workspaceId, subAccountId, asset, o.kind, o.state, o.status],
  )
  await api.admin.query(
    `insert into chain_transactions (id, workspace_id, transaction_id, network, state, unsigned, fee_max)
     values ($1, $2, $3, $4, 'BUILT', '{}', 0)`,
    [built, workspaceId, id, asset],
  )
  return { id, built }
}

test('lists each coin of the wallet once, the largest first, and none of others', async () => {
  const user = await api.user(randomUUID())
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  const ids = new Map<string, number>()
  for (const value of [5000, 7000, 7000, 1, 900_000_000])
    ids.set(await addCoin(user, 'BTC', value), value)
  const { built } = await addTransaction(user, 'BTC', {
    kind: 'WITHDRAWAL',
    state: 'SIGNING',
    status: 'pending',
  })
  ids.set(await addCoin(user, 'BTC', 6000, { spentBy: built }), 6000)
  await addCoin(bob, 'BTC', 8000)
  const seen: Coin[] = []
  let query = 'asset=BTC&limit=2'
  for (let pages = 1; ; pages++) {
    const { status, body, text } = await list(user, query)
    assert.equal(status, 200, text)
    assert.equal(body.has_more, body.next !== null)
    seen.push(...body.data)
    if (body.next === null) {
      assert.equal(pages, 3)
      break
    }
    query = `asset=BTC&limit=2&after=${body.next}`
  }
  assert.deepEqual(new Set(seen.map(({ id }) => id)), new Set(ids.keys()))
  assert.deepEqual(
    seen.map(({ id }) => ids.get(id)),
    [900_000_000, 7000, 7000, 6000, 5000, 1],
  )
  const [{ id, hash, ...largest }] = seen as [Coin]
  assert.equal(id, `BTC-${hash}-1`)
  assert.deepEqual(largest, {
    asset: 'BTC',
    amount: '9',
    address: 'address',
    index: '1',
    height: '7',
    state: 'available',
    frozen: false,
    reason: null,
    label: null,
  })
})

test('states why a coin cannot be spent, and filters by state', async () => {
  const user = await api.user(randomUUID())
  for (const asset of ['BTC', 'ADA']) await call(user, 'POST', '/dac/v1/create-wallet', { asset })
  const pending = { kind: 'WITHDRAWAL', state: 'SIGNING', status: 'pending' }
  const { id: transfer, built } = await addTransaction(user, 'BTC', pending)
  const ended = await addTransaction(user, 'BTC', {
    kind: 'WITHDRAWAL',
    state: 'CONFIRMED',
    status: 'confirmed',
  })
  const { id: held } = await addTransaction(user, 'BTC', {
    kind: 'DEPOSIT',
    state: 'FROZEN',
    status: 'pending',
  })
  const frozen = await addCoin(user, 'BTC', 1000)
  assert.equal((await update(user, frozen, { frozen: true })).status, 200)
  const heldCoin = await addCoin(user, 'BTC', 1000, { spendable: false })
  await api.admin.query(
    `insert into deposits (transaction_id, workspace_id, network, txid, position, address, asset, amount, occurrence,
       block_height)
     select $1, $2, 'BTC', $3, 1, address, 'BTC', 1000, 0, 7 from chain_addresses
     where workspace_id = $2 and network = 'BTC' limit 1`,
    [held, user.workspaceId, heldCoin.split('-')[1]],
  )
  const change = { origin: 'change', height: null } as const
  const cases: [id: string, state: string, reason: RegExp | null][] = [
    [await addCoin(user, 'BTC', 1000), 'available', null],
    [await addCoin(user, 'BTC', 1000, change), 'available', null],
    [await addCoin(user, 'BTC', 1000, { spendable: false }), 'waiting', /not credited/],
    [
      await addCoin(user, 'BTC', 1000, { ...change, spendable: false, contested: true }),
      'waiting',
      /replaced/,
    ],
    [await addCoin(user, 'BTC', 1000, { spentBy: built }), 'reserved', new RegExp(transfer)],
    [frozen, 'frozen', /frozen/],
    [heldCoin, 'held', /Screening/],
    [await addCoin(user, 'ADA', 2_000_000, change), 'waiting', /no block/],
    [await addCoin(user, 'ADA', 2_000_000), 'available', null],
  ]
  const spent = await addCoin(user, 'BTC', 1000, { spentBy: ended.built })
  const all = await Promise.all(['BTC', 'ADA'].map((asset) => list(user, `asset=${asset}`)))
  const coins = new Map(all.flatMap(({ body }) => body.data).map((coin) => [coin.id, coin]))
  assert.equal(coins.size, cases.length)
  assert.ok(!coins.has(spent), 'a spent coin is not listed')
  for (const [id, state, reason] of cases) {
    const coin = coins.get(id)
    assert.equal(coin?.state, state, id)
    if (reason === null) assert.equal(coin.reason, null)
    else assert.match(coin.reason ?? '', reason)
    const { body } = await list(user, `asset=${id.slice(0, 3)}&state=${state}`)
    assert.ok(
      body.data.some((each) => each.id === id),
      `${id} ${state}`,
    )
    assert.ok(body.data.every((each) => each.state === state))
  }
})

test('sets and removes a label, and a freeze keeps it', async () => {
  const id = await addCoin(alice, 'BTC', 4000)
  const label = 'From the sale of 2025 ✓'
  for (const [body, expected] of [
    [{ label }, { label, frozen: false, state: 'available' }],
    [{ frozen: true }, { label, frozen: true, state: 'frozen' }],
    [{ frozen: true }, { label, frozen: true, state: 'frozen' }],
    [{ label: null }, { label: null, frozen: true, state: 'frozen' }],
    [{ frozen: false }, { label: null, frozen: false, state: 'available' }],
  ] as const) {
    const { status, body: answer, text } = await update(alice, id, body)
    assert.equal(status, 200, text)
    const { label: written, frozen, state } = answer
    assert.deepEqual({ label: written, frozen, state }, expected)
    const { body: page } = await list(alice, 'asset=BTC')
    assert.deepEqual(
      page.data.find((coin) => coin.id === id),
      answer,
    )
  }
})

test('a reserved coin cannot be frozen, and nothing changes', async () => {
  const { id: transfer, built } = await addTransaction(alice, 'BTC', {
    kind: 'WITHDRAWAL',
    state: 'SIGNING',
    status: 'pending',
  })
  const id = await addCoin(alice, 'BTC', 3000, { spentBy: built })
  const { status, body, text } = await update(alice, id, { frozen: true, label: 'lost' })
  assert.deepEqual([status, body.code, body.field], [409, 'COIN_RESERVED', 'frozen'], text)
  assert.match(text, new RegExp(transfer))
  assert.deepEqual(
    await api.database.query('select 1 from coin_settings where txid = $1', [id.split('-')[1]]),
    [],
  )
  const labelled = await update(alice, id, { label: 'kept' })
  assert.deepEqual([labelled.status, labelled.body.label], [200, 'kept'], labelled.text)
})

test('coins of other sub-accounts and workspaces do not exist for a caller', async () => {
  const second = await api.user('alice', { subAccount: 'second' })
  await call(second, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  const id = await addCoin(alice, 'BTC', 2000)
  for (const user of [bob, second]) {
    const { status, body, text } = await update(user, id, { frozen: true })
    assert.deepEqual([status, body.code], [404, 'NOT_FOUND'], text)
    const { body: page } = await list(user, 'asset=BTC&limit=500')
    assert.ok(!page.data.some((coin) => coin.id === id))
  }
  assert.deepEqual(
    await api.database.query('select 1 from coin_settings where txid = $1', [id.split('-')[1]]),
    [],
  )
})

test('a read-only key lists coins and cannot change them', async () => {
  const reader = await api.user('alice', { role: 'read-only' })
  const id = await addCoin(alice, 'BTC', 2500)
  assert.equal((await list(reader, 'asset=BTC')).status, 200)
  const { status, body } = await update(reader, id, { frozen: true })
  assert.deepEqual([status, body.code], [403, 'READ_ONLY'])
})

test('invalid requests are refused with the name of the field', async () => {
  const id = await addCoin(alice, 'BTC', 2600)
  const poor = await api.user('poor')
  for (const [user, query, field, code] of [
    [alice, '', 'asset', 'INVALID_REQUEST'],
    [alice, 'asset=NOPE', 'asset', 'UNSUPPORTED_ASSET'],
    [alice, 'asset=btc', 'asset', 'UNSUPPORTED_ASSET'],
    [alice, 'asset=ETH', 'asset', 'INVALID_REQUEST'],
    [alice, 'asset=USDT_ETH', 'asset', 'INVALID_REQUEST'],
    [poor, 'asset=BTC', 'asset', 'WALLET_MISSING'],
    [alice, 'asset=BTC&state=spent', 'state', 'INVALID_REQUEST'],
    [alice, 'asset=BTC&limit=0', 'limit', 'INVALID_REQUEST'],
    [alice, 'asset=BTC&limit=501', 'limit', 'INVALID_REQUEST'],
    [alice, 'asset=BTC&after=x', 'after', 'INVALID_REQUEST'],
    [alice, 'asset=BTC&after=1.zz.1', 'after', 'INVALID_REQUEST'],
    [alice, `asset=BTC&after=${'9'.repeat(79)}.ab.1`, 'after', 'INVALID_REQUEST'],
    [alice, 'asset=BTC&page=1', 'page', 'UNKNOWN_FIELD'],
  ] as const) {
    const { status, body, text } = await list(user, query)
    assert.deepEqual([status, body.field, body.code], [400, field, code], `${query}: ${text}`)
  }
  for (const [body, field, code] of [
    [{}, 'body', 'INVALID_REQUEST'],
    [{ label: '' }, 'label', 'INVALID_REQUEST'],
    [{ label: 'x'.repeat(101) }, 'label', 'INVALID_REQUEST'],
    [{ label: 'a\nb' }, 'label', 'INVALID_REQUEST'],
    [{ label: 5 }, 'label', 'INVALID_REQUEST'],
    [{ frozen: 'yes' }, 'frozen', 'INVALID_REQUEST'],
    [{ frozen: null }, 'body', 'INVALID_REQUEST'],
    [{ frozen: true, amount: 1 }, 'amount', 'UNKNOWN_FIELD'],
  ] as const) {
    const { status, body: problem, text } = await update(alice, id, body)
    assert.deepEqual(
      [status, problem.field, problem.code],
      [400, field, code],
      `${JSON.stringify(body)}: ${text}`,
    )
  }
  const hash = 'ab'.repeat(32)
  for (const unknown of [
    'x',
    `BTC-${hash}-0`,
    `NOPE-${hash}-0`,
    `ETH-${hash}-0`,
    `BTC-${hash}-9999999999`,
    `BTC-${hash}`,
    `${id}-1`,
    `${id.slice(0, -1)}01`,
  ]) {
    const { status, body, text } = await update(alice, unknown, { frozen: true })
    assert.deepEqual([status, body.code], [404, 'NOT_FOUND'], `${unknown}: ${text}`)
  }
})

test('max_spendable is null without a fee rate, and the balance where a gas tank pays', async () => {
  await api.fund(alice, 'ETH', 5n * 10n ** 17n)
  await api.fund(alice, 'BTC', 5000n)
  const read = async (asset: string) => {
    const { body } = await call<{ balance: string; max_spendable: string | null }[]>(
      alice,
      'GET',
      `/dac/v1/wallets?asset=${asset}`,
    )
    return [body[0]?.balance, body[0]?.max_spendable]
  }
  assert.deepEqual(await read('ETH'), ['0.5', '0.5'])
  assert.deepEqual(await read('BTC'), ['0.00005', null])
  assert.deepEqual(await read('ADA'), ['0', '0'])
})
