// Tests of the search for transactions by the whole memo or by its beginning, with the real
// endpoint on a real database.
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { useApi } from '../../../testing/api-support.ts'
import { call, transferBody, type Transfer, type User } from '../../../testing/harness.ts'

const api = useApi()
const TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
const MATCHES_MAX = 1000
let acme: User & { workspaceId: string; subAccountId: string }
let other: typeof acme
before(async () => {
  await api.started
  ;[acme, other] = [
    (await api.user('acme')) as typeof acme,
    (await api.user('other')) as typeof acme,
  ]
  for (const user of [acme, other]) {
    await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
    await api.fund(user, 'BTC', 10_000_000_000n)
  }
})

async function send(user: User, memo: string): Promise<string> {
  const { status, body, text } = await call<Transfer>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('BTC', '0.1', TO, { memo }),
  )
  assert.equal(status, 200, text)
  return body.id
}

interface Found {
  data: { id: string; memo: string }[]
  total: number
  field?: string
  message?: string
}
const find = (query: Record<string, string>, user: User = acme) =>
  call<Found>(user, 'GET', `/dac/v1/transactions?${new URLSearchParams(query)}`)
const memos = async (query: Record<string, string>, user?: User) => {
  const { status, body, text } = await find(query, user)
  assert.equal(status, 200, text)
  return body.data.map(({ memo }) => memo)
}

/** Inserts `count` confirmed withdrawals. `memo` is an SQL expression over the row number `n`. */
const insert = (count: number, memo: string) =>
  api.database.query(
    `insert into transactions (id, kind, workspace_id, sub_account_id, asset, network, amount,
      fee_asset, source_type, destination_type,
     destination_id, memo, state, status, created_at, confirmed_at)
   select gen_random_uuid(), 'WITHDRAWAL', $1, $2, 'BTC', 'BTC', n, 'BTC', 'INTERNAL', 'EXTERNAL',
     'bcrt1qexample', ${memo}, 'CONFIRMED',
     'confirmed', timestamptz '2026-01-01' - n * interval '1 second', timestamptz '2026-01-01'
   from generate_series(1, $3::int) n`,
    [acme.workspaceId, acme.subAccountId, count],
  )

test('attack: an incompressible memo of 1,000 characters is accepted, and found by its prefix', async () => {
  const random = (length: number) =>
    Array.from({ length }, (_, n) => String.fromCodePoint(0x4e00 + ((n * 7919) % 20_000))).join('')
  const longest = random(1000)
  const surrogates = Array.from({ length: 500 }, (_, n) =>
    String.fromCodePoint(0x20000 + ((n * 7919) % 40_000)),
  ).join('')
  for (const memo of [longest, surrogates]) {
    const id = await send(acme, memo)
    const { body, text } = await find({ memo_begins: memo.slice(0, 100) })
    assert.deepEqual(
      body.data?.map((each) => [each.id, each.memo]),
      [[id, memo]],
      text,
    )
  }
  // The whole memo is compared, not only the part that the index contains.
  const [half, more] = [random(300), random(301)]
  await send(acme, half)
  await send(acme, more)
  assert.deepEqual(await memos({ memo: half }), [half])
  assert.deepEqual(await memos({ memo: random(299) }), [])
})

test('memo_begins matches prefixes, ignores the case of a to z, and combines with other filters', async () => {
  for (const memo of [
    'Invoice 17',
    'invoice 18',
    'an invoice',
    'inv_1',
    'inv%1',
    'inv\\1',
    'Größe 4',
  ])
    await send(acme, memo)
  await send(other, 'invoice of another')
  assert.deepEqual(await memos({ memo_begins: 'INVOICE' }), ['invoice 18', 'Invoice 17'])
  assert.deepEqual(await memos({ memo_begins: 'inv' }), [
    'inv\\1',
    'inv%1',
    'inv_1',
    'invoice 18',
    'Invoice 17',
  ])
  for (const [text, result] of [
    ['inv_', 'inv_1'],
    ['inv%', 'inv%1'],
    ['inv\\', 'inv\\1'],
    ['Größ', 'Größe 4'],
  ] as const) {
    assert.deepEqual(await memos({ memo_begins: text }), [result], text)
  }
  assert.deepEqual(await memos({ memo_begins: 'invoice', page: '2', limit: '1' }), ['Invoice 17'])
  assert.deepEqual(await memos({ memo_begins: 'invoice', status: 'failed' }), [])
  assert.deepEqual(await memos({ memo_begins: 'invoice', asset: 'BTC', status: 'pending' }), [
    'invoice 18',
    'Invoice 17',
  ])
  assert.deepEqual(await memos({ memo_begins: 'invoice' }, other), ['invoice of another'])
  assert.deepEqual(await memos({ memo: 'invoice 17' }), [], 'memo alone is exact')
  assert.deepEqual(await memos({ memo: 'Invoice 17' }), ['Invoice 17'])
})

test('memo_begins accepts 1 to 100 characters without NUL', async () => {
  for (const text of ['', 'x'.repeat(101), 'a\0']) {
    const { status, body } = await find({ memo_begins: text })
    assert.deepEqual([status, body.field], [400, 'memo_begins'], JSON.stringify(text))
  }
})

test('a prefix of more than 1,000 memos is refused with advice, and one of 1,000 is accepted', async () => {
  await insert(MATCHES_MAX, `'bulk ' || n`)
  const all = await find({ memo_begins: 'bulk', limit: '2' })
  assert.deepEqual(
    [all.body.data.map(({ memo }) => memo), Number(all.body.total)],
    [['bulk 1', 'bulk 2'], MATCHES_MAX],
  )
  await insert(1, `'Bulk, one more'`)
  const { status, body } = await find({ memo_begins: 'bulk', status: 'failed' })
  assert.deepEqual([status, body.field], [400, 'memo_begins'])
  assert.match(
    String(body.message),
    /memo_begins: more than 1000 transactions have a memo with this prefix; send a longer prefix/,
  )
  assert.deepEqual(await memos({ memo_begins: 'bulk 100' }), ['bulk 100', 'bulk 1000'])
})
