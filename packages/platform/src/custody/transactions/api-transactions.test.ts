import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { chargePlatformFee } from '../prepaid-fee/fees.ts'
import { withdrawalKind } from './kind.ts'
import { presentTransaction } from '../../core/engine/present.ts'
import type { TransactionRow } from '../../core/engine/transaction.ts'
import { runStep } from '../../core/engine/run.ts'
import { document } from '../../../testing/openapi-assertions.ts'
import { useApi } from '../../../testing/api-support.ts'
import { call, transferBody, type Transfer } from '../../../testing/harness.ts'

/**
 * Tests of the fields of a transaction and of the ways to find one, with the real endpoints and
 * steps on a real database.
 */
const api = useApi()
const TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
let user: Awaited<ReturnType<typeof api.user>>
before(async () => {
  await api.started
  user = await api.user('transactions')
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  await api.fund(user, 'BTC', 1_000_000_000n)
})

interface TransferResponse extends Transfer {
  platform_fee: string
  created_at: string
  updated_at: string
  confirmed_at: string | null
  memo: string
  replacements?: { fee_rate: string | null }[]
}
const read = async (id: string) =>
  (await call<TransferResponse>(user, 'GET', `/dac/v1/transaction/${id}`)).body
const prepaid = async () =>
  Number((await call<{ balance: string }>(user, 'POST', '/dac/v1/prepaid-fee', {})).body.balance)
const list = async (query: string) =>
  (
    await call<{ data: TransferResponse[]; total: string }>(
      user,
      'GET',
      `/dac/v1/transactions?${query}`,
    )
  ).body

async function create(more: Record<string, unknown> = {}): Promise<TransferResponse> {
  const answer = await call<TransferResponse>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('BTC', '0.1', TO, more),
  )
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

const leased = async (id: string) =>
  (await api.database.one<TransactionRow<'WITHDRAWAL'>>(
    `update transactions set lease_token = gen_random_uuid(), attempts = attempts + 1 where id = $1
      returning *`,
    [id],
  )) as TransactionRow<'WITHDRAWAL'>
const lastEvent = async (id: string) =>
  (
    await api.database.one<{ payload: Record<string, unknown> }>(
      `select payload from events where payload->>'id' = $1 order by id desc limit 1`,
      [id],
    )
  )?.payload

/** Runs the steps of a transfer, as the worker does, until the transfer has ended. */
async function steps(id: string): Promise<TransferResponse> {
  for (let count = 0; count < 5; count++) {
    await runStep(api.services, await leased(id))
    const shown = await read(id)
    if (shown.status !== 'pending') return shown
  }
  throw new Error(`it is still ${(await read(id)).sub_status}`)
}

test('a transfer that fails before submission has no network fee; its platform fee is returned', async () => {
  for (const how of ['fails', 'is cancelled'] as const) {
    const before = await prepaid()
    const made = await create()
    assert.ok(
      Number(made.fee) > 0 && Number(made.platform_fee) > 0,
      `${made.fee}, ${made.platform_fee}: the estimates while it is pending`,
    )
    assert.ok((await prepaid()) < before)
    if (how === 'fails')
      await api.database.query(
        `update transactions set state = 'VOIDING', plan = plan || '{"reason":"a test"}'
          where id = $1`,
        [made.id],
      )
    else
      assert.equal(
        (await call(user, 'POST', `/dac/v1/transaction/${made.id}/cancel`, {})).status,
        200,
      )
    const ended = await steps(made.id)
    assert.deepEqual(
      [ended.sub_status, ended.fee, ended.platform_fee],
      [how === 'fails' ? 'FAILED' : 'CANCELLED', '0', '0'],
    )
    assert.equal(await prepaid(), before)
    const event = await lastEvent(made.id)
    assert.deepEqual([event?.['fee'], event?.['platform_fee']], [0, 0], 'the event says the same')
  }
})

test('a transfer that the chain reverted lists its network fee', async () => {
  const made = await create()
  const row = await leased(made.id)
  await api.database.transaction(async (tx) => {
    await chargePlatformFee(api.services, tx, row)
    await withdrawalKind(api.services).settle?.(
      tx,
      { ...row, hash: 'ab'.repeat(32) },
      { fee: 123n, succeeded: false, cancelled: false, confirmations: 6, staking: undefined },
    )
  })
  const ended = await read(made.id)
  assert.deepEqual(
    [ended.sub_status, ended.fee, ended.platform_fee],
    ['REVERTED', '0.00000123', made.platform_fee],
  )
})

test('updated_at is never before confirmed_at, even if clocks differ', async () => {
  for (const aheadMs of [5000, -5000]) {
    const made = await create()
    const row = await leased(made.id)
    const nowMs = Date.parse(made.created_at) + aheadMs
    api.now = () => nowMs
    try {
      await api.database.transaction((tx) =>
        withdrawalKind(api.services).settle!(
          tx,
          { ...row, hash: 'cd'.repeat(32) },
          { fee: 1n, succeeded: true, cancelled: false, confirmations: 6, staking: undefined },
        ),
      )
    } finally {
      api.now = Date.now
    }
    const ended = await read(made.id)
    assert.equal(ended.status, 'confirmed')
    assert.ok(
      ended.confirmed_at !== null && ended.updated_at >= ended.confirmed_at,
      `${ended.updated_at} is before ${ended.confirmed_at}`,
    )
    const event = (await lastEvent(made.id)) as { updated_at: string; confirmed_at: string }
    assert.ok(event.updated_at >= event.confirmed_at, JSON.stringify(event))
  }
})

test('the memo is a string, and empty if there was none', async () => {
  assert.equal((await create({ memo: 'rent' })).memo, 'rent')
  const without = await create()
  assert.equal(without.memo, '')
  assert.equal((await read(without.id)).memo, '')
  assert.equal(((await lastEvent(without.id)) as { memo: string }).memo, '')
  const { properties } = document.components.schemas['Transaction'] as {
    properties: Record<string, { type: unknown; description: string }>
  }
  const { memo, fee } = properties
  assert.equal(memo?.type, 'string')
  assert.match(memo?.description ?? '', /empty if there was none/)
  assert.match(fee?.description ?? '', /0 if the transaction failed before it reached a chain/)
})

test('every amount of a request may be a number or text, as the document states', async () => {
  const ask = (amount: string, sequence: string) =>
    call<TransferResponse & { field?: string }>(
      user,
      'POST',
      '/dac/v1/transaction',
      `{"asset":"BTC","amount":${amount},"destination_address":"${TO}","destination_type":"EXTERNAL","source_type":"INTERNAL",` +
        `"sequence_id":"${sequence}"}`,
    )
  const number = await ask('0.12345678', 'digits')
  const text = await ask('"0.12345678"', 'text')
  for (const { status, body, text: said } of [number, text])
    assert.deepEqual([status, body.amount], [200, '0.12345678'], said)
  assert.match(text.text, /"amount":0\.12345678,/, 'an answer has a number')
  const again = await ask('"0.12345678"', 'digits')
  assert.deepEqual(
    [again.text, again.headers.get('warning')],
    [number.text, null],
    'the same digits are the same payload',
  )
  const texts = ['1,5', ' 1', '0x1', '-1', '', '.5', '1.', '١']
  for (const bad of [...texts.map((each) => JSON.stringify(each)), '-1', 'true']) {
    const { status, body, text: said } = await ask(bad, 'bad')
    assert.deepEqual([status, body.field], [400, 'amount'], said)
  }
  const amounts: string[] = []
  for (const [name, { properties = {} }] of Object.entries(
    document.components.schemas as Record<string, { properties?: object }>,
  )) {
    if (!name.endsWith('Request')) continue
    for (const [field, schema] of Object.entries(properties)) {
      const said = JSON.stringify(schema)
      if (!said.includes('"type":"number"')) continue
      amounts.push(`${name}.${field}`)
      if (field === 'ts') continue
      const pattern = /\{"type":"string","pattern":("[^"]*"),"maxLength":\d+\}/.exec(said)?.[1]
      assert.ok(pattern, `${name}.${field}: ${said}`)
      for (const each of texts)
        assert.doesNotMatch(each, new RegExp(JSON.parse(pattern) as string, 'u'), said)
    }
  }
  for (const name of [
    'CreateTransactionRequest.amount',
    'StakeRequest.amount',
    'CreateOrderRequest.price',
    'CreateForwardingRuleRequest.daily_cap',
    'EstimateFeeRequest.fee_rate',
    'CreateInvoiceRequest.fiat_amount',
  ])
    assert.ok(amounts.includes(name), `${name} of ${amounts.join(', ')}`)
})

test('the fee rate of a replacement is a number', async () => {
  const made = await create()
  for (const rate of ['60', '012.5', null]) {
    await api.database.query(
      `insert into replacements (id, transaction_id, kind, state, fee_rate, workspace_id)
     values ($1, $2, 'SPEED_UP', 'DONE', $3, (select workspace_id from transactions where id = $2))`,
      [randomUUID(), made.id, rate],
    )
  }
  const answer = await call(user, 'GET', `/dac/v1/transaction/${made.id}`)
  assert.deepEqual(
    [...answer.text.matchAll(/"state":"done","fee_rate":([^,]+)/g)].map(([, rate]) => rate).sort(),
    ['12.5', '60', 'null'],
  )
})

test('a hash is found in any letter case if its chain ignores case', async () => {
  const { rows } = {
    rows: [
      '0x' + 'aB'.repeat(32),
      'E3'.repeat(32),
      '5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnbJLgp8uirBgmQpjKhoR4tjF3ZpRzrFmBV6UjKdiSZkQUW',
    ],
  }
  const ids = await Promise.all(
    rows.map(async (hash, at) => {
      const { id } = await create()
      await api.database.query('update transactions set hash = $2 where id = $1', [
        id,
        at === 0 ? hash.toLowerCase() : hash,
      ])
      return id
    }),
  )
  for (const [at, hash] of rows.entries()) {
    const spellings = at === 2 ? [hash] : [hash, hash.toLowerCase(), hash.toUpperCase()]
    for (const spelt of spellings)
      assert.deepEqual(
        (await list(`id=${spelt}`)).data.map(({ id }) => id),
        [ids[at]],
        spelt,
      )
  }
  assert.equal((await list(`id=${rows[2]?.toLowerCase()}`)).total, '0', 'base58 has cases')
  assert.deepEqual(
    (await list(`id=${ids[0]?.toUpperCase()}`)).data.map(({ id }) => id),
    [ids[0]],
  )
  assert.equal(
    (await list(`id=${ids[0]}&status=confirmed`)).total,
    '0',
    'other filters still apply',
  )
})

test('finds a transfer by its exact sequence_id in the caller’s sub-account, using an index', async () => {
  const made = await create({ sequence_id: 'Payout 1/ä' })
  const find = (value: string, more = '') => list(`sequence_id=${encodeURIComponent(value)}${more}`)
  assert.deepEqual(
    (await find('Payout 1/ä')).data.map(({ id }) => id),
    [made.id],
  )
  for (const other of ['payout 1/ä', 'Payout 1', 'Payout 1/%', 'none'])
    assert.equal((await find(other)).total, '0', other)
  assert.equal((await find('Payout 1/ä', '&asset=BTC&status=pending')).total, '1')
  assert.equal((await find('Payout 1/ä', '&status=failed')).total, '0')
  const sibling = await api.user('transactions', { subAccount: 'second' })
  assert.equal(
    (
      await call<{ total: string }>(
        sibling,
        'GET',
        `/dac/v1/transactions?sequence_id=${encodeURIComponent('Payout 1/ä')}`,
      )
    ).body.total,
    '0',
  )

  await api.database.query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, asset, network, amount,
       fee_asset, source_type,
       destination_type, state, status, sequence_id)
     select gen_random_uuid(), 'WITHDRAWAL', $1, $2, 'BTC', 'BTC', 1, 'BTC', 'INTERNAL', 'EXTERNAL',
       'CONFIRMED', 'confirmed', 'many ' || n from generate_series(1, 20000) n`,
    [user.workspaceId, user.subAccountId],
  )
  await api.admin.query('analyze transactions')
  const statements: { sql: string; values: unknown[] }[] = []
  const query = api.database.query.bind(api.database)
  Object.assign(api.database, {
    query: (sql: string, values: unknown[]) => {
      if (sql.includes('from transactions')) statements.push({ sql, values })
      return query(sql, values)
    },
  })
  assert.equal(
    (await find('many 77').finally(() => Object.assign(api.database, { query }))).total,
    '1',
  )
  for (const { sql, values } of statements) {
    const plan = await query<{ 'QUERY PLAN': string }>(`explain ${sql}`, values)
    assert.match(plan.map((line) => line['QUERY PLAN']).join('\n'), /transactions_sequence/)
  }
  assert.ok(statements.length > 0)
})

test("formatting a transaction does not depend on the database's clock", () => {
  const at = new Date('2026-01-01T00:00:01Z')
  const row = {
    id: 'x',
    kind: 'DEPOSIT',
    asset: 'BTC',
    fee_asset: 'BTC',
    amount: '1',
    fee: '0',
    state: 'CREDITED',
    status: 'confirmed',
    plan: {},
    created_at: at,
    updated_at: new Date('2026-01-01T00:00:00Z'),
    confirmed_at: at,
  } as unknown as TransactionRow
  assert.equal(presentTransaction(row, api.services.registry).updated_at, at.toISOString())
})

test('`address` finds transactions by sender or destination, in the caller’s sub-account only', async () => {
  const [mine, other] = [await create(), await create()]
  const sender = 'bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry'
  await api.database.query('update transactions set source_id = $2 where id = $1', [
    other.id,
    sender,
  ])
  const idsOf = async (query: string) => (await list(query)).data.map(({ id }) => id)
  const all = await idsOf('limit=200')
  const toIt = await idsOf(`dest_id=${TO}&limit=200`)
  assert.ok(toIt.includes(mine.id) && toIt.length < all.length)
  assert.deepEqual(await idsOf(`address=${TO}&limit=200`), toIt)
  assert.deepEqual(await idsOf(`address=${TO.toUpperCase()}&limit=200`), toIt)
  assert.deepEqual(await idsOf(`address=${sender}`), [other.id])
  assert.equal(
    String((await list(`address=${sender}`)).total),
    '1',
    'a count that is kept is not used',
  )
  assert.deepEqual(await idsOf(`address=${sender}&status=failed`), [])
  assert.deepEqual(await idsOf(`address=${TO.slice(0, -1)}`), [])
  const stranger = await api.user('a stranger to addresses')
  const theirs = await call<{ data: TransferResponse[]; total: number }>(
    stranger,
    'GET',
    `/dac/v1/transactions?address=${sender}`,
  )
  assert.deepEqual([theirs.status, theirs.body.data], [200, []])
  const empty = await call<{ field: string }>(user, 'GET', '/dac/v1/transactions?address=')
  assert.deepEqual([empty.status, empty.body.field], [400, 'address'])
})
