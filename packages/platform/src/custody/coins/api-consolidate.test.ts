import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, mock, test } from 'node:test'
import { useApi } from '../../../testing/api-support.ts'
import { call, type User } from '../../../testing/harness.ts'

/**
 * Tests of `POST /dac/v1/wallets/{id}/consolidate` over HTTP: every field, the rule about half of the
 * balance, the choice of coins, and other tenants. No worker runs, so that consolidations stay as they
 * were created. The tests insert the coins in the same form as the scan.
 */
const api = useApi()
type Caller = Awaited<ReturnType<typeof api.user>>

/** Fee rates of all levels, in satoshi per 1000 vbytes. */
let rate = 5_000n
before(async () => {
  await api.started
  for (const code of ['BTC', 'LTC', 'DOGE', 'DASH', 'BCH'])
    mock.method(api.services.networks.get(code), 'rates', async () => ({
      low: 1_000n,
      medium: rate,
      high: rate * 2n,
    }))
})

interface Answered {
  id: string
  type: string
  amount: string
  fee: string
  status: string
  sub_status: string
  sequence_id: string
  code: string
  message: string
  field: string
}
const VALUE = 10_000

/** Creates a user with a wallet of equal coins. */
async function userWith(
  asset: string,
  count: number,
  o: { value?: number; funded?: number } = {},
): Promise<{ user: Caller; wallet: string }> {
  const user = await api.user(randomUUID())
  const made = await call<{ id: string }>(user, 'POST', '/dac/v1/create-wallet', { asset })
  assert.equal(made.status, 200, made.text)
  const value = o.value ?? VALUE
  await addCoins(user, asset, count, { value })
  await api.fund(user, asset, BigInt(o.funded ?? count * value))
  return { user, wallet: made.body.id }
}

async function addCoins(
  { workspaceId, subAccountId }: Caller,
  asset: string,
  count: number,
  o: { value?: number; spendable?: boolean; height?: number | null } = {},
): Promise<string[]> {
  const rows = await api.database.query<{ txid: string }>(
    `insert into utxos (workspace_id, network, txid, vout, address, wallet_id, value, path_index, origin,
       spendable, block_height)
     select $1, $3, md5(random()::text || n) || md5(random()::text || n), 0, 'address', w.id, $4, 0,
       'deposit', $5, $6 from wallets w, generate_series(1, $7) n
     where w.workspace_id = $1 and w.sub_account_id = $2 and w.asset = $3 returning txid`,
    [
      workspaceId,
      subAccountId,
      asset,
      o.value ?? VALUE,
      o.spendable ?? true,
      o.height === undefined ? 7 : o.height,
      count,
    ],
  )
  return rows.map(({ txid }) => txid)
}

let sequence = 0
const body = (more: object = {}) => ({
  asset: 'BTC',
  max_fee_rate: '10',
  target_coins: 1,
  sequence_id: `merge-${sequence++}`,
  ...more,
})
const merge = (user: User, wallet: string, more: object = {}) =>
  call<Answered>(user, 'POST', `/dac/v1/wallets/${wallet}/consolidate`, body(more))
const refused = async (user: User, wallet: string, more: object = {}) => {
  const { status, body: answer } = await merge(user, wallet, more)
  return [status, answer.code, answer.field, answer.message] as const
}
const transactionsOf = async ({ workspaceId }: Caller) =>
  api.database.query<{ id: string; plan: Record<string, string>; fee: string; amount: string }>(
    `select id, plan, fee::text, amount::text from transactions where workspace_id = $1
     and kind = 'CONSOLIDATION' order by created_at`,
    [workspaceId],
  )

/** Ends the choice of coins, as a worker does. */
const built = (id: string) =>
  api.admin.query(`update transactions set state = 'SIGNING' where id = $1`, [id])

test('creates a consolidation that reserves only its fee', async () => {
  const { user, wallet } = await userWith('BTC', 60)
  const { status, body: made, text } = await merge(user, wallet, { sequence_id: 'first' })
  assert.equal(status, 200, text)
  // Half of 60 coins; 68 vbytes each, and 42 for the rest, at 5 satoshi.
  const fee = (Math.ceil((41 * 4 + 2 + 30 * 272) / 4) * 5000) / 1000
  assert.deepEqual(
    [made.type, made.status, made.sub_status, made.sequence_id],
    ['Consolidation', 'pending', 'QUEUED', 'first'],
  )
  assert.equal(Number(made.fee), fee / 1e8)
  assert.equal(Math.round(Number(made.amount) * 1e8), 30 * VALUE - fee)
  const [row] = await transactionsOf(user)
  assert.deepEqual(row?.plan, {
    fee_reserve: String(fee),
    target_coins: '1',
    sum_most: String(30 * VALUE),
  })
  const accounts = await api.database.query(
    `select kind, balance::text from ledger_accounts where workspace_id = $1 and wallet_id = $2
     order by kind`,
    [user.workspaceId, wallet],
  )
  assert.deepEqual(accounts, [
    { kind: 'available', balance: String(60 * VALUE - fee) },
    { kind: 'reserved', balance: String(fee) },
  ])
})

test('merges down to target_coins, and at most 200 coins', async () => {
  const sums = async (count: number, more: object) => {
    const { user, wallet } = await userWith('BTC', count)
    const { status, text } = await merge(user, wallet, more)
    assert.equal(status, 200, text)
    return Number((await transactionsOf(user))[0]?.plan['sum_most']) / VALUE
  }
  assert.equal(await sums(500, {}), 200)
  assert.equal(await sums(100, { target_coins: 81 }), 20)
  assert.equal(await sums(100, { target_coins: 91 }), 10)
  const { user, wallet } = await userWith('BTC', 100)
  const [status, code, field, message] = await refused(user, wallet, { target_coins: 92 })
  assert.deepEqual([status, code, field], [400, 'NOTHING_TO_CONSOLIDATE', 'target_coins'])
  assert.match(message, /fewer than 10/)
  assert.deepEqual(await transactionsOf(user), [])
})

test('leaves coins that are frozen, not credited, unconfirmed, too small or below min_value', async () => {
  const { user, wallet } = await userWith('BTC', 9, { funded: 10_000_000 })
  const frozen = await addCoins(user, 'BTC', 5)
  for (const txid of frozen) {
    const { status } = await call(user, 'POST', `/dac/v1/coins/BTC-${txid}-0`, { frozen: true })
    assert.equal(status, 200)
  }
  await addCoins(user, 'BTC', 5, { spendable: false })
  await addCoins(user, 'BTC', 5, { height: null })
  // The fee of an input is 340 satoshi.
  await addCoins(user, 'BTC', 5, { value: 340 })
  assert.equal((await refused(user, wallet))[1], 'NOTHING_TO_CONSOLIDATE')
  await addCoins(user, 'BTC', 1, { value: 341 })
  assert.equal(
    (await refused(user, wallet, { min_value: '0.00000342' }))[1],
    'NOTHING_TO_CONSOLIDATE',
  )
  const { status, text } = await merge(user, wallet, { min_value: '0.00000341' })
  assert.equal(status, 200, text)
})

test('unconfirmed consolidations contain at most half of the balance', async () => {
  const { user, wallet } = await userWith('BTC', 100)
  const first = await merge(user, wallet, { target_coins: 71 })
  assert.equal(first.status, 200, first.text)
  const [status, code, , message] = await refused(user, wallet)
  assert.deepEqual([status, code], [409, 'CONSOLIDATION_PENDING'])
  assert.match(message, /has not chosen its coins yet/)
  await built(first.body.id)
  const second = await merge(user, wallet)
  assert.equal(second.status, 200, second.text)
  const [, row] = await transactionsOf(user)
  assert.equal(Number(row?.plan['sum_most']), 20 * VALUE)
  await built(second.body.id)
  const third = await refused(user, wallet)
  assert.deepEqual(third.slice(0, 3), [409, 'CONSOLIDATION_PENDING', 'id'])
  assert.match(third[3], /contain 0\.005 BTC, and may contain at most half of its balance/)
  // Ten coins that are more than half of the balance.
  const { user: other, wallet: small } = await userWith('BTC', 15)
  const [, reason, , text] = await refused(other, small)
  assert.equal(reason, 'NOTHING_TO_CONSOLIDATE')
  assert.match(text, /more than half/)
})

test('refuses a rate below the current one, and names both', async () => {
  const { user, wallet } = await userWith('BTC', 60)
  rate = 10_001n
  const [status, code, field, message] = await refused(user, wallet)
  rate = 5_000n
  assert.deepEqual([status, code, field], [409, 'FEE_RATE_ABOVE_MAXIMUM', 'max_fee_rate'])
  assert.match(message, /is 10\.001 Sat\/Byte, above the maximum of 10;/)
  mock.method(
    api.services.networks.get('BTC'),
    'rates',
    async () => {
      throw new Error('away')
    },
    { times: 1 },
  )
  assert.equal((await refused(user, wallet))[1], 'NETWORK_UNAVAILABLE')
  assert.deepEqual(await transactionsOf(user), [])
})

test('refuses each invalid field, and stores nothing under the sequence_id', async () => {
  const { user, wallet } = await userWith('BTC', 60)
  const cases: [more: object, status: number, code: string, field: string][] = [
    [{ asset: 'XYZ' }, 400, 'UNSUPPORTED_ASSET', 'asset'],
    [{ asset: 'ETH' }, 400, 'INVALID_REQUEST', 'asset'],
    [{ asset: 'LTC' }, 400, 'INVALID_REQUEST', 'asset'],
    [{ asset: 7 }, 400, 'INVALID_REQUEST', 'asset'],
    [{ max_fee_rate: undefined }, 400, 'INVALID_REQUEST', 'max_fee_rate'],
    [{ max_fee_rate: '0.999' }, 400, 'INVALID_REQUEST', 'max_fee_rate'],
    [{ max_fee_rate: '1.0001' }, 400, 'INVALID_REQUEST', 'max_fee_rate'],
    [{ max_fee_rate: '100000' }, 400, 'INVALID_REQUEST', 'max_fee_rate'],
    [{ max_fee_rate: 'fast' }, 400, 'INVALID_REQUEST', 'max_fee_rate'],
    [{ target_coins: undefined }, 400, 'INVALID_REQUEST', 'target_coins'],
    [{ target_coins: 0 }, 400, 'INVALID_REQUEST', 'target_coins'],
    [{ target_coins: 1.5 }, 400, 'INVALID_REQUEST', 'target_coins'],
    [{ target_coins: '1' }, 400, 'INVALID_REQUEST', 'target_coins'],
    [{ target_coins: 1_000_001 }, 400, 'INVALID_REQUEST', 'target_coins'],
    [{ min_value: 0 }, 400, 'INVALID_AMOUNT', 'min_value'],
    [{ min_value: '0.000000001' }, 400, 'INVALID_AMOUNT', 'min_value'],
    [{ min_value: -1 }, 400, 'INVALID_REQUEST', 'min_value'],
    [{ sequence_id: undefined }, 400, 'INVALID_REQUEST', 'sequence_id'],
    [{ sequence_id: '' }, 400, 'INVALID_REQUEST', 'sequence_id'],
    [{ fee_rate: 1 }, 400, 'UNKNOWN_FIELD', 'fee_rate'],
  ]
  for (const [more, ...expected] of cases) {
    const [status, code, field] = await refused(user, wallet, { sequence_id: 'same', ...more })
    assert.deepEqual([status, code, field], expected, JSON.stringify(more))
  }
  assert.deepEqual(await transactionsOf(user), [])
  assert.equal((await merge(user, wallet, { sequence_id: 'same' })).status, 200)
  for (const asset of ['ETH', 'ADA', 'USDT_ETH']) {
    const [other] = await api.admin.query<{ id: string }>(
      `insert into wallets (workspace_id, sub_account_id, asset, network)
       values ($1, $2, $3, $4) returning id`,
      [user.workspaceId, user.subAccountId, asset, asset === 'ADA' ? 'ADA' : 'ETH'],
    )
    const found = await refused(user, String(other?.id), { asset: undefined })
    assert.deepEqual(found.slice(0, 3), [400, 'UNSUPPORTED_ASSET', 'id'])
  }
})

test('the wallet of another sub-account or workspace does not exist, and a read-only key cannot merge', async () => {
  const { user, wallet } = await userWith('BTC', 60)
  const others = [
    await api.user(user.workspace, { subAccount: 'second' }),
    (await userWith('BTC', 60)).user,
  ]
  for (const other of others)
    assert.deepEqual((await refused(other, wallet)).slice(0, 3), [404, 'NOT_FOUND', 'id'])
  for (const id of [randomUUID(), 'x', `${wallet}0`])
    assert.deepEqual((await refused(user, id)).slice(0, 3), [404, 'NOT_FOUND', 'id'])
  const reader = await api.user(user.workspace, { role: 'read-only' })
  assert.equal((await refused(reader, wallet))[1], 'READ_ONLY')
  await api.admin.query(`update wallets set status = 'inactive' where id = $1`, [wallet])
  assert.equal((await refused(user, wallet))[1], 'WALLET_INACTIVE')
})

test('the same sequence_id returns the first response, also concurrently and with other fields', async () => {
  const { user, wallet } = await userWith('BTC', 100)
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => merge(user, wallet, { sequence_id: 'once' })),
  )
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 200, 200, 200],
    answers.map(({ text }) => text).join('\n'),
  )
  assert.equal(new Set(answers.map(({ body: { id } }) => id)).size, 1)
  const spelled = await merge(user, wallet, { sequence_id: 'once', max_fee_rate: 10 })
  assert.deepEqual([spelled.status, spelled.headers.get('warning')], [200, null])
  const unnamed = await merge(user, wallet, { sequence_id: 'once', asset: undefined })
  assert.deepEqual([unnamed.status, unnamed.headers.get('warning')], [200, null])
  const other = await merge(user, wallet, { sequence_id: 'once', target_coins: 5 })
  assert.match(other.headers.get('warning') ?? '', /another payload/)
  assert.equal((await transactionsOf(user)).length, 1)
})

test('each Bitcoin-like asset can be merged', async () => {
  for (const asset of ['LTC', 'DOGE', 'DASH', 'BCH']) {
    rate = asset === 'DOGE' ? 1_000_000n : 5_000n
    const { user, wallet } = await userWith(asset, 60, { value: 100_000_000 })
    const { status, text } = await merge(user, wallet, { asset, max_fee_rate: '2000' })
    assert.equal(status, 200, text)
  }
  rate = 5_000n
})
