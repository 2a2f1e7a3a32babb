import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startTracing } from '@custody/tracing'
import { startCollector } from '../../tracing/testing/collector.ts'
import {
  assertConfirmed,
  balance,
  call,
  fundedWallet,
  rpc,
  terminal,
  TestPlatform,
  transferBody,
  waitFor,
  type Transfer,
  type User,
} from '../testing/harness.ts'

const platform = new TestPlatform()
let alice: User
let collector: Awaited<ReturnType<typeof startCollector>>
let stopTracing: () => Promise<void>

const BTC_TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
const ETH_TO = '0x00000000000000000000000000000000000000b1'

before(async () => {
  collector = await startCollector()
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = collector.url
  stopTracing = await startTracing('custody', process.env)
  await platform.start()
  alice = await platform.user('alice')
  await Promise.all([
    fundedWallet(platform, alice, 'BTC', '2'),
    fundedWallet(platform, alice, 'ETH', '5').then(() =>
      fundedWallet(platform, alice, 'USDT_ETH', '1000'),
    ),
  ])
})
after(async () => {
  collector.close()
  await platform.remove()
})

const post = (body: string, user = alice, base?: string) =>
  call<Transfer>(user, 'POST', '/dac/v1/transaction', body, base ? { base } : {})

test('a confirmed Bitcoin transfer deducts amount and fee, and the chain contains the payment', async () => {
  const before = await balance(alice, 'BTC')
  const created = await post(
    transferBody('BTC', '0.12345678', BTC_TO, { memo: 'rent', sequence_id: 'btc-1' }),
  )
  assert.equal(created.status, 200, created.text)
  assert.equal(created.body.hash, null)
  assert.equal(created.body.status, 'pending')
  const done = await terminal(alice, created.body.id)
  assert.equal(done.status, 'confirmed', String(done.failure_reason))
  const onChain = await rpc<{ vout: { value: number; scriptPubKey: { address: string } }[] }>(
    platform,
    'BTC',
    'getrawtransaction',
    [done.hash, true],
  )
  assert.ok(
    onChain.vout.some(
      (output) => output.value === 0.12345678 && output.scriptPubKey.address === BTC_TO,
    ),
  )
  const satoshi = (text: string) => BigInt(Math.round(Number(text) * 1e8))
  assert.equal(
    satoshi((await balance(alice, 'BTC')).balance),
    satoshi(before.balance) - satoshi('0.12345678') - satoshi(done.fee),
  )
})

test('an ETH transfer deducts exactly the amount, in all 18 decimals, and the tank pays the fee', async () => {
  const before = (await balance(alice, 'ETH')).balance
  assert.equal(before, '5')
  const created = await post(transferBody('ETH', '1.000000000000000001', ETH_TO))
  assert.equal(created.status, 200, created.text)
  assert.match(created.text, /"amount":1\.000000000000000001[,}]/)
  const done = await terminal(alice, created.body.id)
  assert.equal(done.status, 'confirmed', String(done.failure_reason))
  assert.equal((await balance(alice, 'ETH')).balance, '3.999999999999999999')
  assert.equal(
    BigInt(await rpc<string>(platform, 'ETH', 'eth_getBalance', [ETH_TO, 'latest'])),
    1_000_000_000_000_000_001n,
  )
})

test('the whole ETH balance can be sent', async () => {
  const { balance: all } = await balance(alice, 'ETH')
  const done = await terminal(alice, (await post(transferBody('ETH', all, ETH_TO))).body.id)
  assert.equal(done.status, 'confirmed', String(done.failure_reason))
  assert.equal((await balance(alice, 'ETH')).balance, '0')
})

test('a token transfer succeeds from a wallet without native coin', async () => {
  const done = await terminal(
    alice,
    (await post(transferBody('USDT_ETH', '250.000001', ETH_TO))).body.id,
  )
  assert.equal(done.status, 'confirmed', String(done.failure_reason))
  assert.equal((await balance(alice, 'USDT_ETH')).balance, '749.999999')
  const tokens = await rpc<string>(platform, 'ETH', 'eth_call', [
    {
      to: '0x5FbDB2315678afecb367f032d93F642f64180aa3',
      data: `0x70a08231${ETH_TO.slice(2).padStart(64, '0')}`,
    },
    'latest',
  ])
  assert.equal(BigInt(tokens), 250_000_001n)
})

test('a repeated sequence_id returns the first transfer, whatever the request contains', async () => {
  const body = transferBody('USDT_ETH', '1', ETH_TO, { sequence_id: 'again' })
  const first = await post(body)
  const second = await post(body)
  assert.equal(second.text, first.text)
  assert.equal(second.headers.get('idempotent-replayed'), 'true')
  assert.equal(second.headers.get('warning'), null)
  const other = await post(transferBody('USDT_ETH', '2', ETH_TO, { sequence_id: 'again' }))
  assert.equal(other.text, first.text)
  assert.notEqual(other.headers.get('warning'), null)
  const tooMuch = await post(
    transferBody('USDT_ETH', '999999999', ETH_TO, { sequence_id: 'again' }),
  )
  assert.equal(tooMuch.text, first.text, 'the key is looked up before the balance')
  const list = await call<{ total: string }>(
    alice,
    'GET',
    `/dac/v1/transactions?asset=USDT_ETH&id=${first.body.id}`,
  )
  assert.equal(list.body.total, '1')
  await terminal(alice, first.body.id)
})

test('a refused request does not use up its sequence_id', async () => {
  const refused = await post(transferBody('USDT_ETH', '999999', ETH_TO, { sequence_id: 'retry' }))
  assert.equal(refused.status, 400)
  assert.equal(refused.body['code'], 'INSUFFICIENT_BALANCE')
  assert.equal(refused.body['field'], 'amount')
  const accepted = await post(transferBody('USDT_ETH', '1', ETH_TO, { sequence_id: 'retry' }))
  assert.equal(accepted.status, 200, accepted.text)
  assert.equal(accepted.headers.get('idempotent-replayed'), null)
  await terminal(alice, accepted.body.id)
})

test('of 50 identical concurrent requests to two API processes, one creates the transfer', async () => {
  const other = await platform.startApi()
  try {
    const before = BigInt(
      (await balance(alice, 'USDT_ETH')).balance.replace('.', '').padEnd(1, '0'),
    )
    assert.ok(before > 0n)
    const body = transferBody('USDT_ETH', '3', ETH_TO, { sequence_id: 'race' })
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, at) =>
        post(body, alice, at % 2 === 0 ? platform.base : other.base),
      ),
    )
    assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [200])
    assert.equal(new Set(answers.map((answer) => answer.text)).size, 1)
    assert.equal(
      answers.filter((answer) => answer.headers.get('idempotent-replayed') === null).length,
      1,
    )
    const done = await terminal(alice, answers[0]?.body.id ?? '')
    assert.equal(done.status, 'confirmed')
    const list = await call<{ total: string }>(
      alice,
      'GET',
      '/dac/v1/transactions?asset=USDT_ETH&dest_id=0x00000000000000000000000000000000000000B1&status=confirmed',
    )
    assert.equal(list.status, 200)
  } finally {
    await other.stop()
  }
})

test('a nonce used at one API process is refused by another', async () => {
  const other = await platform.startApi()
  try {
    const sign = { nonce: 'shared-nonce' }
    assert.equal(
      (await call(alice, 'GET', '/dac/v1/supported-assets', undefined, { sign })).status,
      200,
    )
    const again = await call(alice, 'GET', '/dac/v1/supported-assets', undefined, {
      sign,
      base: other.base,
    })
    assert.equal(again.status, 401)
    assert.equal(again.body['field'], 'nonce')
  } finally {
    await other.stop()
  }
})

const isSwept = (asset: string, held: string, whole: number) =>
  asset === 'ETH' ? Number(held) > whole - 0.001 && Number(held) < whole : Number(held) === whole

test('coins at further addresses are swept to the omnibus address, and can then be spent', async () => {
  const bob = await platform.user('bob')
  for (const asset of ['ETH', 'USDT_ETH']) {
    await call(bob, 'POST', '/dac/v1/create-wallet', { asset })
    const omnibus = (await call<{ address: string }>(bob, 'POST', '/dac/v1/address', { asset }))
      .body.address
    const further = (
      await call<{ address: string }>(bob, 'POST', '/dac/v1/address', {
        asset,
        label: `customer of ${asset}`,
      })
    ).body.address
    assert.notEqual(further, omnibus)
    await platform.fund(asset, further, '7')
    // The gas tank pays for a token's sweep; the sweep of a native coin pays for itself.
    await waitFor(`${asset} sweep`, async () =>
      isSwept(asset, (await balance(bob, asset)).balance, 7),
    )
  }
  const sweeps = await call<{ data: Transfer[] }>(bob, 'GET', '/dac/v1/transactions?type=Sweep')
  // The unused fee of the ether sweep waits for more coins.
  assert.equal(sweeps.body.data.filter(({ status }) => status === 'confirmed').length, 2)
  const listed = await call<{ data: Transfer[] }>(bob, 'GET', '/dac/v1/transactions')
  assert.deepEqual(
    listed.body.data.map((each) => each['type']),
    ['Deposit', 'Deposit'],
    'fuel and sweeps are not listed',
  )
  const byLabel = await call<{ data: Transfer[] }>(
    bob,
    'GET',
    `/dac/v1/transactions?dest_id=${encodeURIComponent('customer of ETH')}`,
  )
  assert.equal(byLabel.body.data.length, 1)
})

test('coins that arrive before their wallet exists are credited when the wallet is created', async () => {
  const carol = await platform.user('carol')
  await call(carol, 'POST', '/dac/v1/create-wallet', { asset: 'ETH' })
  const { address } = (
    await call<{ address: string }>(carol, 'POST', '/dac/v1/address', { asset: 'ETH' })
  ).body
  await platform.fund('USDT_ETH', address, '9')
  await waitFor('deposit in suspense', async () =>
    (await call<{ data: Transfer[] }>(carol, 'GET', '/dac/v1/transactions')).body.data.some(
      (each) => each.sub_status === 'SUSPENSE',
    ),
  )
  await call(carol, 'POST', '/dac/v1/create-wallet', { asset: 'USDT_ETH' })
  assert.equal((await balance(carol, 'USDT_ETH')).balance, '9')
})

test('an empty tank fails the transfer with a reason that names the tank', async () => {
  const dave = await platform.user('dave')
  await fundedWallet(platform, dave, 'ETH', '2')
  const drained = await platform.cli(
    'gas-tank',
    'drain',
    '--workspace',
    'dave',
    '--network',
    'ETH',
    '--to',
    '0x00000000000000000000000000000000000000d1',
    '--json',
  )
  assert.equal(drained.status, 0, drained.stderr)
  const failed = await terminal(dave, (await post(transferBody('ETH', '1', ETH_TO), dave)).body.id)
  assert.equal(failed.status, 'failed')
  assert.match(String(failed.failure_reason), /gas tank of ETH .*has 0 ETH.*missing/)
  assert.equal(failed.hash, null)
  assert.equal((await balance(dave, 'ETH')).balance, '2')
  const { address } = (await platform.operator('gas-tank address', {
    workspace: 'dave',
    network: 'ETH',
  })) as { address: string }
  await platform.fund('ETH', address, '1')
  await waitFor('tank', async () => {
    const tanks = await call<{ network: string; balance: string; status: string }[]>(
      dave,
      'GET',
      '/dac/v1/gas-tanks',
    )
    return tanks.body.some(
      (tank) => tank.network === 'ETH' && tank.balance === '1' && tank.status === 'ok',
    )
  })
  const passed = await terminal(dave, (await post(transferBody('ETH', '1', ETH_TO), dave)).body.id)
  assert.equal(passed.status, 'confirmed', String(passed.failure_reason))
})

test('payments between workspaces of this platform arrive as deposits', async () => {
  const erin = await platform.user('erin')
  await call(erin, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  const { address } = (
    await call<{ address: string }>(erin, 'POST', '/dac/v1/address', { asset: 'BTC' })
  ).body
  const done = await terminal(alice, (await post(transferBody('BTC', '0.5', address))).body.id)
  assert.equal(done.status, 'confirmed')
  await waitFor('deposit', async () => (await balance(erin, 'BTC')).balance === '0.5')
})

test('each of twenty concurrent transfers from one address uses its own nonce and is confirmed', async () => {
  const frank = await platform.user('frank')
  await fundedWallet(platform, frank, 'ETH', '10')
  const to = '0x00000000000000000000000000000000000000f1'
  const created = await Promise.all(
    Array.from({ length: 20 }, (_, at) =>
      post(transferBody('ETH', '0.1', to, { sequence_id: `n${at}` }), frank),
    ),
  )
  assert.deepEqual([...new Set(created.map((answer) => answer.status))], [200])
  const done: Transfer[] = []
  for (const answer of created) done.push(await terminal(frank, answer.body.id, 120_000))
  assert.deepEqual([...new Set(done.map((each) => each.status))], ['confirmed'])
  assert.equal(new Set(done.map((each) => each.hash)).size, 20)
  assert.equal(
    BigInt(await rpc<string>(platform, 'ETH', 'eth_getBalance', [to, 'latest'])),
    2_000_000_000_000_000_000n,
  )
  assert.equal((await balance(frank, 'ETH')).balance, '8')
})

test('a transfer waits for the change of a concurrent transfer if it needs that change', async () => {
  const grace = await platform.user('grace')
  const address = await fundedWallet(platform, grace, 'BTC', '1')
  const send = async (count: number, name: string) => {
    const created = await Promise.all(
      Array.from({ length: count }, (_, at) =>
        post(transferBody('BTC', '0.05', BTC_TO, { sequence_id: `${name}${at}` }), grace),
      ),
    )
    for (const answer of created) assert.equal(answer.status, 200, answer.text)
    for (const answer of created) {
      const done = await terminal(grace, answer.body.id, 150_000)
      assert.equal(done.status, 'confirmed', String(done.failure_reason))
    }
  }
  await send(8, 'one')
  for (const amount of ['0.06', '0.07', '0.08']) await platform.fund('BTC', address, amount)
  await waitFor('deposits', async () => Number((await balance(grace, 'BTC')).balance) > 0.79)
  await send(8, 'several')
})

test('after these transfers, the ledger agrees with the chains', async () => {
  await platform.atRest()
  const audit = await platform.cli('audit', '--json')
  assert.equal(audit.status, 0, audit.stdout + audit.stderr)
})

test('a transfer is one trace from its request to its end, across platform and nodes', async () => {
  const sent = await platform.user('tracy')
  await fundedWallet(platform, sent, 'BTC', '1')
  const { body } = await post(transferBody('BTC', '0.25', BTC_TO), sent)
  await assertConfirmed(sent, body.id)
  await stopTracing()
  const spans = collector.spans.filter(({ traceId }) => traceId === body.id.replaceAll('-', ''))
  const named = (name: string) =>
    spans.find((span) => span.name === name) ??
    assert.fail(`no ${name} in ${spans.map((span) => span.name).join(', ')}`)
  const whole = named('withdrawal')
  assert.deepEqual(whole.attributes, {
    kind: 'WITHDRAWAL',
    asset: 'BTC',
    network: 'BTC',
    outcome: 'confirmed',
  })
  for (const name of ['request', 'queued', 'signing', 'signed', 'confirming'])
    assert.equal(named(name).parentSpanId, whole.spanId, name)
  // The trace continues across both connections: spans of a node are within the platform's span,
  // and the partner's spans are within the node's.
  assert.equal(named('signer POST /sign').parentSpanId, named('signing').spanId)
  assert.equal(named('/sign').parentSpanId, named('signer POST /sign').spanId)
  const peerCalls = spans.filter(({ name }) => name.startsWith('peer '))
  assert.ok(
    peerCalls.length > 0 &&
      peerCalls.every(({ parentSpanId }) => parentSpanId === named('/sign').spanId),
  )
  const receivedSpans = spans.filter(({ name }) => name.startsWith('/peer/'))
  assert.ok(
    receivedSpans.length > 0 &&
      receivedSpans.every(({ parentSpanId }) =>
        peerCalls.some(({ spanId }) => spanId === parentSpanId),
      ),
  )
  assert.ok(
    spans.some(({ name, attributes }) => name === 'chain' && attributes['network'] === 'BTC'),
  )
  for (const secret of [BTC_TO, '0.25', '25000000', sent.apiKey])
    assert.ok(!JSON.stringify(spans).includes(secret), secret)
})
