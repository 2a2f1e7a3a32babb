import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { assertExportIsTied } from '../testing/exported-balances.ts'
import {
  Account,
  BASE_FEE,
  Keypair,
  MuxedAccount,
  Operation,
  rpc as stellarRpc,
  TransactionBuilder,
} from '@stellar/stellar-sdk'
import { classicAddressToXAddress, Client, Wallet } from 'xrpl'
import {
  balance,
  call,
  fundedWallet,
  rpc,
  terminal,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * Tests of XRP and XLM: deposit addresses that share one address and differ by tag or memo, the
 * account reserve, accounts that a payment creates, and a transaction that expires.
 */
const platform = new TestPlatform()
let alice: User
let devnet = ''
const own: Record<string, string> = {}

interface Address {
  address: string
  address_tag: string | null
  label: string | null
}
const newAddress = async (asset: string, label?: string) =>
  (await call<Address>(alice, 'POST', '/dac/v1/address', { asset, ...(label ? { label } : {}) }))
    .body
const send = (asset: string, amount: string, to: string, more: Record<string, unknown> = {}) =>
  call<Transfer & { code: string; field: string; message: string }>(
    alice,
    'POST',
    '/dac/v1/transaction',
    transferBody(asset, amount, to, more),
  )
const fund = (asset: string, address: string, amount: string, tag: string | null, more = {}) =>
  platform.operator('devnet', { command: 'fund', asset, address, amount, tag, ...more })
const fault = (network: string, mode: string) =>
  platform.operator('devnet', { command: 'fault', network, mode })
const mine = (network: string, blocks: number, seconds?: number) =>
  platform.operator('devnet', { command: 'mine', network, blocks, ...(seconds ? { seconds } : {}) })
const holds = (asset: string, amount: string) =>
  waitFor(`${asset} ${amount}`, async () => (await balance(alice, asset)).balance === amount)
const deposit = (hash: unknown) =>
  waitFor(`deposit ${String(hash)}`, async () => {
    const [result] = (
      await call<{ data: Transfer[] }>(
        alice,
        'GET',
        `/dac/v1/transactions?type=Deposit&id=${String(hash)}`,
      )
    ).body.data
    return result && (result.status === 'confirmed' || result.sub_status === 'SUSPENSE')
      ? result
      : null
  })
async function confirmed(answer: Awaited<ReturnType<typeof send>>): Promise<Transfer> {
  assert.equal(answer.status, 200, answer.text)
  const done = await terminal(alice, answer.body.id)
  assert.equal(done.status, 'confirmed', String(done.failure_reason))
  return done
}
// oxlint-disable-next-line typescript/no-explicit-any -- as the server prints it
const xrp = async (method: string, parameters: Record<string, unknown>): Promise<any> =>
  rpc(platform, 'XRP', method, [parameters])

before(async () => {
  await platform.start()
  devnet = `http://127.0.0.1:${(JSON.parse(readFileSync(join(platform.home, 'ports.json'), 'utf8')) as { devnet: number }).devnet}`
  alice = await platform.user('alice')
  await Promise.all(
    ['XRP', 'XLM'].map(async (asset) => {
      own[asset] = await fundedWallet(platform, alice, asset, '101')
    }),
  )
})
after(() => platform.remove())

for (const asset of ['XRP', 'XLM']) {
  describe(asset, () => {
    test('each further address adds its own tag, and deposits with any or no tag reach the wallet', async () => {
      assert.deepEqual(
        await balance(alice, asset).then(({ balance: free, omnibus_balance: held }) => [
          free,
          held,
        ]),
        ['100', '101'],
        'the reserve is held, and cannot be sent',
      )
      const [first, second] = [await newAddress(asset, 'customer 1'), await newAddress(asset)]
      assert.deepEqual([first.address, second.address], [own[asset], own[asset]])
      assert.match(String(first.address_tag), /^[1-9]\d{8}$/)
      assert.notEqual(first.address_tag, second.address_tag)
      const { body: all } = await call<Address[]>(alice, 'GET', `/dac/v1/addresses?asset=${asset}`)
      assert.deepEqual(
        all.map((each) => each.address_tag),
        [null, first.address_tag, second.address_tag],
      )
      const { hash } = await fund(asset, first.address, '2', first.address_tag)
      const shown = await deposit(hash)
      assert.equal(shown['address_tag'], first.address_tag)
      assert.equal(shown.sub_status, 'CREDITED')
      assert.deepEqual(
        (
          await call<{ data: Transfer[] }>(
            alice,
            'GET',
            '/dac/v1/transactions?dest_id=customer%201&type=Deposit',
          )
        ).body.data
          .filter((each) => each['asset'] === asset)
          .map((each) => each.hash),
        [hash],
        'found by the label of its tag alone',
      )
      await fund(asset, first.address, '3', null)
      await holds(asset, '105')
    })

    test('a deposit with an unknown tag goes to suspense, and the ledger agrees with the chain', async () => {
      const { hash } = await fund(asset, own[asset] as string, '7', '4000000000')
      const { status, sub_status: sub } = await deposit(hash)
      assert.deepEqual([status, sub], ['pending', 'SUSPENSE'])
      assert.equal((await balance(alice, asset)).balance, '105')
      const { suspense } = (await platform.operator('suspense list')) as {
        suspense: { asset: string; address_tag: string; amount: string }[]
      }
      assert.ok(
        suspense.some(
          (each) =>
            each.asset === asset && each.address_tag === '4000000000' && each.amount === '7',
        ),
        JSON.stringify(suspense),
      )
      const audit = await platform.operator('audit')
      assert.equal(audit['ok'], true, JSON.stringify(audit['differences']))
    })
  })
}

test('XRP: credits a partial payment with the delivered amount', async () => {
  await fund('XRP', own['XRP'] as string, '1000000', null, { delivered: '0.000001' })
  await holds('XRP', '105.000001')
})

test('XLM: a text memo with the same digits counts as the same tag', async () => {
  const { address, address_tag: tag } = await newAddress('XLM')
  const { hash } = await fund('XLM', address, '1', `text:${String(tag)}`)
  assert.equal((await deposit(hash)).sub_status, 'CREDITED')
  await holds('XLM', '106')
})

test('XRP: distinguishes tag 0 from no tag, and reads the tag of an X-address', async () => {
  const shop = Wallet.generate()
  const refused = await send('XRP', '0.5', shop.address)
  assert.equal(refused.status, 400)
  assert.match(
    refused.body.message,
    /^amount: the destination account does not exist yet; at least 1 XRP/,
  )
  for (const [to, tag, seen] of [
    [shop.address, '0', 0],
    [shop.address, undefined, undefined],
    [classicAddressToXAddress(shop.address, 12345, false), undefined, 12345],
  ] as const) {
    const done = await confirmed(
      await send('XRP', '1', to, tag === undefined ? {} : { address_tag: tag }),
    )
    const paid = await xrp('tx', { transaction: done.hash })
    assert.equal(paid.DestinationTag, seen)
    assert.equal(paid.meta.delivered_amount, '1000000')
    assert.equal(paid.Destination, shop.address)
    assert.equal(done['address_tag'], seen === undefined ? null : String(seen))
  }
  const conflict = await send('XRP', '1', classicAddressToXAddress(shop.address, 12345, false), {
    address_tag: '1',
  })
  assert.equal(conflict.body.field, 'address_tag', conflict.text)
  assert.equal(
    (await send('XRP', '1', shop.address, { address_tag: '4294967296' })).body.field,
    'address_tag',
  )
  assert.equal(
    (await send('XRP', '1', own['XRP'] as string, { address_tag: '7' })).body.field,
    'destination_address',
    'an account must not pay itself',
  )
})

test('XRP: refuses a transfer without a tag to an account that requires one, before signing', async () => {
  const shop = Wallet.generate()
  await fund('XRP', shop.address, '20', null)
  const client = new Client(`${devnet.replace('http', 'ws')}/xrp`)
  await client.connect()
  await client.submitAndWait(
    { TransactionType: 'AccountSet', Account: shop.address, SetFlag: 1 },
    { wallet: shop },
  )
  await client.disconnect()
  const refused = await send('XRP', '1', shop.address)
  assert.equal(refused.status, 400, refused.text)
  assert.match(
    refused.body.message,
    /^address_tag: the destination accepts payments only with a destination tag/,
  )
  const check = async (more = {}) =>
    (
      await call(alice, 'POST', '/dac/v1/validate-address', {
        asset: 'XRP',
        address: shop.address,
        ...more,
      })
    ).body
  assert.deepEqual(await check(), {
    valid: true,
    address_tag: null,
    takes_tag: true,
    requires_tag: true,
  })
  assert.deepEqual(await check({ address_tag: '7' }), {
    valid: true,
    address_tag: '7',
    takes_tag: true,
    requires_tag: true,
  })
  assert.deepEqual(await check({ address: own['XRP'] }), {
    valid: true,
    address_tag: null,
    takes_tag: true,
    requires_tag: false,
  })
  await confirmed(await send('XRP', '1', shop.address, { address_tag: '0' }))
  // While the chain is unreachable the API cannot check the destination. The worker detects the
  // missing tag, and nothing is signed.
  await fault('XRP', 'down')
  const blind = await send('XRP', '1', shop.address)
  await fault('XRP', 'heal')
  assert.equal(blind.status, 200, blind.text)
  const done = await terminal(alice, blind.body.id)
  assert.equal(done.status, 'failed')
  assert.match(String(done.failure_reason), /only with a destination tag/)
  assert.equal(done.hash, null)
})

test('XLM: creates or pays accounts with every kind of memo, and pays M-addresses unchanged', async () => {
  const shop = Keypair.random()
  const muxed = new MuxedAccount(new Account(shop.publicKey(), '0'), '77').accountId()
  assert.match(
    (await send('XLM', '0.9999999', shop.publicKey())).body.message,
    /does not exist yet; at least 1 XLM/,
  )
  assert.match((await send('XLM', '5', muxed)).body.message, /does not exist/)
  assert.equal(
    (
      await send(
        'XLM',
        '1',
        new MuxedAccount(new Account(own['XLM'] as string, '0'), '5').accountId(),
      )
    ).body.field,
    'destination_address',
    'an account must not pay itself',
  )
  const server = new stellarRpc.Server(`${devnet}/xlm`, { allowHttp: true })
  const cases: [string, string | undefined, unknown][] = [
    [shop.publicKey(), 'invoice 7', { text: 'invoice 7' }],
    [shop.publicKey(), '0', { id: '0' }],
    [shop.publicKey(), 'text:42', { text: '42' }],
    [shop.publicKey(), `hash:${'ab'.repeat(32)}`, { hash: 'ab'.repeat(32) }],
    [shop.publicKey(), `return:${'cd'.repeat(32)}`, { return: 'cd'.repeat(32) }],
    [shop.publicKey(), undefined, 'none'],
    [muxed, undefined, 'none'],
  ]
  const [[to, tag]] = cases as [(typeof cases)[number]]
  await confirmed(await send('XLM', '1', to, { address_tag: tag }))
  // The other payments run concurrently: each uses a sequence number of its own, and the network
  // includes one transaction of an account in each ledger.
  await Promise.all(
    cases.slice(1).map(async ([account, spelt, memo], at) => {
      const done = await confirmed(
        await send(
          'XLM',
          `1.${at + 1}`,
          account,
          spelt === undefined ? {} : { address_tag: spelt },
        ),
      )
      const { envelopeXdr } = (await server.getTransaction(done.hash as string)) as {
        envelopeXdr: unknown
      }
      const { tx } = (
        JSON.parse(JSON.stringify(envelopeXdr)) as {
          tx: {
            tx: { memo: unknown; operations: { body: { payment: { destination: string } } }[] }
          }
        }
      ).tx
      assert.deepEqual(tx.memo, memo)
      assert.equal(tx.operations[0]?.body.payment.destination, account)
    }),
  )
  // SEP-29: the account states that it requires a memo.
  const builder = new TransactionBuilder(await server.getAccount(shop.publicKey()), {
    fee: BASE_FEE,
    networkPassphrase: (await server.getNetwork()).passphrase,
    timebounds: { minTime: 0, maxTime: 0 },
  })
  const transaction = builder
    .addOperation(Operation.manageData({ name: 'config.memo_required', value: '1' }))
    .build()
  transaction.sign(shop)
  await server.sendTransaction(transaction)
  await mine('XLM', 1)
  const refused = await send('XLM', '1', shop.publicKey())
  assert.match(
    refused.body.message,
    /^address_tag: the destination accepts payments only with a memo/,
  )
  await confirmed(await send('XLM', '1', muxed))
})

for (const [asset, fee] of [
  ['XRP', 0.00001],
  ['XLM', 0.00001],
] as const) {
  test(`${asset}: the whole balance except the reserve can be sent`, async () => {
    const before = await balance(alice, asset)
    const target = asset === 'XRP' ? Wallet.generate().address : Keypair.random().publicKey()
    const decimals = asset === 'XRP' ? 6 : 7
    const units = (text: string | number) => BigInt(Math.round(Number(text) * 10 ** decimals))
    const text = (value: bigint) =>
      `${value / 10n ** BigInt(decimals)}.${(value % 10n ** BigInt(decimals)).toString().padStart(decimals, '0')}`
    const most = units(before.balance) - units(fee)
    const refused = await send(asset, text(most + 1n), target)
    assert.equal(refused.body.code, 'INSUFFICIENT_BALANCE', refused.text)
    assert.match(refused.body.message, new RegExp(`1 ${asset} must stay on the account`))
    await confirmed(await send(asset, text(most), target))
    assert.equal((await balance(alice, asset)).balance, '0')
    await fund(asset, own[asset] as string, '50', null)
    await holds(asset, '50')
  })
}

test('XLM: of two transfers to a new account, one creates the account and the other one waits', async () => {
  const target = Keypair.random().publicKey()
  const both = await Promise.all(['2', '3'].map((amount) => send('XLM', amount, target)))
  await Promise.all(both.map(confirmed))
})

test('XRP: an expired transfer that cannot be paid fails and releases its sequence', async () => {
  const shop = Wallet.generate()
  await fund('XRP', shop.address, '20', null)
  const { balance: before } = await balance(alice, 'XRP')
  await fault('XRP', 'reject')
  const created = await send('XRP', '2', shop.address)
  const signed = await waitFor('signed', async () => {
    const { body } = await call<Transfer>(alice, 'GET', `/dac/v1/transaction/${created.body.id}`)
    return body.sub_status === 'BROADCASTING' ? body : null
  })
  const { Sequence: sequence } = (
    await xrp('account_info', { account: own['XRP'], ledger_index: 'validated' })
  ).account_data
  // The platform is paused while its transaction expires and the destination begins to require a
  // tag.
  const control = (command: Record<string, unknown>) =>
    fetch(`${devnet}/control`, { method: 'POST', body: JSON.stringify(command) })
  await platform.asleep(async () => {
    await control({ command: 'mine', network: 'XRP', blocks: 70 })
    await control({ command: 'fault', network: 'XRP', mode: 'heal' })
    const client = new Client(`${devnet.replace('http', 'ws')}/xrp`)
    await client.connect()
    await client.submitAndWait(
      { TransactionType: 'AccountSet', Account: shop.address, SetFlag: 1 },
      { wallet: shop },
    )
    await client.disconnect()
  })
  const done = await terminal(alice, created.body.id)
  assert.equal(done.status, 'failed')
  assert.match(String(done.failure_reason), /only with a destination tag/)
  assert.equal((await balance(alice, 'XRP')).balance, before)
  assert.equal((await xrp('tx', { transaction: signed.hash })).error, 'txnNotFound')
  const next = await confirmed(await send('XRP', '2', shop.address, { address_tag: '1' }))
  assert.equal((await xrp('tx', { transaction: next.hash })).Sequence, sequence)
})

test('after these transfers, the ledger agrees with the chains', async () => {
  const audit = await platform.operator('audit')
  assert.equal(audit['ok'], true, JSON.stringify(audit['differences']))
  const lines = await assertExportIsTied(alice)
  for (const asset of ['XRP', 'XLM'])
    assert.ok((lines.get(asset) ?? 0) > 3, `${lines.get(asset)} lines of ${asset}`)
})

test('the operator credits a deposit in suspense once, to the wallet of its account', async () => {
  const before = Number((await balance(alice, 'XRP')).balance)
  const { hash } = await fund('XRP', own['XRP'] as string, '2', '4000000001')
  assert.equal((await deposit(hash)).sub_status, 'SUSPENSE')
  const { suspense } = (await platform.operator('suspense list')) as {
    suspense: { id: string; hash: string }[]
  }
  const { id } = suspense.find((each) => each.hash === hash) as { id: string }
  assert.ok(
    (await platform.cli('suspense', 'list')).stdout.includes(`${id}  `),
    'the list prints what assign takes',
  )
  const assigned = await platform.cli('suspense', 'assign', '--id', id, '--json')
  assert.equal(assigned.status, 0, assigned.stderr)
  assert.equal((await deposit(hash)).sub_status, 'CREDITED')
  assert.equal(Number((await balance(alice, 'XRP')).balance).toFixed(6), (before + 2).toFixed(6))
  const again = await platform.cli('suspense', 'assign', '--id', id)
  assert.deepEqual(
    [again.status, /not in suspense; its state is CREDITED/.test(again.stderr)],
    [1, true],
  )
  assert.match(
    (await platform.cli('suspense', 'assign', '--id', 'nothing')).stderr,
    /--id: deposit nothing does not exist; "custody suspense list" lists the waiting deposits/,
  )
  const audit = await platform.operator('audit')
  assert.equal(audit['ok'], true, JSON.stringify(audit['differences']))
})
