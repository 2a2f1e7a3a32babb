import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  Account,
  Asset,
  BASE_FEE,
  Keypair,
  Memo,
  MuxedAccount,
  Operation,
  rpc as stellarRpc,
  TransactionBuilder,
  xdr,
  type Transaction,
} from '@stellar/stellar-sdk'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'

/** stellar-sdk, unmodified, with the local ledger; and the rules that stellar-core enforces. */
let devnet: Running
let server: stellarRpc.Server
let passphrase = ''
const home = tempHome()
const alice = Keypair.random()
const bob = Keypair.random()

const connect = () => {
  server = new stellarRpc.Server(`${devnet.url}/xlm`, { allowHttp: true })
}
const fund = (address: string, amount: string, tag: string | null = null) =>
  devnet.control<{ hash: string }>({ command: 'fund', asset: 'XLM', address, amount, tag })
const mine = (seconds?: number) =>
  devnet.control({ command: 'mine', network: 'XLM', blocks: 1, ...(seconds ? { seconds } : {}) })
const source = () => server.getAccount(alice.publicKey())
const pay = (amount = '5', to = bob.publicKey()) =>
  Operation.payment({ destination: to, asset: Asset.native(), amount })
const hashOf = (transaction: Transaction) => Buffer.from(transaction.hash()).toString('hex')
const now = () => Math.floor(Date.now() / 1000)

async function build(
  operations: xdr.Operation[],
  o: {
    fee?: string
    maxTime?: number
    account?: Account
    memo?: Memo
    passphrase?: string
    signer?: Keypair
  } = {},
): Promise<Transaction> {
  const builder = new TransactionBuilder(o.account ?? (await source()), {
    fee: o.fee ?? BASE_FEE,
    networkPassphrase: o.passphrase ?? passphrase,
    timebounds: { minTime: 0, maxTime: o.maxTime ?? now() + 300 },
    ...(o.memo ? { memo: o.memo } : {}),
  })
  for (const operation of operations) builder.addOperation(operation)
  const transaction = builder.build()
  transaction.sign(o.signer ?? alice)
  return transaction
}
/** Returns the name of the refusal, or the result in the ledger. */
async function outcome(transaction: Transaction): Promise<string> {
  const sent = await server.sendTransaction(transaction)
  // oxlint-disable-next-line typescript/no-explicit-any -- the SDK's own JSON
  const json = (result: xdr.TransactionResult): any => JSON.parse(JSON.stringify(result)).result
  if (sent.status === 'ERROR') return json(sent.errorResult!)
  if (sent.status !== 'PENDING') return sent.status
  await mine()
  const done = await server.getTransaction(sent.hash)
  if (done.status === 'SUCCESS') return 'SUCCESS'
  const [operation] = json((done as { resultXdr: xdr.TransactionResult }).resultXdr).tx_failed
  const [[name, code]] = Object.entries(operation.op_inner) as [[string, string]]
  return `${name} ${code}`
}

before(async () => {
  devnet = await startDevnet(home)
  connect()
  passphrase = (await server.getNetwork()).passphrase
  await fund(alice.publicKey(), '100')
})
after(async () => {
  await devnet.stop()
  removeHome(home)
})

test('stellar-sdk creates an account, pays it, and reads both transactions', async () => {
  assert.equal((await server.getHealth()).status, 'healthy')
  assert.equal(
    await outcome(
      await build([
        Operation.createAccount({ destination: bob.publicKey(), startingBalance: '10' }),
      ]),
    ),
    'SUCCESS',
  )
  const payment = await build([pay('2.5')], { memo: Memo.id('0') })
  assert.equal(await outcome(payment), 'SUCCESS')
  const hash = hashOf(payment)
  const shown = await server.getTransaction(hash)
  assert.equal(shown.status, 'SUCCESS')
  const ledger = (shown as { ledger: number }).ledger
  const { transactions } = await server.getTransactions({
    startLedger: ledger,
    pagination: { limit: 10 },
  })
  assert.equal(transactions[0]!.txHash, hash)
  const entry = await server.getAccountEntry(bob.publicKey())
  assert.equal(String(entry.balance), '125000000')
  const { ledgers } = await server.getLedgers({ startLedger: ledger, pagination: { limit: 1 } })
  assert.equal(ledgers[0]!.sequence, ledger)
  assert.ok((await server.getFeeStats()).inclusionFee.p80)
})

test("returns core's error names for refused transactions", async () => {
  const stranger = Keypair.random()
  assert.equal(await outcome(await build([pay()], { signer: stranger })), 'tx_bad_auth')
  assert.equal(
    await outcome(await build([pay()], { passphrase: 'Another Network' })),
    'tx_bad_auth',
  )
  const { sequence } = { sequence: BigInt((await source()).sequenceNumber()) }
  assert.equal(
    await outcome(
      await build([pay()], { account: new Account(alice.publicKey(), String(sequence + 1n)) }),
    ),
    'tx_bad_seq',
  )
  assert.equal(
    await outcome(
      await build([pay()], { account: new Account(alice.publicKey(), String(sequence - 1n)) }),
    ),
    'tx_bad_seq',
  )
  assert.equal(await outcome(await build([pay()], { maxTime: 1_700_000_100 })), 'tx_too_late')
  assert.equal(await outcome(await build([pay()], { fee: '99' })), 'tx_insufficient_fee')
  assert.equal(
    await outcome(
      await build([pay()], { account: new Account(stranger.publicKey(), '1'), signer: stranger }),
    ),
    'tx_no_account',
  )
  assert.equal(
    await outcome(await build([pay('1', stranger.publicKey())])),
    'payment no_destination',
  )
  assert.equal(await outcome(await build([pay('5000')])), 'payment underfunded')
  assert.equal(
    await outcome(
      await build([
        Operation.createAccount({
          destination: stranger.publicKey(),
          startingBalance: '0.9999999',
        }),
      ]),
    ),
    'create_account low_reserve',
  )
  assert.equal(
    await outcome(
      await build([
        Operation.createAccount({ destination: bob.publicKey(), startingBalance: '1' }),
      ]),
    ),
    'create_account already_exist',
  )
  assert.equal(
    await outcome(await build([pay('1'), pay('9000')])),
    'payment success',
    'the first operation is undone with the second',
  )
})

test('reports a repeated transaction as a duplicate, and accepts one per account at a time', async () => {
  const first = await build([pay()])
  assert.equal((await server.sendTransaction(first)).status, 'PENDING')
  assert.equal((await server.sendTransaction(first)).status, 'DUPLICATE')
  const second = await build([pay()], { account: new Account(alice.publicKey(), first.sequence) })
  assert.equal((await server.sendTransaction(second)).status, 'TRY_AGAIN_LATER')
  await mine()
  assert.equal((await server.getTransaction(hashOf(first))).status, 'SUCCESS')
  assert.equal(await outcome(second), 'SUCCESS')
})

test('accepts a muxed destination and every memo type', async () => {
  const muxed = new MuxedAccount(new Account(bob.publicKey(), '0'), '77').accountId()
  assert.equal(await outcome(await build([pay('1', muxed)])), 'SUCCESS')
  for (const memo of [
    Memo.text('rent'),
    Memo.id('18446744073709551615'),
    Memo.hash('ab'.repeat(32)),
    Memo.return('cd'.repeat(32)),
  ]) {
    assert.equal(await outcome(await build([pay('1')], { memo })), 'SUCCESS')
  }
  await fund(bob.publicKey(), '1', 'hello')
  await fund(bob.publicKey(), '1', `hash:${'0f'.repeat(32)}`)
})

test('refuses a transaction as too late after the clock was advanced past its time limit', async () => {
  const transaction = await build([pay()], { maxTime: now() + 100 })
  await mine(1000)
  assert.equal(await outcome(transaction), 'tx_too_late')
  await assert.rejects(devnet.control({ command: 'reorg', network: 'XLM', depth: 1 }), /final/)
})

test('after kill -9 every ledger has the same hash', async () => {
  const { hash } = await fund(bob.publicKey(), '3', '9')
  const before = await server.getTransaction(hash)
  const at = (before as { ledger: number }).ledger
  const ledger = (await server.getLedgers({ startLedger: at, pagination: { limit: 1 } }))
    .ledgers[0]!
  await devnet.killAll()
  devnet = await startDevnet(home)
  connect()
  assert.equal(
    (await server.getLedgers({ startLedger: at, pagination: { limit: 1 } })).ledgers[0]!.hash,
    ledger.hash,
  )
  assert.equal((await server.getTransaction(hash)).status, 'SUCCESS')
})
