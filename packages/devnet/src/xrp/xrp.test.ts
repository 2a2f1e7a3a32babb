import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Client, hashes, Wallet, xrpToDrops, type Payment } from 'xrpl'
import { removeHome, startDevnet, tempHome, type Running } from '../../testing/support.ts'

/** xrpl.js, unmodified, with the local ledger; and the rules that a server enforces. */
let devnet: Running
let client: Client
const home = tempHome()
const alice = Wallet.generate()
const bob = Wallet.generate()

const rpc = async (method: string, parameters: Record<string, unknown> = {}) => {
  const response = await fetch(`${devnet.url}/xrp`, {
    method: 'POST',
    body: JSON.stringify({ method, params: [parameters] }),
  })
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read whatever comes
  return ((await response.json()) as { result: any }).result
}
const connect = async () => {
  client = new Client(devnet.url.replace('http', 'ws') + '/xrp')
  await client.connect()
}
const fund = (address: string, amount: string, tag: string | null = null, more = {}) =>
  devnet.control<{ hash: string }>({ command: 'fund', asset: 'XRP', address, amount, tag, ...more })
const account = async (address: string) =>
  (await rpc('account_info', { account: address, ledger_index: 'validated' })).account_data
/** Returns a payment signed by the published library, with the changes of a test. */
async function signed(change: Record<string, unknown> = {}, wallet = alice): Promise<string> {
  const prepared = await client.autofill({
    TransactionType: 'Payment',
    Account: alice.address,
    Destination: bob.address,
    Amount: xrpToDrops('5'),
  } as Payment)
  return wallet.sign({ ...prepared, ...change } as Payment).tx_blob
}
const submit = async (blob: string) => {
  const answer = await rpc('submit', { tx_blob: blob })
  return answer.engine_result ?? `${answer.error}: ${answer.error_exception}`
}
const mine = (blocks = 1) => devnet.control({ command: 'mine', network: 'XRP', blocks })

before(async () => {
  devnet = await startDevnet(home)
  await fund(alice.address, '100')
  await connect()
})
after(async () => {
  await client.disconnect()
  await devnet.stop()
  removeHome(home)
})

test('xrpl.js makes a payment, and the ledger contains the delivered amount', async () => {
  const result = await devnet.mined(
    'XRP',
    client.submitAndWait(
      {
        TransactionType: 'Payment',
        Account: alice.address,
        Destination: bob.address,
        Amount: xrpToDrops('20'),
        DestinationTag: 0,
      } as Payment,
      { wallet: alice },
    ),
  )
  assert.equal(result.result.validated, true)
  assert.equal(
    (result.result.meta as { TransactionResult: string }).TransactionResult,
    'tesSUCCESS',
  )
  const { ledger } = await rpc('ledger', {
    ledger_index: result.result.ledger_index,
    transactions: true,
    expand: true,
  })
  const shown = ledger.transactions.find(
    (each: { hash: string }) => each.hash === result.result.hash,
  )
  assert.equal(shown.DestinationTag, 0)
  assert.equal(shown.metaData.delivered_amount, '20000000')
  assert.equal((await account(bob.address)).Balance, '20000000')
  assert.equal(await client.getXrpBalance(bob.address), 20)
})

test("returns a server's error names for refused transactions", async () => {
  const stranger = Wallet.generate()
  assert.match(
    await submit((await signed()).replace(/.{20}$/, '00112233445566778899')),
    /^invalidTransaction/,
  )
  assert.equal(await submit(await signed({ Fee: '9' })), 'telINSUF_FEE_P')
  assert.equal(await submit(await signed({ Sequence: 1 })), 'tefPAST_SEQ')
  assert.equal(await submit(await signed({ LastLedgerSequence: 1 })), 'tefMAX_LEDGER')
  assert.equal(
    await submit(await signed({ SigningPubKey: stranger.publicKey }, stranger)),
    'tefBAD_AUTH',
  )
  assert.equal(
    await submit(await signed({ Destination: stranger.address, Amount: '999999' })),
    'tecNO_DST_INSUF_XRP',
  )
  await mine()
  assert.equal(await submit(await signed({ Amount: xrpToDrops('1000') })), 'tecUNFUNDED_PAYMENT')
  await mine()
  assert.equal(
    await submit(await signed({ NetworkID: 1000 })),
    'telNETWORK_ID_MAKES_TX_NON_CANONICAL',
  )
  assert.equal(await submit(await signed({ Flags: 0x0002_0000 })), 'temBAD_SEND_XRP_PARTIAL')
  const blob = await signed()
  assert.equal(await submit(blob), 'tesSUCCESS')
  assert.equal(await submit(blob), 'tefALREADY')
  await mine()
  const { Sequence } = await account(alice.address)
  const early = await signed({ Sequence: Sequence + 1 })
  assert.equal(await submit(early), 'terPRE_SEQ')
  assert.equal(await submit(await signed({ Sequence })), 'tesSUCCESS')
  await mine()
  assert.equal(
    (await account(alice.address)).Sequence,
    Sequence + 2,
    'what came early entered behind what it waited for',
  )
})

test('refuses to spend the reserve, and charges the fee of an impossible payment', async () => {
  const before = await account(alice.address)
  assert.equal(
    await submit(await signed({ Amount: String(BigInt(before.Balance) - 1_000_000n + 1n) })),
    'tecUNFUNDED_PAYMENT',
  )
  await mine()
  const after1 = await account(alice.address)
  assert.equal(
    BigInt(before.Balance) - BigInt(after1.Balance),
    12n,
    'xrpl.js pays 1.2 times the base fee',
  )
  assert.equal(after1.Sequence, before.Sequence + 1)
})

test('an account that requires a tag refuses payments without a tag', async () => {
  const shop = Wallet.generate()
  await fund(shop.address, '10')
  await devnet.mined(
    'XRP',
    client.submitAndWait(
      { TransactionType: 'AccountSet', Account: shop.address, SetFlag: 1 },
      { wallet: shop },
    ),
  )
  assert.equal(await submit(await signed({ Destination: shop.address })), 'tecDST_TAG_NEEDED')
  await mine()
  assert.equal(
    await submit(await signed({ Destination: shop.address, DestinationTag: 0 })),
    'tesSUCCESS',
  )
})

test('a partial payment states a large amount and delivers a small one', async () => {
  const { hash } = await fund(bob.address, '1000', '7', { delivered: '0.000001' })
  const shown = await rpc('tx', { transaction: hash })
  assert.equal(shown.Amount, '1000000000')
  assert.equal(shown.meta.delivered_amount, '1')
  assert.equal(shown.meta.TransactionResult, 'tesSUCCESS')
})

test('a transaction is proven absent only after a search of every ledger', async () => {
  const nothing = 'A'.repeat(64)
  const head = (await rpc('ledger', { ledger_index: 'validated' })).ledger_index
  assert.equal(
    (await rpc('tx', { transaction: nothing, min_ledger: 1, max_ledger: head })).searched_all,
    true,
  )
  assert.equal(
    (await rpc('tx', { transaction: nothing, min_ledger: 1, max_ledger: head + 5 })).searched_all,
    false,
  )
  assert.equal((await rpc('tx', { transaction: nothing })).searched_all, undefined)
  await assert.rejects(devnet.control({ command: 'reorg', network: 'XRP', depth: 1 }), /final/)
})

test('after kill -9 every ledger has the same hash', async () => {
  const { hash } = await fund(bob.address, '3', '4294967295')
  const before = await rpc('tx', { transaction: hash })
  const ledger = (await rpc('ledger', { ledger_index: before.ledger_index })).ledger_hash
  await client.disconnect()
  await devnet.killAll()
  devnet = await startDevnet(home)
  await connect()
  assert.equal((await rpc('ledger', { ledger_index: before.ledger_index })).ledger_hash, ledger)
  assert.deepEqual(await rpc('tx', { transaction: hash }), before)
})

test('simulates a lost response and a refused submission', async () => {
  const blob = await signed()
  await devnet.control({ command: 'fault', network: 'XRP', mode: 'reject' })
  assert.equal(await submit(blob), 'telCAN_NOT_QUEUE_FULL')
  await devnet.control({ command: 'fault', network: 'XRP', mode: 'drop-answer' })
  await assert.rejects(submit(blob))
  await devnet.control({ command: 'fault', network: 'XRP', mode: 'heal' })
  assert.equal(await submit(blob), 'tefALREADY')
  await mine()
  const hash = hashes.hashSignedTx(blob)
  assert.equal((await rpc('tx', { transaction: hash })).validated, true)
})
