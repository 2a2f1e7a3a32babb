// Horizon.Server of stellar-sdk, unmodified, with the local Stellar network.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  Account,
  Asset,
  BadResponseError,
  BASE_FEE,
  Horizon,
  Keypair,
  Memo,
  MuxedAccount,
  NotFoundError,
  Operation,
  TransactionBuilder,
  TransactionFailedError,
  type Transaction,
  type xdr,
} from '@stellar/stellar-sdk'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'
import { waitFor } from '../../../../testing/wait-for.ts'

const home = tempHome()
let devnet: Running
let server: Horizon.Server
const alice = Keypair.random()
const bob = Keypair.random()

before(async () => {
  devnet = await startDevnet(home)
  server = new Horizon.Server(`${devnet.url}/xlm/horizon`, { allowHttp: true })
  for (const who of [alice, bob])
    await devnet.control({ command: 'fund', asset: 'XLM', address: who.publicKey(), amount: '100' })
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

async function build(
  operations: xdr.Operation[],
  o: { memo?: Memo; account?: Account; from?: Keypair } = {},
) {
  const from = o.from ?? alice
  const account = o.account ?? (await server.loadAccount(from.publicKey()))
  const builder = new TransactionBuilder(account, {
    fee: BASE_FEE,
    networkPassphrase: (await server.root()).network_passphrase,
    ...(o.memo ? { memo: o.memo } : {}),
  }).setTimeout(300)
  for (const operation of operations) builder.addOperation(operation)
  const transaction = builder.build()
  transaction.sign(from)
  return transaction
}
/** Horizon responds when a ledger contains the transaction. */
const submit = (transaction: Transaction) =>
  devnet.mined('XLM', server.submitTransaction(transaction))
const pay = (amount: string, destination = bob.publicKey()) =>
  Operation.payment({ destination, asset: Asset.native(), amount })

test('returns an account with its balance, its sequence and its data', async () => {
  const account = await server.loadAccount(alice.publicKey())
  assert.equal(account.balances[0]?.balance, '100.0000000')
  await submit(await build([Operation.manageData({ name: 'colour', value: 'blue' })]))
  const next = await server.loadAccount(alice.publicKey())
  assert.equal(BigInt(next.sequenceNumber()), BigInt(account.sequenceNumber()) + 1n)
  assert.equal(Buffer.from(next.data_attr['colour'] ?? '', 'base64').toString(), 'blue')
  // The name in the link's template is `key` as in Horizon, although the SDK's type differs.
  assert.equal(
    Buffer.from((await next.data({ key: 'colour' } as never)).value, 'base64').toString(),
    'blue',
  )
  await assert.rejects(server.loadAccount(Keypair.random().publicKey()), NotFoundError)
})

test('a submitted payment is in the next ledger, and every endpoint returns it', async () => {
  const transaction = await build([pay('2.5')], { memo: Memo.text('rent') })
  const sent = await submit(transaction)
  assert.deepEqual(
    [sent.successful, sent.hash],
    [true, Buffer.from(transaction.hash()).toString('hex')],
  )
  assert.equal((await server.loadAccount(bob.publicKey())).balances[0]?.balance, '102.5000000')

  const shown = await server.transactions().transaction(sent.hash).call()
  assert.deepEqual(
    [shown.memo, shown.memo_type, shown.source_account, shown.ledger_attr],
    ['rent', 'text', alice.publicKey(), sent.ledger],
  )
  assert.equal((await shown.operations()).records[0]?.type, 'payment')
  const [latest] = (
    await server.payments().forAccount(bob.publicKey()).order('desc').limit(1).call()
  ).records as Horizon.ServerApi.PaymentOperationRecord[]
  assert.deepEqual(
    [latest?.type, latest?.from, latest?.to, latest?.amount, latest?.asset_type],
    ['payment', alice.publicKey(), bob.publicKey(), '2.5000000', 'native'],
  )
  assert.equal((await latest?.transaction())?.hash, sent.hash)
  assert.equal(
    (
      await server
        .operations()
        .operation(latest?.id ?? '')
        .call()
    ).transaction_hash,
    sent.hash,
  )
  const ledger = (await server
    .ledgers()
    .ledger(sent.ledger)
    .call()) as unknown as Horizon.ServerApi.LedgerRecord
  assert.equal(
    (await server.transactions().forLedger(sent.ledger).call()).records[0]?.hash,
    sent.hash,
  )
  assert.equal(ledger.successful_transaction_count, 1)
  assert.equal(Number((await server.feeStats()).last_ledger_base_fee), 100)
  // A repeated submission returns the result of the first.
  assert.equal((await server.submitTransaction(transaction)).ledger, sent.ledger)
})

test('creates an account and pays a muxed account', async () => {
  const carol = Keypair.random()
  await submit(
    await build([
      Operation.createAccount({ destination: carol.publicKey(), startingBalance: '5' }),
    ]),
  )
  const muxed = new MuxedAccount(new Account(carol.publicKey(), '0'), '77').accountId()
  await submit(await build([pay('1', muxed)]))
  const { records } = await server.payments().forAccount(carol.publicKey()).call()
  assert.deepEqual(
    records.map((each) => each.type),
    ['create_account', 'payment'],
  )
  const shown = records[1] as unknown as Record<string, string>
  assert.deepEqual(
    [shown['to'], shown['to_muxed'], shown['to_muxed_id']],
    [carol.publicKey(), muxed, '77'],
  )
})

test('failures have result codes, and a transaction that waits for its account is not lost', async () => {
  const codes = async (operations: xdr.Operation[], o: { account?: Account } = {}) => {
    const error: unknown = await submit(await build(operations, o)).then(
      () => assert.fail('it was taken'),
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof TransactionFailedError, String(error))
    return error.getResultCodes()
  }
  const stranger = Keypair.random().publicKey()
  assert.deepEqual(await codes([pay('1'), pay('9000')]), {
    transaction: 'tx_failed',
    operations: ['op_success', 'op_underfunded'],
  })
  assert.deepEqual(await codes([pay('1', stranger)]), {
    transaction: 'tx_failed',
    operations: ['op_no_destination'],
  })
  assert.deepEqual(
    await codes([Operation.createAccount({ destination: bob.publicKey(), startingBalance: '5' })]),
    { transaction: 'tx_failed', operations: ['op_already_exists'] },
  )
  assert.deepEqual(await codes([pay('1')], { account: new Account(alice.publicKey(), '5') }), {
    transaction: 'tx_bad_seq',
    operations: [],
  })
  const account = new Account(
    alice.publicKey(),
    (await server.loadAccount(alice.publicKey())).sequenceNumber(),
  )
  const [first, second] = [
    await build([pay('1')], { account }),
    await build([pay('2')], { account }),
  ]
  const early = server.submitTransaction(first)
  await waitFor('the first one waits', async () => (await devnet.waiting('XLM')) === 1)
  const [a, b] = await devnet.mined('XLM', Promise.all([early, server.submitTransaction(second)]))
  assert.ok(b.ledger > a.ledger)
  const nonsense = await fetch(`${devnet.url}/xlm/horizon/transactions`, {
    method: 'POST',
    body: 'tx=AAAA',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  assert.deepEqual(
    [nonsense.status, ((await nonsense.json()) as { title: string }).title],
    [400, 'Transaction Malformed'],
  )
  await devnet.control({ command: 'fault', network: 'XLM', mode: 'reject' })
  await assert.rejects(server.submitTransaction(await build([pay('1')])), BadResponseError)
  await devnet.control({ command: 'fault', network: 'XLM', mode: 'heal' })
})

test('pages are contiguous in both directions', async () => {
  const seen: string[] = []
  let page = await server.payments().limit(2).call()
  while (page.records.length > 0) {
    seen.push(...page.records.map(({ id }) => id))
    page = await page.next()
  }
  assert.deepEqual(
    seen,
    seen.toSorted((a, b) => (BigInt(a) < BigInt(b) ? -1 : 1)),
  )
  assert.equal(new Set(seen).size, seen.length)
  const backwards = await server.payments().order('desc').limit(3).call()
  assert.deepEqual(
    backwards.records.map(({ id }) => id),
    seen.slice(-3).reverse(),
  )
  assert.deepEqual(
    (await backwards.next()).records.map(({ id }) => id),
    seen.slice(-6, -3).reverse(),
  )
  assert.deepEqual((await server.payments().cursor('now').call()).records, [])
  for (const [path, status] of [
    ['payments?limit=0', 400],
    ['payments?order=up', 400],
    ['accounts/nobody', 400],
    ['transactions/00', 404],
    ['offers', 404],
    ['%zz', 404],
  ] as const) {
    assert.equal((await fetch(`${devnet.url}/xlm/horizon/${path}`)).status, status, path)
  }
})

test('streams payments as ledgers close, from now or from the start', async () => {
  const received: string[][] = [[], []]
  const ends = ['now', '0'].map((cursor, at) =>
    server
      .payments()
      .forAccount(bob.publicKey())
      .cursor(cursor)
      .stream({
        onmessage: (record) => void received[at]?.push((record as unknown as { id: string }).id),
      }),
  )
  try {
    const { records: past } = await server.payments().forAccount(bob.publicKey()).limit(200).call()
    await waitFor('earlier records are received', () => received[1]?.length === past.length)
    // A stream that begins now sends no first message to wait for; it receives one of the next
    // payments.
    await waitFor('a new payment is reported', async () => {
      await devnet.control({ command: 'fund', asset: 'XLM', address: bob.publicKey(), amount: '1' })
      return received[0]!.length > 0
    })
    const { records } = await server.payments().forAccount(bob.publicKey()).limit(200).call()
    await waitFor('all records are received', () => received[1]?.length === records.length)
    assert.deepEqual(
      received[1],
      records.map(({ id }) => id),
    )
    assert.ok(received[0]?.every((id) => !past.some((record) => record.id === id)))
  } finally {
    for (const end of ends) end?.()
  }
})
