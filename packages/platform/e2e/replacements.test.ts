import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
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

/**
 * Tests of speed-up, cancellation and the automatic bump, on chains whose blocks include only
 * transactions with a sufficient fee.
 */
const platform = new TestPlatform()
let alice: User

const BTC_TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
const ETH_TO = '0x00000000000000000000000000000000000000b1'

before(async () => {
  await platform.start({ CUSTODY_FEE_BUMP_AFTER_S: '4' })
  alice = await platform.user('alice')
  await Promise.all([
    fundedWallet(platform, alice, 'BTC', '2'),
    fundedWallet(platform, alice, 'ETH', '5').then(() =>
      fundedWallet(platform, alice, 'USDT_ETH', '1000'),
    ),
  ])
})
after(() => platform.remove())

const post = (body: string) => call<Transfer>(alice, 'POST', '/dac/v1/transaction', body)
const amend = (
  id: string,
  name: 'speed-up' | 'cancel',
  body: Record<string, unknown> = {},
  user = alice,
) => call<Transfer>(user, 'POST', `/dac/v1/transaction/${id}/${name}`, JSON.stringify(body))
const read = async (id: string) =>
  (
    await call<
      Transfer & {
        sub_status: string
        replacements?: { kind: string; state: string; reason: string | null }[]
      }
    >(alice, 'GET', `/dac/v1/transaction/${id}`)
  ).body
const congest = (network: string, fee_rate: string) =>
  platform.operator('devnet', { command: 'congestion', network, fee_rate })
const waiting = (id: string) =>
  waitFor('the transfer waits for a block', async () => {
    const transfer = await read(id)
    return transfer.sub_status === 'CONFIRMING' && transfer.hash !== null ? transfer : null
  })
const audit = async () => {
  const report = (await platform.operator('audit')) as { ok: boolean; differences: unknown }
  assert.equal(report.ok, true, JSON.stringify(report.differences))
}
const satoshi = (text: string) => BigInt(Math.round(Number(text) * 1e8))

test('Bitcoin: a transfer with too low a fee waits, and is mined after a speed-up', async () => {
  await congest('BTC', '60')
  const before = await balance(alice, 'BTC')
  const created = await post(transferBody('BTC', '0.1', BTC_TO, { fee_rate: 5 }))
  const low = await waiting(created.body.id)
  const tooLittle = await amend(low.id, 'speed-up', { fee_rate: 5.5 })
  assert.equal(tooLittle.status, 400)
  assert.equal(tooLittle.body['field'], 'fee_rate')
  assert.equal((await amend(low.id, 'speed-up', { fee_rate: 70, fee_level: 'high' })).status, 400)
  assert.equal((await amend(low.id, 'speed-up', { feerate: 70 })).body['code'], 'UNKNOWN_FIELD')
  const response = await amend(low.id, 'speed-up', { fee_rate: 70 })
  assert.equal(response.status, 200, response.text)
  const done = await terminal(alice, low.id)
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
    satoshi((await balance(alice, 'BTC')).balance),
    satoshi(before.balance) - satoshi('0.1') - satoshi(done.fee),
  )
  assert.deepEqual(
    (await read(low.id)).replacements?.map(({ kind, state }) => [kind, state]),
    [['speed-up', 'done']],
  )
  assert.equal((await amend(low.id, 'speed-up')).body['code'], 'TRANSACTION_FINAL')
  await audit()
})

test('Bitcoin: a cancelled transfer returns its inputs, and its change can be spent again', async () => {
  await congest('BTC', '60')
  const before = await balance(alice, 'BTC')
  const low = await waiting(
    (await post(transferBody('BTC', '0.2', BTC_TO, { fee_rate: 5 }))).body.id,
  )
  const response = await amend(low.id, 'cancel')
  assert.equal(response.status, 200, response.text)
  assert.equal((await amend(low.id, 'cancel')).status, 200, 'twice is once')
  const done = await terminal(alice, low.id)
  assert.equal(done.status, 'failed')
  assert.equal((await read(low.id)).sub_status, 'CANCELLED')
  assert.match(String(done.failure_reason), /cancelled/)
  assert.equal(
    satoshi((await balance(alice, 'BTC')).balance),
    satoshi(before.balance) - satoshi(done.fee),
  )
  await congest('BTC', '0')
  const next = await terminal(alice, (await post(transferBody('BTC', '1', BTC_TO))).body.id)
  assert.equal(next.status, 'confirmed', String(next.failure_reason))
  await audit()
})

test('refuses to replace a transfer whose change is spent, and lets the later one pay for both', async () => {
  await congest('BTC', '60')
  const first = await waiting(
    (await post(transferBody('BTC', '0.01', BTC_TO, { fee_rate: 5 }))).body.id,
  )
  const second = await waiting(
    (await post(transferBody('BTC', '0.01', BTC_TO, { fee_rate: 6 }))).body.id,
  )
  for (const name of ['speed-up', 'cancel'] as const) {
    const refused = await amend(first.id, name)
    assert.equal(refused.status, 400, refused.text)
    assert.equal(refused.body['code'], 'NOT_REPLACEABLE')
    assert.match(refused.text, new RegExp(second.id))
  }
  await congest('BTC', '0')
  for (const { id } of [first, second]) await assertConfirmed(alice, id)
})

test('the platform speeds up a waiting transfer automatically, up to the caller’s own rate', async () => {
  const low = await waiting(
    (
      await (async () => {
        await congest('BTC', '60')
        return post(transferBody('BTC', '0.03', BTC_TO, { fee_rate: 59 }))
      })()
    ).body.id,
  )
  const { hash, replacements } = await waitFor('the bump is refused', async () => {
    const transfer = await read(low.id)
    return transfer.replacements?.some(({ state }) => state === 'refused') ? transfer : null
  })
  assert.equal(hash, low.hash)
  // The platform tries again every four seconds.
  for (const { kind, state, reason } of replacements ?? [])
    assert.deepEqual(
      [kind, state, reason],
      ['automatic', 'refused', 'the fee_rate of the transfer allows no higher fee'],
    )
  await congest('BTC', '0')
  await assertConfirmed(alice, low.id)
  // The fee is fixed at a low market price; then the price rises.
  await waitFor(
    'the rates are calm again',
    async () =>
      Number(
        (await call<{ medium: string }>(alice, 'GET', '/dac/v1/network-fee-rates/BTC')).body.medium,
      ) < 50,
  )
  await platform.operator('devnet', { command: 'fault', network: 'BTC', mode: 'reject' })
  const { id } = (await post(transferBody('BTC', '0.03', BTC_TO, { fee_level: 'low' }))).body
  await waitFor('it is signed', async () => (await read(id)).sub_status === 'BROADCASTING')
  const signed = (await read(id)).hash
  await congest('BTC', '60')
  await platform.operator('devnet', { command: 'fault', network: 'BTC', mode: 'heal' })
  const done = await terminal(alice, id)
  assert.equal(done.status, 'confirmed', String(done.failure_reason))
  assert.notEqual(done.hash, signed)
  // Rates are cached for ten seconds, so the first bump may not be sufficient.
  const bumps = (await read(id)).replacements ?? []
  assert.ok(
    bumps.length > 0 && bumps.every(({ kind, state }) => kind === 'automatic' && state === 'done'),
    JSON.stringify(bumps),
  )
  await congest('BTC', '0')
  await audit()
})

test('Ethereum: speeds up one token transfer and cancels another, and both nonces are used', async () => {
  await congest('ETH', '40')
  const token = await balance(alice, 'USDT_ETH')
  const low = await waiting(
    (await post(transferBody('USDT_ETH', '10', ETH_TO, { fee_rate: 20 }))).body.id,
  )
  const tooLittle = await amend(low.id, 'speed-up', { fee_rate: 21.9 })
  assert.equal(tooLittle.status, 400)
  assert.match(tooLittle.text, /at least 22 GWei/)
  const faster = await amend(low.id, 'speed-up', { fee_rate: 90 })
  assert.equal(faster.status, 200, faster.text)
  const done = await terminal(alice, low.id)
  assert.equal(done.status, 'confirmed', String(done.failure_reason))
  assert.notEqual(done.hash, low.hash)
  assert.equal(Number((await balance(alice, 'USDT_ETH')).balance), Number(token.balance) - 10)

  const coins = (await balance(alice, 'ETH')).balance
  const native = await waiting(
    (await post(transferBody('ETH', '1.5', ETH_TO, { fee_rate: 20 }))).body.id,
  )
  assert.equal((await amend(native.id, 'cancel')).status, 200)
  const ended = await terminal(alice, native.id)
  assert.deepEqual(
    [ended.status, (await read(native.id)).sub_status],
    ['failed', 'CANCELLED'],
    String(ended.failure_reason),
  )
  assert.equal(
    (await balance(alice, 'ETH')).balance,
    coins,
    'the tank paid the fee of the cancellation',
  )
  await congest('ETH', '0')
  const next = await terminal(alice, (await post(transferBody('ETH', '1', ETH_TO))).body.id)
  assert.equal(next.status, 'confirmed', String(next.failure_reason))
  await audit()
})

test('an unsigned transfer is cancelled at no cost, and a signed one only on supporting chains', async () => {
  await platform.operator('devnet', { command: 'fault', network: 'ETH', mode: 'down' })
  const before = await balance(alice, 'ETH')
  const created = await post(transferBody('ETH', '0.5', ETH_TO))
  assert.equal(created.status, 200, created.text)
  assert.equal((await amend(created.body.id, 'cancel')).status, 200)
  const done = await terminal(alice, created.body.id)
  assert.deepEqual(
    [done.status, done.hash, (await read(created.body.id)).sub_status],
    ['failed', null, 'CANCELLED'],
  )
  assert.equal((await balance(alice, 'ETH')).balance, before.balance)
  await platform.operator('devnet', { command: 'fault', network: 'ETH', mode: 'heal' })

  await fundedWallet(platform, alice, 'DASH', '5')
  await congest('DASH', '90')
  const dash = await waiting(
    (await post(transferBody('DASH', '1', 'yWziQMcwmKjRdzi7eWjwiQX8EjWcd6dSg6', { fee_rate: 5 })))
      .body.id,
  )
  for (const name of ['speed-up', 'cancel'] as const) {
    const refused = await amend(dash.id, name)
    assert.equal(refused.body['code'], 'NOT_REPLACEABLE', refused.text)
  }
  await congest('DASH', '0')
  await assertConfirmed(alice, dash.id)
})

test('refuses to replace foreign transfers, unknown ids and deposits, or with a read-only key', async () => {
  const missing = await amend('00000000-0000-4000-8000-000000000000', 'cancel')
  assert.equal(missing.status, 404)
  const deposit = (
    await call<{ data: Transfer[] }>(
      alice,
      'GET',
      '/dac/v1/transactions?asset=BTC&dest_type=INTERNAL',
    )
  ).body.data[0] as Transfer
  assert.equal((await amend(deposit.id, 'speed-up')).body['code'], 'NOT_REPLACEABLE')
  const reader = await platform.user('alice', { role: 'read-only' })
  assert.equal((await amend(deposit.id, 'cancel', {}, reader)).status, 403)
  const stranger = await platform.user('stranger')
  assert.equal((await amend(deposit.id, 'cancel', {}, stranger)).status, 403)
})
