import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, test } from 'node:test'
import { queryObjects } from 'node:v8'
import { parseJson, stringifyJson } from '@custody/request-auth'
import { Batch } from '../batch.ts'
import type { Queryable } from '../database/pool.ts'
import { hashPayload } from '../engine/payload.ts'
import { ApiError } from '../errors.ts'
import type { Caller, Reply } from './endpoint.ts'
import { answeredBefore, answeredTo, madeOnce, onceOnly } from './replay.ts'
import { setWallet } from '../../server/operator/wallets.ts'
import { Withdrawals } from '../../custody/transactions/write-withdrawal.ts'
import { useApi, type Problem } from '../../../testing/api-support.ts'
import { call, transferBody, type Transfer } from '../../../testing/harness.ts'

/**
 * Tests that a repeated request pays only once and gets the original response, with the real
 * endpoints on a real database.
 */
const api = useApi()
before(() => api.started)

const TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
const WARNING =
  '299 custody "sequence_id was used before with another payload; the first answer is given and nothing new was done"'

/** Creates a caller with ten BTC. */
async function caller(workspace: string = randomUUID()) {
  const user = await api.user(workspace)
  const { id: wallet } = (
    await call<{ id: string }>(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  ).body
  await api.fund(user, 'BTC', 1_000_000_000n)
  const send = (amount: string, more: Record<string, unknown> = {}) =>
    call<Transfer & Problem>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody('BTC', amount, TO, more),
    )
  const made = async () =>
    (
      await api.database.query<{ id: string }>('select id from transactions where wallet_id = $1', [
        wallet,
      ])
    ).map(({ id }) => id)
  return { user, wallet, send, made }
}

test('a repeated request returns the first response, and warns if its payload differs', async () => {
  const { user, wallet, send, made } = await caller()
  const first = await send('0.1', { sequence_id: 'one', memo: 'rent' })
  assert.deepEqual(
    [first.status, first.headers.get('idempotent-replayed'), first.headers.get('warning')],
    [200, null, null],
    first.text,
  )
  const said = ({ text, headers }: typeof first) => [
    text,
    headers.get('idempotent-replayed'),
    headers.get('warning'),
  ]
  assert.deepEqual(said(await send('0.1', { sequence_id: 'one', memo: 'rent' })), [
    first.text,
    'true',
    null,
  ])
  const order = parseJson(
    transferBody('BTC', '0.1', TO, { sequence_id: 'one', memo: 'rent' }),
  ) as Record<string, unknown>
  const turned = stringifyJson(Object.fromEntries(Object.entries(order).reverse()))
  assert.deepEqual(
    said(await call(user, 'POST', '/dac/v1/transaction', turned)),
    [first.text, 'true', null],
    'fields have no order',
  )
  for (const other of [{ memo: 'Rent' }, {}]) {
    assert.deepEqual(said(await send('0.1', { sequence_id: 'one', ...other })), [
      first.text,
      'true',
      WARNING,
    ])
  }
  for (const amount of ['0.2', '1000']) {
    assert.deepEqual(
      said(await send(amount, { sequence_id: 'one', memo: 'rent' })),
      [first.text, 'true', WARNING],
      'before the balance',
    )
  }
  assert.deepEqual(await made(), [first.body.id])
  const events = await api.database.query(
    `select payload->>'id' id, sub_account_id owner from events where type = 'transaction.created'
      and workspace_id = $1`,
    [user.workspaceId],
  )
  assert.deepEqual(events, [{ id: first.body.id, owner: user.subAccountId }], 'told once')

  // Simulates a transaction that was adopted from the nodes' records. Its original payload is lost,
  // so no payload counts as different.
  await api.admin.query(`update idempotency set payload_hash = 'adopted' where wallet_id = $1`, [
    wallet,
  ])
  assert.deepEqual(said(await send('0.2', { sequence_id: 'one' })), [first.text, 'true', null])
})

test('a refused request does not use up its sequence_id', async () => {
  const { send, made } = await caller()
  const refused = await send('1000000', { sequence_id: 'retry' })
  const { code, field } = refused.body as unknown as { code: string; field: string }
  assert.deepEqual(
    [refused.status, code, field],
    [400, 'INSUFFICIENT_BALANCE', 'amount'],
    refused.text,
  )
  const accepted = await send('0.1', { sequence_id: 'retry' })
  assert.deepEqual(
    [accepted.status, accepted.headers.get('idempotent-replayed')],
    [200, null],
    accepted.text,
  )
  assert.deepEqual(await made(), [accepted.body.id])
})

test('an idempotency key applies to one wallet, and requests without a key each pay', async () => {
  const [one, two] = [await caller(), await caller()]
  const [first, second] = [
    await one.send('0.1', { sequence_id: 'same' }),
    await two.send('0.1', { sequence_id: 'same' }),
  ]
  const other = await one.send('0.1', { sequence_id: 'Same' })
  for (const { status, headers, text } of [first, second, other]) {
    assert.deepEqual([status, headers.get('idempotent-replayed')], [200, null], text)
  }
  assert.equal((await one.send('0.1', { sequence_id: 'same' })).text, first.text)
  assert.equal((await two.send('0.1', { sequence_id: 'same' })).text, second.text)
  assert.equal((await one.send('0.1', { sequence_id: 'Same' })).text, other.text)
  await one.send('0.1')
  await one.send('0.1')
  assert.deepEqual([(await one.made()).length, (await two.made()).length], [4, 1])
})

test('a transfer creates nothing if its wallet becomes inactive during the checks', async () => {
  const { wallet, send } = await caller()
  const { database } = api
  const one = database.one.bind(database)
  await send('0.1')
  const query = async (sql: string, values?: unknown[]) => {
    if (/(create|write)_withdrawal/.test(sql))
      await setWallet(api.services, { id: wallet, status: 'inactive' })
    return one(sql, values)
  }
  Object.assign(database, { one: query })
  const answer = await send('0.1', { sequence_id: 'late' }).finally(() =>
    Object.assign(database, { one }),
  )
  assert.deepEqual([answer.status, answer.body.code], [400, 'WALLET_INACTIVE'], answer.text)
  await setWallet(api.services, { id: wallet, status: 'active' })
  const again = await send('0.1', { sequence_id: 'late' })
  assert.deepEqual(
    [again.status, again.headers.get('idempotent-replayed')],
    [200, null],
    'a refused creation does not consume its key',
  )
})

test('a request repeated while the first is being stored returns the first transfer', async () => {
  const { wallet, send: order } = await caller()
  const { database } = api
  const { withdrawals } = api.services
  const send = () => order('0.1', { sequence_id: 'raced' })
  const waiting = async () =>
    (
      await database.one<{ n: number }>(
        `select count(*)::int n from pg_stat_activity where wait_event_type = 'Lock'
          and datname = current_database()
          and query ~ '(create|write)_withdrawal'`,
      )
    )?.n
  const until = async (n: number, other: Promise<unknown>) => {
    let ended = false
    void other.then(() => (ended = true))
    while (!ended && (await waiting()) !== n)
      await new Promise((resolve) => setTimeout(resolve, 10))
  }
  const sent: ReturnType<typeof send>[] = []
  await database
    .transaction(async (tx) => {
      // Both requests must write their idempotency row before they reach the balance.
      await tx.query('select 1 from ledger_accounts where wallet_id = $1 for update', [wallet])
      sent.push(send())
      await until(1, sent[0] as Promise<unknown>)
      await setWallet(api.services, { id: wallet, status: 'inactive' })
      // Simulates another process, which does not have the withdrawals of this process in memory.
      Object.assign(api.services, { withdrawals: new Withdrawals(database) })
      sent.push(send())
      await until(2, sent[1] as Promise<unknown>)
    })
    .finally(() => Object.assign(api.services, { withdrawals }))
  const [first, again] = (await Promise.all(sent)) as [
    Awaited<ReturnType<typeof send>>,
    Awaited<ReturnType<typeof send>>,
  ]
  assert.deepEqual([first.status, again.status], [200, 200], again.text)
  assert.deepEqual(
    [again.body.id, again.headers.get('idempotent-replayed')],
    [first.body.id, 'true'],
  )
})

test('two concurrent identical requests both return the same transfer', async () => {
  const { send: order } = await caller()
  const { database } = api
  const one = database.one.bind(database)
  const { prices } = api.services
  const send = () => order('0.1', { sequence_id: 'overtaken' })
  let first: Awaited<ReturnType<typeof send>> | undefined
  const query = async (sql: string, values?: unknown[]) => {
    if (!sql.includes('from idempotency')) return one(sql, values)
    Object.assign(database, { one })
    Object.assign(api.services, { prices })
    first = await send()
    return one(sql, values)
  }
  Object.assign(database, { one: query })
  Object.assign(api.services, { prices: { price: () => null } })
  const again = await send().finally(() => {
    Object.assign(database, { one })
    Object.assign(api.services, { prices })
  })
  assert.deepEqual([first?.status, again.status], [200, 200], again.text)
  assert.deepEqual(
    [again.body.id, again.headers.get('idempotent-replayed')],
    [first?.body.id, 'true'],
  )
})

test('stores a withdrawal together with its exchange transfer or refund, or neither of them', async () => {
  const { user, wallet, send, made } = await caller()
  const { database } = api
  const { withdrawals } = api.services
  let body: Record<string, unknown> = {}
  const noted = {
    write: (of: string, withdrawal: Record<string, unknown>) =>
      withdrawals.write(of, (body = withdrawal)),
  }
  Object.assign(api.services, { withdrawals: noted })
  const first = await send('0.1').finally(() => Object.assign(api.services, { withdrawals }))
  assert.equal(first.status, 200, first.text)
  const write = async (more: Record<string, unknown>) => {
    const id = randomUUID()
    await withdrawals.write(wallet, { ...body, id, sequence_id: id, ...more })
    return id
  }
  const keys = async () =>
    (await database.query('select 1 from idempotency where wallet_id = $1', [wallet])).length
  const scope = { workspace_id: user.workspaceId, sub_account_id: user.subAccountId }

  const account = randomUUID()
  await database.query(
    `insert into exchange_accounts (id, workspace_id, sub_account_id, exchange, label, key_hash,
       key_hint, allow_withdrawal, permissions,
       checked_at, balances_at, created_at, updated_at)
         values ($1, $2, $3, 'kraken', 'a', $1::uuid::text, 'h', true, '{}', $4, $4, $4, $4)`,
    [account, user.workspaceId, user.subAccountId, new Date()],
  )
  const goes = () => ({
    exchange_shown: '{"shown":1}',
    exchange_transfer: {
      ...scope,
      id: randomUUID(),
      account_id: account,
      exchange: 'kraken',
      asset: 'BTC',
      network: 'BTC',
      coin: 'XBT',
      amount: '1',
      address: TO,
      address_tag: null,
      created_at: new Date(),
    },
  })
  const sent = await write(goes())
  assert.deepEqual(
    await database.query('select transaction_id from exchange_transfers where account_id = $1', [
      account,
    ]),
    [{ transaction_id: sent }],
  )
  await database.query(`update exchange_accounts set status = 'deleted' where id = $1`, [account])
  await assert.rejects(write(goes()), { code: 'CU006' })

  const invoice = `inv ${randomUUID()}`
  const [status, paid] = [
    (to: string) => database.query('update invoices set status = $2 where id = $1', [invoice, to]),
    sent,
  ]
  await database.query(
    `insert into invoices (id, workspace_id, sub_account_id, status, tolerance, response,
      expires_at, created_at, updated_at)
     values ($1, $2, $3, 'Processing', 0, '', '2099-01-01', now(), now())`,
    [invoice, user.workspaceId, user.subAccountId],
  )
  await database.query(
    `insert into invoice_payments (transaction_id, invoice_id, workspace_id, asset, amount, status,
      counts, seen_at)
     values ($1, $2, $3, 'BTC', 15000000, 'confirmed', true, now())`,
    [paid, invoice, user.workspaceId],
  )
  await assert.rejects(write({ invoice_id: invoice }), { code: 'CU005' })
  await status('Paid')
  const refund = await write({ invoice_id: invoice })
  assert.deepEqual(
    await database.query('select transaction_id from invoice_refunds where invoice_id = $1', [
      invoice,
    ]),
    [{ transaction_id: refund }],
  )
  await assert.rejects(write({ invoice_id: invoice }), { code: 'CU004', detail: '5000000' })
  assert.deepEqual(
    new Set(await made()),
    new Set([first.body.id, sent, refund]),
    'of what is refused nothing is written',
  )
  assert.equal(await keys(), 2)
})

test('finds a stored response only by its workspace, owner and key together', async () => {
  const [one, two] = [await caller(), await caller()]
  const { database } = api
  const first = await one.send('0.1', { sequence_id: 'found' })
  const row = await database.one<{ hash: string }>(
    'select payload_hash hash from idempotency where wallet_id = $1',
    [one.wallet],
  )
  const payload = row?.hash as string
  const find = (workspace: string, wallet: string, key: string | undefined, hash = payload) =>
    answeredBefore(database, workspace, wallet, key, hash)
  assert.deepEqual(await find(one.user.workspaceId, one.wallet, 'found'), {
    text: first.text,
    headers: { 'idempotent-replayed': 'true' },
  })
  assert.deepEqual(await find(one.user.workspaceId, one.wallet, 'found', 'other'), {
    text: first.text,
    headers: { 'idempotent-replayed': 'true', warning: WARNING },
  })
  assert.equal(await find(two.user.workspaceId, one.wallet, 'found'), null)
  assert.equal(await find(one.user.workspaceId, two.wallet, 'found'), null)
  assert.equal(await find(one.user.workspaceId, one.wallet, 'lost'), null)

  await database.query(
    `insert into invoices
       (id, workspace_id, sub_account_id, tolerance, sequence_id, payload_hash, response,
         expires_at, created_at, updated_at)
     values ($1, $2, $3, 0, 'kept', 'ab', 'what was said', '2099-01-01', now(), now())`,
    [randomUUID(), one.user.workspaceId, one.user.subAccountId],
  )
  const query = ({ user }: typeof one, key: string, hash = 'ab', more: Partial<Caller> = {}) =>
    answeredTo(database, 'invoices', { ...user, ...more } as unknown as Caller, key, hash)
  assert.deepEqual(await query(one, 'kept'), {
    text: 'what was said',
    headers: { 'idempotent-replayed': 'true' },
  })
  assert.deepEqual(await query(one, 'kept', 'cd'), {
    text: 'what was said',
    headers: { 'idempotent-replayed': 'true', warning: WARNING },
  })
  assert.equal(await query(one, 'kept', 'ab', { workspaceId: two.user.workspaceId }), null)
  assert.equal(await query(one, 'kept', 'ab', { subAccountId: two.user.subAccountId }), null)
  assert.equal(await query(one, 'lost'), null)

  const nobody = {
    one: async () => assert.fail('nothing is asked without a key'),
  } as unknown as Queryable
  assert.equal(
    await answeredBefore(nobody, one.user.workspaceId, one.wallet, undefined, payload),
    null,
  )
  assert.equal(
    await answeredTo(nobody, 'invoices', one.user as unknown as Caller, undefined, payload),
    null,
  )
})

test('the payload hash covers the fields sorted by name, and never changes between versions', () => {
  const hash = 'e74813f74d6d85d62c471555044974902c28b663c73c90d801cb8d21f5994cdd'
  assert.equal(hashPayload({ amount: '0.1', asset: 'BTC', memo: null }), hash)
  assert.equal(hashPayload({ memo: null, asset: 'BTC', amount: '0.1', label: undefined }), hash)
  assert.notEqual(hashPayload({ amount: '0.1', asset: 'BTC' }), hash)
})

test('returns a stored response even if the repeated request would be refused', async () => {
  const [early, late, made] = ['early', 'late', 'made'].map((text): Reply => ({ text })) as [
    Reply,
    Reply,
    Reply,
  ]
  const refusal = new ApiError('INVALID_AMOUNT', 'amount: no', { field: 'amount' })
  const answers =
    (...body: (Reply | null)[]) =>
    async () =>
      body.shift() ?? null
  const refuses = async () => {
    throw refusal
  }
  const nothing = async () => assert.fail('nothing is made')
  assert.equal(await onceOnly(answers(early), nothing), early)
  assert.equal(await onceOnly(answers(null), async () => made), made)
  assert.equal(await onceOnly(answers(null, late), refuses), late)
  await assert.rejects(onceOnly(answers(null, null), refuses), refusal)
  assert.equal(await madeOnce(nothing, async () => made), made)
  assert.equal(await madeOnce(answers(late), refuses), late)
  await assert.rejects(madeOnce(answers(null), refuses), refusal)
  const lost = Object.assign(new Error('terminating connection'), { code: '57P01' })
  await assert.rejects(
    madeOnce(answers(late), async () => {
      throw lost
    }),
    lost,
  )
})

test('stores up to 32 concurrent withdrawals of one wallet in one statement', async () => {
  const query: { sql: string; ids: number[]; go: () => void }[] = []
  const database = {
    one: async (sql: string, [text]: [string]) => {
      const body = JSON.parse(text) as { n: number } | { n: number }[]
      const pausePoint = Promise.withResolvers<void>()
      query.push({ sql, ids: [body].flat().map(({ n }) => n), go: pausePoint.resolve })
      await pausePoint.promise
      const refused = { code: 'CU003', message: 'insufficient', detail: 'of 7' }
      const answer = ({ n }: { n: number }) => (n === 7 ? refused : { replayed: false, n })
      return Array.isArray(body) ? { results: body.map(answer) } : { result: answer(body) }
    },
  } as unknown as Queryable
  const withdrawals = new Withdrawals(database)
  const turns = async () => {
    for (let turn = 0; turn < 5; turn++)
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
  }
  const statements = () => query.map(({ sql, ids }) => [sql, ids])
  const all = Promise.allSettled(
    Array.from({ length: 40 }, (_, n) => withdrawals.write('first', { n })),
  )
  const other = withdrawals.write('second', { n: 100 })
  await turns()
  const numbers = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, n) => from + n)
  const [one, many] = [
    'select create_withdrawal($1) result',
    'select create_withdrawals($1) results',
  ]
  const [first, alone] = [
    [many, numbers(0, 32)],
    [one, [100]],
  ]
  assert.deepEqual(statements(), [first, alone])
  // A withdrawal that arrives during the statement joins the next batch of waiting ones.
  const late = withdrawals.write('first', { n: 40 })
  query[0]?.go()
  await turns()
  assert.deepEqual(statements(), [first, alone, [many, numbers(32, 41)]])
  const last = withdrawals.write('first', { n: 41 })
  await turns()
  assert.equal(query.length, 3, 'one statement at a time has the wallet')
  for (const { go } of query) go()
  await turns()
  assert.deepEqual(statements().slice(3), [[one, [41]]])
  for (const { go } of query) go()
  assert.deepEqual(
    await Promise.all([other, late, last]),
    [100, 40, 41].map((n) => ({ replayed: false, n })),
  )
  for (const [n, outcome] of (await all).entries()) {
    if (n !== 7) assert.deepEqual(outcome, { status: 'fulfilled', value: { replayed: false, n } })
    else {
      assert.equal(outcome.status, 'rejected')
      const { code, detail, message } = (outcome as PromiseRejectedResult).reason as {
        code: string
        detail: string
        message: string
      }
      assert.deepEqual(
        { code, detail, message },
        { code: 'CU003', detail: 'of 7', message: 'insufficient' },
      )
    }
  }
})

test('keeps no state for a wallet after its withdrawals are stored', async () => {
  const withdrawals = new Withdrawals({
    one: async () => ({ result: { replayed: false } }),
  } as unknown as Queryable)
  const before = queryObjects(Batch) as number
  await Promise.all(Array.from({ length: 1000 }, (_, n) => withdrawals.write(`wallet ${n}`, {})))
  // The limit leaves room for batches that other code of this process creates concurrently.
  assert.ok((queryObjects(Batch) as number) - before < 500)
  assert.deepEqual(await withdrawals.write('wallet 1', {}), { replayed: false })
})
