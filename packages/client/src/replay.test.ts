import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import {
  CustodyClient,
  CustodyError,
  IdempotencyMismatch,
  isReplayed,
  type CustodyClientOptions,
  type OnceOptions,
} from './index.ts'
import { TestServer, type Canned } from '../testing/server.ts'

const API_KEY = '4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90'
const pair = generateKeyPairSync('rsa', { modulusLength: 4096 })
let server: TestServer
before(async () => {
  server = await TestServer.start(API_KEY, pair.publicKey)
})
after(() => server.stop())

const client = (options: Partial<CustodyClientOptions> = {}) =>
  new CustodyClient({
    baseUrl: server.url,
    apiKey: API_KEY,
    privateKey: pair.privateKey,
    random: () => 1,
    sleep: async () => undefined,
    ...options,
  })
/** The text of http/replay.ts of the platform. */
const WARNING =
  '299 custody "sequence_id was used before with another payload; the first answer is given and nothing new was done"'
const answer = (headers: Record<string, string> = {}): Canned => ({
  body: '{"id":"earlier","amount":0.5}',
  headers: { 'x-request-id': 'r-1', ...headers },
})
const replay = answer({ 'idempotent-replayed': 'true' })
const mismatch = answer({ 'idempotent-replayed': 'true', warning: WARNING })
const transfer = { asset: 'ETH', amount: '1', destination_address: '0xabc', sequence_id: 's' }

type Call = (custody: CustodyClient, options?: OnceOptions) => Promise<unknown>
const order = {
  exchange_account: 'a',
  market: 'BTC/USD',
  side: 'buy',
  type: 'market',
  amount: '1',
  sequence_id: 's',
} as const
const stake = { address: 'T', resource: 'ENERGY', amount: '1', sequence_id: 's' } as const
const merge = { asset: 'BTC', max_fee_rate: '3', target_coins: 1, sequence_id: 's' } as const
/** Calls by the operation that they use. */
const CALLS: Record<string, Call> = {
  consolidateCoins: (custody, options) => custody.consolidate('w', merge, options),
  createTransaction: (custody, options) => custody.createTransaction(transfer, options),
  stake: (custody, options) => custody.stake(stake, options),
  unstake: (custody, options) => custody.unstake(stake, options),
  releaseUnstaked: (custody, options) => custody.releaseUnstaked('T', 's', options),
  createInvoice: (custody, options) =>
    custody.invoices.create({ asset: 'BTC', amount: '1', sequence_id: 's' }, options),
  refundInvoice: (custody, options) => custody.invoices.refund('i', transfer, options),
  createOrder: (custody, options) => custody.trading.order(order, options),
  createExchangeWithdrawal: (custody, options) =>
    custody.trading.withdraw(
      { exchange_account: 'a', asset: 'BTC', amount: '1', sequence_id: 's' },
      options,
    ),
  createConversion: (custody, options) =>
    custody.trading.convert(
      { from_asset: 'BTC', to_asset: 'USD', amount: '1', sequence_id: 's' },
      options,
    ),
}

test('this file tests each API operation that has a sequence_id', () => {
  const document = JSON.parse(
    readFileSync(new URL('../../../docs/openapi.json', import.meta.url), 'utf8'),
  ) as {
    paths: Record<
      string,
      Record<string, { operationId: string; responses: Record<string, { headers?: object }> }>
    >
  }
  const once = Object.values(document.paths)
    .flatMap((methods) => Object.values(methods))
    .filter(({ responses }) => 'idempotent-replayed' in (responses['200']?.headers ?? {}))
    .map(({ operationId }) => operationId)
  assert.deepEqual(once.sort(), Object.keys(CALLS).sort())
})

for (const [operation, call] of Object.entries(CALLS)) {
  test(`${operation}: a used sequence_id with another payload throws, or returns the first object`, async () => {
    server.script(mismatch)
    const error = await call(client()).then(
      () => assert.fail('returned as if it were done'),
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof IdempotencyMismatch && error instanceof CustodyError, String(error))
    assert.deepEqual(
      [error.status, error.code, error.field, error.requestId],
      [200, 'IDEMPOTENCY_MISMATCH', 'sequence_id', 'r-1'],
    )
    assert.match(error.message, /nothing was created/)
    assert.deepEqual(error.answer, { id: 'earlier', amount: '0.5' })
    assert.ok(isReplayed(error.answer))
    assert.equal(server.seen.length, 1, 'it is not sent again')
    server.script(mismatch, mismatch)
    const returned = await call(client(), { idempotencyMismatch: 'return' })
    assert.deepEqual([returned, isReplayed(returned)], [{ id: 'earlier', amount: '0.5' }, true])
    const raw = client({ idempotencyMismatch: 'return' })
    assert.deepEqual(await call(raw), returned)
    server.script(mismatch)
    await assert.rejects(
      call(raw, { idempotencyMismatch: 'throw' }),
      IdempotencyMismatch,
      'a call goes before the client',
    )
  })
}

test('a replay with the same payload returns the first response, marked by isReplayed', async () => {
  server.script(replay, answer())
  const custody = client()
  const again = await custody.createTransaction(transfer)
  const first = await custody.createTransaction(transfer)
  assert.deepEqual(
    [isReplayed(again), isReplayed(first), isReplayed({ ...again }), isReplayed(null)],
    [true, false, false, false],
  )
  assert.equal(JSON.stringify(again), JSON.stringify(first))
})

test('throws if a retry returns a payload mismatch', async () => {
  server.script({ cut: true }, mismatch)
  await assert.rejects(client().createTransaction(transfer), IdempotencyMismatch)
  assert.equal(server.seen.length, 2)
})

test('custom requests throw on a payload mismatch too, but not on warnings of proxies', async () => {
  server.script(mismatch)
  await assert.rejects(client().request('POST', '/dac/v1/transaction', {}), IdempotencyMismatch)
  server.script(
    answer({ warning: '214 proxy "Transformation applied"' }),
    answer({ 'idempotent-replayed': 'true', warning: '110 proxy "Response is Stale"' }),
  )
  await client().createTransaction(transfer)
  await client().createTransaction(transfer)
  server.script(
    answer({
      'idempotent-replayed': 'true',
      warning: `214 proxy "Transformation applied", ${WARNING}`,
    }),
  )
  await assert.rejects(client().createTransaction(transfer), IdempotencyMismatch)
})
