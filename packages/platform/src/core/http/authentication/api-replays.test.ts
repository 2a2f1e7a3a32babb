import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { newInvoiceId } from '../../../commerce/invoices/invoice.ts'
import { useApi, type Problem } from '../../../../testing/api-support.ts'
import { call, transferBody, type Transfer, type User } from '../../../../testing/harness.ts'

/**
 * Tests that a request with a used `sequence_id` gets the original response, whatever else it
 * contains, with the real endpoints over HTTP.
 */
const api = useApi()
before(() => api.started)

const TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
const TRON = 'TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW'
const WARNING =
  '299 custody "sequence_id was used before with another payload; the first answer is given and nothing new was done"'
type Owner = Awaited<ReturnType<typeof api.user>>

/** Creates a caller with ten BTC. */
async function funded(o: Parameters<typeof api.user>[1] = {}, workspace: string = randomUUID()) {
  const user = await api.user(workspace, o)
  const { id: wallet } = (
    await call<{ id: string }>(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  ).body
  await api.fund(user, 'BTC', 1_000_000_000n)
  return { user, wallet }
}

const send = (user: User, path: string, body: unknown) =>
  call<Transfer & Problem>(user, 'POST', path, body)
const said = ({ status, text, headers }: Awaited<ReturnType<typeof send>>) => [
  status,
  text,
  headers.get('idempotent-replayed'),
  headers.get('warning'),
]
const made = async (wallet: string) =>
  (
    await api.database.query<{ id: string }>('select id from transactions where wallet_id = $1', [
      wallet,
    ])
  ).map(({ id }) => id)

test('a transfer with a used sequence_id returns the first response, even for an invalid body', async () => {
  const { user, wallet } = await funded()
  const first = await send(
    user,
    '/dac/v1/transaction',
    transferBody('BTC', '0.1', TO, { sequence_id: 'rent-7' }),
  )
  assert.equal(first.status, 200, first.text)
  const key = { asset: 'BTC', sequence_id: 'rent-7' }
  const whole = {
    ...key,
    amount: 0.1,
    destination_address: TO,
    destination_type: 'EXTERNAL',
    source_type: 'INTERNAL',
  }
  for (const body of [
    key,
    { ...key, amount: 0.1 },
    { ...whole, amount: true },
    { ...whole, amount: '1,5' },
    { ...whole, amount: null },
    { ...whole, destination_address: 7 },
    { ...whole, destination_address: 'nowhere' },
    { ...whole, destination_type: 'INTERNAL' },
    { ...whole, source_type: 'external' },
    { ...whole, memo: 'a\u0000b' },
    { ...whole, memo: '' },
    { ...whole, fee_rate: 'fast' },
    { ...whole, colour: 'red' },
    { ...whole, amount: 0 },
    { ...whole, amount: 0.000000000001 },
    { ...whole, destination_type: 'EXCHANGE' },
    { ...whole, fee_rate: 1, fee_level: 'low' },
    { ...whole, address_tag: '5' },
    { ...whole, amount: 5000 },
  ]) {
    assert.deepEqual(
      said(await send(user, '/dac/v1/transaction', body)),
      [200, first.text, 'true', WARNING],
      JSON.stringify(body),
    )
  }
  assert.deepEqual(await made(wallet), [first.body.id])
})

test('an invalid body with a new sequence_id gets 400, and the sequence_id stays unused', async () => {
  const { user, wallet } = await funded()
  for (const [more, field] of [
    [{}, 'amount'],
    [{ amount: true }, 'amount'],
    [{ sequence_id: '' }, 'amount'],
    [{ sequence_id: null }, 'amount'],
    [{ colour: 'red' }, 'colour'],
  ] as const) {
    const answer = await send(user, '/dac/v1/transaction', {
      asset: 'BTC',
      sequence_id: 'new',
      ...more,
    })
    assert.deepEqual(
      [answer.status, answer.body.field, answer.headers.get('idempotent-replayed')],
      [400, field, null],
      answer.text,
    )
  }
  for (const body of [
    '{"asset":"BTC","sequence_id":"new"',
    '[]',
    '{"asset":"BTC","sequence_id":"new","sequence_id":"new"}',
  ]) {
    const answer = await send(user, '/dac/v1/transaction', body)
    assert.deepEqual([answer.status, answer.body.code], [400, 'INVALID_JSON'], answer.text)
  }
  const taken = await send(
    user,
    '/dac/v1/transaction',
    transferBody('BTC', '0.1', TO, { sequence_id: 'new' }),
  )
  assert.deepEqual(
    [taken.status, taken.headers.get('idempotent-replayed')],
    [200, null],
    taken.text,
  )
  assert.deepEqual(await made(wallet), [taken.body.id])
  const numbered = await send(user, '/dac/v1/transaction', { asset: 'BTC', sequence_id: 7 })
  assert.equal(numbered.status, 400, 'a key that no request can have been taken with')
})

test('a caller without access to the wallet does not learn whether a sequence_id was used', async () => {
  const workspace = randomUUID()
  const { user } = await funded({}, workspace)
  const first = await send(
    user,
    '/dac/v1/transaction',
    transferBody('BTC', '0.1', TO, { sequence_id: 'mine' }),
  )
  assert.equal(first.status, 200, first.text)
  const body = { asset: 'BTC', sequence_id: 'mine' }
  const reader = await api.user(workspace, { role: 'read-only' })
  assert.deepEqual(
    (({ status, body: { code } }) => [status, code])(
      await send(reader, '/dac/v1/transaction', body),
    ),
    [403, 'READ_ONLY'],
  )
  assert.equal(
    (await call(null, 'POST', '/dac/v1/transaction', body, { base: api.base })).status,
    401,
  )
  const others = [
    (await funded({ subAccount: 'other' }, workspace)).user,
    (await funded()).user,
    await api.user(workspace, { subAccount: 'empty' }),
  ]
  for (const other of others) {
    const answer = await send(other, '/dac/v1/transaction', body)
    assert.deepEqual(
      [answer.status, answer.headers.get('idempotent-replayed')],
      [400, null],
      answer.text,
    )
  }
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'ETH' })
  const ether = await send(user, '/dac/v1/transaction', { asset: 'ETH', sequence_id: 'mine' })
  assert.deepEqual(
    [ether.status, ether.headers.get('idempotent-replayed')],
    [400, null],
    'the key is of another wallet',
  )
})

test('a used sequence_id returns its response after the asset was removed, without price or node', async () => {
  const { user, wallet } = await funded()
  const whole = transferBody('BTC', '0.1', TO, { sequence_id: 'before' })
  const first = await send(user, '/dac/v1/transaction', whole)
  assert.equal(first.status, 200, first.text)
  const { networks, prices } = api.services
  const without = Object.assign(Object.create(networks as object) as typeof networks, {
    has: (code: string) => code !== 'BTC',
  })
  Object.assign(api.services, { networks: without, prices: { price: () => null } })
  try {
    const fresh = await send(
      user,
      '/dac/v1/transaction',
      transferBody('BTC', '0.1', TO, { sequence_id: 'after' }),
    )
    assert.deepEqual([fresh.status, fresh.body.code], [400, 'UNSUPPORTED_ASSET'], fresh.text)
    assert.deepEqual(
      said(await send(user, '/dac/v1/transaction', whole)),
      [200, first.text, 'true', null],
      'the same payload',
    )
    assert.deepEqual(
      said(await send(user, '/dac/v1/transaction', { asset: 'BTC', sequence_id: 'before' })),
      [200, first.text, 'true', WARNING],
    )
  } finally {
    Object.assign(api.services, { networks, prices })
  }
  assert.deepEqual(await made(wallet), [first.body.id])
})

test('an invalid body is refused while the first request of its sequence_id is being stored', async () => {
  const { user, wallet } = await funded()
  const bad = () => send(user, '/dac/v1/transaction', { asset: 'BTC', sequence_id: 'raced' })
  let first: ReturnType<typeof send> | undefined
  await api.database.transaction(async (tx) => {
    // The first request must write its idempotency row before it reaches the balance.
    await tx.query('select 1 from ledger_accounts where wallet_id = $1 for update', [wallet])
    first = send(
      user,
      '/dac/v1/transaction',
      transferBody('BTC', '0.1', TO, { sequence_id: 'raced' }),
    )
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock'
      and datname = current_database()
      and query ~ '(create|write)_withdrawal'`
    while ((await api.database.query(waiting)).length === 0)
      await new Promise((resolve) => setTimeout(resolve, 10))
    const early = await bad()
    assert.deepEqual(
      [early.status, early.headers.get('idempotent-replayed')],
      [400, null],
      early.text,
    )
  })
  const taken = await (first as ReturnType<typeof send>)
  assert.deepEqual(
    [taken.status, taken.headers.get('idempotent-replayed')],
    [200, null],
    taken.text,
  )
  assert.deepEqual(said(await bad()), [200, taken.text, 'true', WARNING])
  assert.deepEqual(await made(wallet), [taken.body.id])
})

/**
 * Inserts the row that each endpoint stores for an answered request. The stored response is
 * `{"id":"first"}`.
 */
const KEPT: Record<string, (owner: Owner) => Promise<void>> = {
  orders: async ({ workspaceId, subAccountId }) => {
    const account = await linked(workspaceId, subAccountId)
    await api.database.query(
      `insert into orders (id, workspace_id, sub_account_id, account_id, exchange, market, base,
         quote, side, type, amount, price,
         time_in_force, post_only, client_id, platform_fee, sequence_id, payload_hash, response,
           next_run_at, created_at, updated_at)
       values ($1, $2, $3, $4, 'kraken', 'BTC/USD', 'BTC', 'USD', 'buy', 'limit', 1, 1, 'GTC',
         false, $1::uuid::text, 0, 'once', 'ab',
         '{"id":"first"}', $5, $5, $5)`,
      [randomUUID(), workspaceId, subAccountId, account, new Date()],
    )
  },
  exchange_transfers: async ({ workspaceId, subAccountId }) => {
    const account = await linked(workspaceId, subAccountId)
    await api.database.query(
      `insert into exchange_transfers (id, workspace_id, sub_account_id, account_id, exchange,
         direction, asset, network, coin, amount,
         address, client_id, state, sequence_id, payload_hash, response, next_run_at, created_at,
           updated_at)
       values ($1, $2, $3, $4, 'kraken', 'from_exchange', 'BTC', 'BTC', 'XBT', 1, $5,
         $1::uuid::text, 'NEW', 'once', 'ab', '{"id":"first"}', $6, $6,
         $6)`,
      [randomUUID(), workspaceId, subAccountId, account, TO, new Date()],
    )
  },
  invoices: async ({ workspaceId, subAccountId }) => {
    await api.database.query(
      `insert into invoices
         (id, workspace_id, sub_account_id, tolerance, sequence_id, payload_hash, response,
           expires_at, created_at, updated_at)
       values ($1, $2, $3, 0, 'once', 'ab', '{"id":"first"}', '2099-01-01', now(), now())`,
      [randomUUID(), workspaceId, subAccountId],
    )
  },
  conversions: async (owner) => {
    await KEPT['orders']?.(owner)
    const order = await api.database.one<{ id: string; account_id: string }>(
      'select id, account_id from orders where sub_account_id = $1',
      [owner.subAccountId],
    )
    await api.database.query(
      `insert into conversions (id, workspace_id, sub_account_id, account_id, exchange, market,
         side, from_coin, to_coin, given, amount, price,
         receive, others, expires_at, order_id, sequence_id, payload_hash, response, created_at)
       values ($1, $2, $3, $4, 'kraken', 'BTC/USD', 'buy', 'USD', 'BTC', 1, 1, 1, 1, '[]',
         '2099-01-01', $5, 'once', 'ab', '{"id":"first"}',
         now())`,
      [randomUUID(), owner.workspaceId, owner.subAccountId, order?.account_id, order?.id],
    )
  },
  idempotency: async (owner) => {
    const created = await call<{ id: string }>(owner, 'POST', '/dac/v1/create-wallet', {
      asset: 'TRX',
    })
    assert.equal(created.status, 200, created.text)
    await api.database.query(
      `insert into idempotency (workspace_id, wallet_id, sequence_id, transaction_id, payload_hash,
        response)
       values ($1, $2, 'once', $3, 'ab', '{"id":"first"}')`,
      [owner.workspaceId, created.body.id, randomUUID()],
    )
  },
}

async function linked(workspaceId: string, subAccountId: string): Promise<string> {
  const id = randomUUID()
  await api.database.query(
    `insert into exchange_accounts (id, workspace_id, sub_account_id, exchange, label, key_hash,
       key_hint, allow_withdrawal, permissions,
       checked_at, balances_at, created_at, updated_at)
         values ($1, $2, $3, 'kraken', 'a', $1::uuid::text, 'h', true, '{}', $4, $4, $4, $4)`,
    [id, workspaceId, subAccountId, new Date()],
  )
  return id
}

for (const [path, table, bodies] of [
  ['/dac/v1/orders', 'orders', [{}, { market: 7 }, { side: 'hold' }]],
  [
    '/dac/v1/exchange-withdrawals',
    'exchange_transfers',
    [{}, { asset: 'NONE', exchange_account: 'x', amount: 1 }, { amount: [] }],
  ],
  [
    '/dac/v1/invoices',
    'invoices',
    [{}, { fiat: 'XXX' }, { fiat: 'USD', fiat_amount: 'many' }, { payer: 'Ann' }],
  ],
  [
    '/dac/v1/conversions',
    'conversions',
    [{}, { amount: {} }, { accounts: [] }, { quote: 'none' }, { quote: randomUUID() }],
  ],
  [
    '/dav/v1/stake',
    'idempotency',
    [{}, { asset: 'TRX' }, { asset: 'TRX', address: 'no', resource: 'ENERGY', amount: 5 }],
  ],
  [
    '/dav/v1/unstake',
    'idempotency',
    [{}, { asset: 'BTC' }, { asset: 'TRX', address: TRON, resource: 'GAS', amount: 5 }],
  ],
  [
    '/dav/v1/release-unstaked',
    'idempotency',
    [{}, { asset: 'TRX', address: 'no' }, { asset: 'TRX', address: TRON }],
  ],
] as const) {
  test(`POST ${path} with a used sequence_id returns the first response, whatever the body is`, async () => {
    const workspace = randomUUID()
    const owner = await api.user(workspace)
    const other = await api.user(workspace, { subAccount: 'other' })
    for (const body of bodies) {
      const fresh = await send(owner, path, { ...body, sequence_id: 'once' })
      assert.ok(
        fresh.status >= 400 && fresh.headers.get('idempotent-replayed') === null,
        fresh.text,
      )
    }
    await KEPT[table]?.(owner)
    for (const body of bodies) {
      assert.deepEqual(
        said(await send(owner, path, { ...body, sequence_id: 'once' })),
        [200, '{"id":"first"}', 'true', WARNING],
        JSON.stringify(body),
      )
      const theirs = await send(other, path, { ...body, sequence_id: 'once' })
      assert.ok(
        theirs.status >= 400 && theirs.headers.get('idempotent-replayed') === null,
        theirs.text,
      )
    }
  })
}

test("a refund with a used sequence_id is replayed, but another sub-account's invoice is refused", async () => {
  const { user, wallet } = await funded()
  const invoice = newInvoiceId(api.services)
  await api.database.query(
    `insert into invoices
       (id, workspace_id, sub_account_id, status, tolerance, response, expires_at, created_at,
         updated_at)
     values ($1, $2, $3, 'Paid', 0, '', '2099-01-01', now(), now())`,
    [invoice, user.workspaceId, user.subAccountId],
  )
  const first = await send(
    user,
    '/dac/v1/transaction',
    transferBody('BTC', '0.1', TO, { sequence_id: 'back' }),
  )
  assert.equal(first.status, 200, first.text)
  const body = { asset: 'BTC', sequence_id: 'back', destination_type: 'EXCHANGE' }
  assert.deepEqual(said(await send(user, `/dac/v1/invoices/${invoice}/refund`, body)), [
    200,
    first.text,
    'true',
    WARNING,
  ])
  const { user: stranger } = await funded()
  await send(
    stranger,
    '/dac/v1/transaction',
    transferBody('BTC', '0.1', TO, { sequence_id: 'back' }),
  )
  assert.equal((await send(stranger, `/dac/v1/invoices/${invoice}/refund`, body)).status, 403)
  assert.deepEqual(await made(wallet), [first.body.id])
})
