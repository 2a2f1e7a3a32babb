import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTracing } from '@custody/tracing'
import { startCollector } from '../../tracing/testing/collector.ts'
import { assertExportIsTied } from '../testing/exported-balances.ts'
import {
  assertConfirmed,
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

describe('with two API processes', () => {
  let other: TestPlatform
  before(async () => {
    other = await platform.startApi()
  })
  after(() => other.stop())

  test('of 50 identical concurrent requests to two API processes, one creates the transfer', async () => {
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
  })

  test('a nonce used at one API process is refused by another', async () => {
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
  })
})

const isSwept = (asset: string, held: string, whole: number) =>
  asset === 'ETH' ? Number(held) > whole - 0.001 && Number(held) < whole : Number(held) === whole

test('coins at further addresses are swept to the omnibus address, and can then be spent', async () => {
  const bob = await platform.user('alice', { subAccount: 'bob' })
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
  const carol = await platform.user('alice', { subAccount: 'carol' })
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

const EVM_TO = '0x00000000000000000000000000000000000000e5'
const CASES: {
  asset: string
  fund: string
  amount: string
  to: string
  percent: number
  also?: string
}[] = [
  {
    asset: 'BTC',
    fund: '1',
    amount: '0.1',
    to: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
    percent: 2,
  },
  {
    asset: 'LTC',
    fund: '5',
    amount: '1',
    to: 'rltc1qw508d6qejxtdg4y5r3zarvary0c5xw7k693xs3',
    percent: 2,
  },
  { asset: 'DASH', fund: '5', amount: '1', to: 'yWziQMcwmKjRdzi7eWjwiQX8EjWcd6dSg6', percent: 2 },
  { asset: 'ETH', fund: '2', amount: '0.5', to: EVM_TO, percent: 2 },
  { asset: 'USDT_ETH', fund: '100', amount: '7', to: EVM_TO, percent: 15 },
  { asset: 'BASE', fund: '2', amount: '0.5', to: EVM_TO, percent: 2 },
  { asset: 'TRX', fund: '500', amount: '20', to: 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8', percent: 2 },
  {
    asset: 'USDT_TRX',
    fund: '100',
    amount: '7',
    to: 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8',
    percent: 2,
  },
  { asset: 'XRP', fund: '100', amount: '20', to: 'rPT1Sjq2YGrBMTttX4GZHjKu9dyfzbpAYe', percent: 2 },
  {
    asset: 'XLM',
    fund: '100',
    amount: '20',
    to: 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
    percent: 2,
  },
  { asset: 'ADA', fund: '50', amount: '10', to: '', percent: 2 },
  {
    asset: 'SOL',
    fund: '5',
    amount: '1',
    to: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin',
    percent: 2,
  },
  {
    asset: 'USDT_SOL',
    also: 'SOL',
    fund: '50',
    amount: '5',
    to: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin',
    percent: 2,
  },
]
/** Returns the rate that a transfer actually used, for chains that do not use the offered one. */
async function rateUsed(asset: string, hash: string, offered: string): Promise<string> {
  if (!['ETH', 'USDT_ETH', 'BASE'].includes(asset)) return offered
  const { effectiveGasPrice } = await rpc<{ effectiveGasPrice: string }>(
    platform,
    asset === 'BASE' ? 'BASE' : 'ETH',
    'eth_getTransactionReceipt',
    [hash],
  )
  const wei = BigInt(effectiveGasPrice).toString().padStart(10, '0')
  return `${wei.slice(0, -9)}.${wei.slice(-9)}`
}
const table: string[] = []
after(() => {
  for (const line of table) process.stdout.write(`${line}\n`)
})

describe('fee estimates are close to the paid fees', { concurrency: CASES.length }, () => {
  for (const { asset, fund, amount, to: fixed, percent, also } of CASES) {
    test(`${asset}: the estimate is within ${percent} % of the fee paid`, async () => {
      const user = await platform.user('alice', { subAccount: asset })
      if (also) await fundedWallet(platform, user, also, '5')
      await fundedWallet(platform, user, asset, fund)
      const to = fixed === '' ? await otherAddress(asset) : fixed
      const { medium } = (
        await call<{ medium: string }>(user, 'GET', `/dac/v1/network-fee-rates/${asset}`)
      ).body
      const offered = String(medium)
      const estimate = async (rate: string) => {
        const answer = await call<Record<string, string>>(
          user,
          'POST',
          '/dac/v1/estimate-fee',
          `{"asset":"${asset}","fee_rate":${rate},"amount":${amount},"destination_address":"${to}"}`,
        )
        assert.equal(answer.status, 200, answer.text)
        return answer.body
      }
      // The receiver of a second token payment already holds the token, which makes the payment
      // cheaper.
      for (const payment of asset.startsWith('USDT_') ? ['first', 'second'] : ['only']) {
        const before = await estimate(offered)
        const created = await call<{ id: string }>(
          user,
          'POST',
          '/dac/v1/transaction',
          transferBody(asset, amount, to),
        )
        assert.equal(created.status, 200, created.text)
        const done = await terminal(user, created.body.id)
        assert.equal(done.status, 'confirmed', String(done.failure_reason))
        const used = await rateUsed(asset, done.hash as string, offered)
        // A new estimate may differ, because the state has changed in the meantime (coins were
        // spent, the receiver now holds the token). In these cases the earlier estimate is used.
        const at = used === offered || payment !== 'only' ? before : await estimate(used)
        const total = Number(at['fee']) * (payment === 'only' ? 1 : Number(used) / Number(offered))
        const off = (100 * (total - Number(done.fee))) / Number(done.fee)
        table.push(
          `${asset.padEnd(9)} ${payment.padEnd(6)} rate ${used} estimate ${total} paid ${done.fee} (${off.toFixed(2)} %)`,
        )
        assert.ok(
          Math.abs(off) <= percent,
          `${payment}: ${total} against ${done.fee}: ${off.toFixed(2)} %`,
        )
      }
    })
  }
})

/** Returns an address of another owner, for assets without a well-known one. */
async function otherAddress(asset: string): Promise<string> {
  const other: User = await platform.user('alice', { subAccount: 'other' })
  await call(other, 'POST', '/dac/v1/create-wallet', { asset })
  return (await call<{ address: string }>(other, 'POST', '/dac/v1/address', { asset })).body.address
}

describe('replacements', () => {
  let sender: User
  before(async () => {
    sender = await platform.user('alice', { subAccount: 'replacements' })
    await Promise.all([
      fundedWallet(platform, sender, 'BTC', '2'),
      fundedWallet(platform, sender, 'ETH', '5').then(() =>
        fundedWallet(platform, sender, 'USDT_ETH', '1000'),
      ),
    ])
  })
  const send = (body: string) => post(body, sender)
  const audit = async () => {
    const report = (await platform.operator('audit')) as { ok: boolean; differences: unknown }
    assert.equal(report.ok, true, JSON.stringify(report.differences))
  }
  const amend = (id: string, name: 'speed-up' | 'cancel', body: Record<string, unknown> = {}) =>
    call<Transfer>(sender, 'POST', `/dac/v1/transaction/${id}/${name}`, JSON.stringify(body))
  const read = async (id: string) =>
    (
      await call<
        Transfer & {
          sub_status: string
          replacements?: { kind: string; state: string; reason: string | null }[]
        }
      >(sender, 'GET', `/dac/v1/transaction/${id}`)
    ).body
  const congest = (network: string, fee_rate: string) =>
    platform.operator('devnet', { command: 'congestion', network, fee_rate })
  const waiting = (id: string) =>
    waitFor('the transfer waits for a block', async () => {
      const transfer = await read(id)
      return transfer.sub_status === 'CONFIRMING' && transfer.hash !== null ? transfer : null
    })
  const satoshi = (text: string) => BigInt(Math.round(Number(text) * 1e8))

  test('Bitcoin: a transfer with too low a fee waits, and is mined after a speed-up', async () => {
    await congest('BTC', '60')
    const before = await balance(sender, 'BTC')
    const created = await send(transferBody('BTC', '0.1', BTC_TO, { fee_rate: 5 }))
    const low = await waiting(created.body.id)
    const tooLittle = await amend(low.id, 'speed-up', { fee_rate: 5.5 })
    assert.equal(tooLittle.status, 400)
    assert.equal(tooLittle.body['field'], 'fee_rate')
    assert.equal((await amend(low.id, 'speed-up', { fee_rate: 70, fee_level: 'high' })).status, 400)
    assert.equal((await amend(low.id, 'speed-up', { feerate: 70 })).body['code'], 'UNKNOWN_FIELD')
    const response = await amend(low.id, 'speed-up', { fee_rate: 70 })
    assert.equal(response.status, 200, response.text)
    const done = await terminal(sender, low.id)
    assert.equal(done.status, 'confirmed', String(done.failure_reason))
    assert.notEqual(done.hash, low.hash)
    await assert.rejects(rpc(platform, 'BTC', 'getrawtransaction', [low.hash, true]))
    const onChain = await rpc<{ vout: { value: number; scriptPubKey: { address: string } }[] }>(
      platform,
      'BTC',
      'getrawtransaction',
      [done.hash, true],
    )
    assert.ok(
      onChain.vout.some((output) => output.value === 0.1 && output.scriptPubKey.address === BTC_TO),
    )
    assert.equal(
      satoshi((await balance(sender, 'BTC')).balance),
      satoshi(before.balance) - satoshi('0.1') - satoshi(done.fee),
    )
    assert.deepEqual(
      (await read(low.id)).replacements?.map(({ kind, state }) => [kind, state]),
      [['speed-up', 'done']],
    )
    assert.equal((await amend(low.id, 'speed-up')).body['code'], 'TRANSACTION_FINAL')
    await congest('BTC', '0')
    await audit()
  })

  test('Ethereum: speeds up one token transfer and cancels another, and both nonces are used', async () => {
    await congest('ETH', '40')
    const token = await balance(sender, 'USDT_ETH')
    const low = await waiting(
      (await send(transferBody('USDT_ETH', '10', ETH_TO, { fee_rate: 20 }))).body.id,
    )
    const tooLittle = await amend(low.id, 'speed-up', { fee_rate: 21.9 })
    assert.equal(tooLittle.status, 400)
    assert.match(tooLittle.text, /at least 22 GWei/)
    const faster = await amend(low.id, 'speed-up', { fee_rate: 90 })
    assert.equal(faster.status, 200, faster.text)
    const done = await terminal(sender, low.id)
    assert.equal(done.status, 'confirmed', String(done.failure_reason))
    assert.notEqual(done.hash, low.hash)
    assert.equal(Number((await balance(sender, 'USDT_ETH')).balance), Number(token.balance) - 10)

    const coins = (await balance(sender, 'ETH')).balance
    const native = await waiting(
      (await send(transferBody('ETH', '1.5', ETH_TO, { fee_rate: 20 }))).body.id,
    )
    assert.equal((await amend(native.id, 'cancel')).status, 200)
    const ended = await terminal(sender, native.id)
    assert.deepEqual(
      [ended.status, (await read(native.id)).sub_status],
      ['failed', 'CANCELLED'],
      String(ended.failure_reason),
    )
    assert.equal(
      (await balance(sender, 'ETH')).balance,
      coins,
      'the tank paid the fee of the cancellation',
    )
    await congest('ETH', '0')
    const next = await terminal(sender, (await send(transferBody('ETH', '1', ETH_TO))).body.id)
    assert.equal(next.status, 'confirmed', String(next.failure_reason))
    await audit()
  })
})

test('after these transfers, the ledger agrees with the chains', async () => {
  await platform.atRest()
  const audit = await platform.cli('audit', '--json')
  assert.equal(audit.status, 0, audit.stdout + audit.stderr)
  assert.match(audit.stdout, /"dust":\s*\[\]/)
  const lines = await assertExportIsTied(alice)
  for (const asset of ['BTC', 'ETH', 'USDT_ETH'])
    assert.ok((lines.get(asset) ?? 0) > 3, `${lines.get(asset)} lines of ${asset}`)
})

test('a transfer is one trace from its request to its end, across platform and nodes', async () => {
  const sent = await platform.user('alice', { subAccount: 'tracy' })
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
