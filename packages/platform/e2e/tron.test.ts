// Tests of TRX and its tokens end to end, on a local chain that keeps Tron's rules.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { assertExportIsTied } from '../testing/exported-balances.ts'
import {
  assertConfirmed,
  balance,
  call,
  fundedWallet,
  terminal,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const platform = new TestPlatform()
let user: User
let source = ''
/** Address that no other test pays. */
const TO = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'
const NEW = 'TD3AWYqUF6hcGN5N9Ggg9yGpemnZ6vUYfH'
const USDT = 'TRsXgj6qYP5yWudH6UcYujx9yx2BWn3SKf'
const USDC = 'TCLTqardMxkfW9kneJgkLaj3pUpEYuToEs'

const send = (
  asset: string,
  amount: string,
  to: string,
  more: Record<string, unknown> = {},
  from = user,
) =>
  call<Transfer & { code: string; message: string }>(
    from,
    'POST',
    '/dac/v1/transaction',
    transferBody(asset, amount, to, more),
  )
async function sent(
  asset: string,
  amount: string,
  to: string,
  more: Record<string, unknown> = {},
  from = user,
): Promise<Transfer> {
  const answer = await send(asset, amount, to, more, from)
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}
async function confirmed(
  asset: string,
  amount: string,
  to: string,
  more: Record<string, unknown> = {},
  from = user,
): Promise<Transfer> {
  const { id } = await sent(asset, amount, to, more, from)
  const done = await terminal(from, id)
  assert.equal(done.status, 'confirmed', `${done.failure_reason ?? ''}\n${platform.output}`)
  return done
}
const devnet = (command: Record<string, unknown>) => platform.operator('devnet', command)
const audited = async () => {
  const { ok, differences, dust } = await platform.operator('audit')
  assert.deepEqual([ok, dust], [true, []], JSON.stringify(differences))
}
/** Sends a request to java-tron's HTTP interface, as an outside observer. */
async function node<T>(path: string, body: Record<string, unknown>): Promise<T> {
  const { devnet: port } = JSON.parse(readFileSync(join(platform.home, 'ports.json'), 'utf8')) as {
    devnet: number
  }
  return (await (
    await fetch(`http://127.0.0.1:${port}/trx/${path}`, {
      method: 'POST',
      body: JSON.stringify({ visible: true, ...body }),
    })
  ).json()) as T
}
const trx = async (address: string) =>
  (await node<{ balance?: number }>('wallet/getaccount', { address })).balance ?? 0
const exists = async (address: string) =>
  (await node<{ address?: string }>('wallet/getaccount', { address })).address !== undefined
const DIGITS = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
/** Returns the twenty bytes by which contracts identify an address. */
const wordOf = (address: string) =>
  [...address]
    .reduce((value, digit) => value * 58n + BigInt(DIGITS.indexOf(digit)), 0n)
    .toString(16)
    .slice(2, 42)
    .padStart(64, '0')
async function tokens(contract: string, address: string): Promise<bigint> {
  const { constant_result } = await node<{ constant_result: string[] }>(
    'wallet/triggerconstantcontract',
    {
      owner_address: TO,
      contract_address: contract,
      function_selector: 'balanceOf(address)',
      parameter: wordOf(address),
    },
  )
  return BigInt(`0x${constant_result[0]}`)
}

before(async () => {
  await platform.start()
  user = await platform.user('tron')
  source = await fundedWallet(platform, user, 'TRX', '300')
})
after(async () => platform.remove())

interface Tank {
  network: string
  address: string
  balance: string
  status: string
}
const tankOf = async (of = user) =>
  (await call<Tank[]>(of, 'GET', '/dac/v1/gas-tanks')).body.find(
    ({ network }) => network === 'TRX',
  ) as Tank
const tankSun = async (of = user) => Math.round(Number((await tankOf(of)).balance) * 1e6)
/** States in which the transaction is signed and broadcast repeatedly. */
const WAITING = ['BROADCASTING', 'CONFIRMING']
const stateOf = async (id: string, from = user) =>
  (await call<Transfer>(from, 'GET', `/dac/v1/transaction/${id}`)).body.sub_status

test('TRX to a new account: the tank pays the account’s creation, and the wallet pays nothing', async () => {
  assert.equal((await tankOf()).status, 'ok')
  const before = await waitFor(
    'the tank',
    async () => (await trx((await tankOf()).address)) > 0 && (await tankSun()),
  )
  const done = await confirmed('TRX', '12.5', NEW)
  assert.deepEqual(
    [done.fee, (await balance(user, 'TRX')).balance, await trx(NEW)],
    ['1.1', '287.5', 12_500_000],
  )
  assert.equal(before - (await tankSun()), 1_100_000, 'its fuel went by free bandwidth')
  await audited()
})

test('free bandwidth lowers the fee of a transfer, and the unused fuel pays for the next one', async () => {
  const before = await tankSun()
  assert.equal((await confirmed('TRX', '2.5', NEW)).fee, '0')
  const between = await tankSun()
  assert.ok(before - between > 200_000 && before - between < 300_000)
  const left = await trx(source)
  assert.equal((await confirmed('TRX', '2.5', NEW)).fee, '0')
  assert.equal(await tankSun(), between, 'no further fuel')
  // Both free transfers of the address are used up.
  assert.equal((await confirmed('TRX', '2.5', NEW)).fee, '0.268')
  assert.equal(left - (await trx(source)), 5_268_000)
  await audited()
})

test('sends a token from a wallet that never had TRX to an address that was never activated', async () => {
  const poor = await platform.user('tron-tokens')
  const from = await fundedWallet(platform, poor, 'USDT_TRX', '100')
  assert.equal(await exists(from), false)
  const done = await confirmed('USDT_TRX', '40.5', TO, {}, poor)
  assert.ok(Number(done.fee) > 12 && Number(done.fee) < 14, done.fee)
  assert.deepEqual(
    [await tokens(USDT, TO), await tokens(USDT, from), await exists(TO), await exists(from)],
    [40_500_000n, 59_500_000n, false, true],
  )
  assert.equal((await balance(poor, 'USDT_TRX')).balance, '59.5')
  const again = await confirmed('USDT_TRX', '9.5', TO, { fee_rate: 100 }, poor)
  assert.ok(Number(again.fee) > 6 && Number(again.fee) < 7, again.fee)
  await audited()
})

test('USDC is sent if its fee rate covers the energy price', async () => {
  assert.equal(await fundedWallet(platform, user, 'USDC_TRX', '20'), source)
  for (const [asset, fee_rate, reason] of [
    ['TRX', 999, /price of 1000 Sun/],
    ['USDC_TRX', 99, /price of 100 Sun/],
  ] as const) {
    const refused = await send(asset, '1', NEW, { fee_rate })
    assert.equal(refused.status, 400, refused.text)
    assert.match(refused.text, reason)
  }
  const done = await confirmed('USDC_TRX', '1.25', TO, { fee_rate: 500 })
  assert.deepEqual([await tokens(USDC, TO), await tokens(USDC, source)], [1_250_000n, 18_750_000n])
  assert.ok(Number(done.fee) > 1 && Number(done.fee) < 4, done.fee)
  await audited()
})

test('TRX: returns fee rates and fee estimates', async () => {
  for (const [asset, rate] of [
    ['TRX', '1000'],
    ['USDT_TRX', '100'],
    ['USDC_TRX', '100'],
  ]) {
    const { body } = await call<Record<string, string>>(
      user,
      'GET',
      `/dac/v1/network-fee-rates/${asset}`,
    )
    assert.deepEqual(
      [body['fee_rate_unit'], body['low'], body['medium'], body['high']],
      ['Sun', rate, rate, rate],
    )
  }
  const estimate = async (asset: string, fee_rate: number, more: Record<string, unknown> = {}) =>
    (
      await call<Record<string, string>>(user, 'POST', '/dac/v1/estimate-fee', {
        asset,
        fee_rate,
        ...more,
      })
    ).body
  // If the receiver is not given, it may have no account yet, so the estimate includes all costs of
  // a transfer to a new account.
  const unnamed = await estimate('TRX', 1000)
  assert.deepEqual(
    [unnamed['fee'], unnamed['activation'], unnamed['fee_asset']],
    ['1.1', '1.1', 'TRX'],
  )
  const toAccount = await estimate('TRX', 1000, { destination_address: (await tankOf()).address })
  assert.deepEqual([toAccount['fee'], toAccount['activation']], ['0.268', '0'])
  assert.deepEqual(
    [(await estimate('USDT_TRX', 100))['fee'], (await estimate('USDT_TRX', 100))['basis']],
    ['13.445', 'typical'],
  )
  const own = await estimate('USDC_TRX', 100)
  assert.equal(own['basis'], 'wallet')
  assert.ok(Number(own['fee']) > 2.5 && Number(own['fee']) < 4, own['fee'])
})

test('further addresses are swept, for TRX and tokens, and the tank pays the fee', async () => {
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'USDT_TRX' })
  const held = Number((await balance(user, 'TRX')).balance)
  const further = (
    await call<{ address: string }>(user, 'POST', '/dac/v1/address', { asset: 'TRX' })
  ).body.address
  assert.notEqual(further, source)
  await platform.fund('TRX', further, '3.5')
  // The sweep of TRX pays for itself, with the address's free bandwidth.
  await waitFor(
    'the sweep of TRX',
    async () => Number((await balance(user, 'TRX')).balance) === held + 3.5,
  )
  await platform.fund('USDT_TRX', further, '7')
  await waitFor('the sweep of USDT', async () => (await balance(user, 'USDT_TRX')).balance === '7')
  assert.equal(await tokens(USDT, further), 0n)
  await audited()
  // The payment is to a sub-account whose own address does not exist yet: TRX arrives at a further
  // address only.
  const other = await platform.user('tron', { subAccount: 'second' })
  await call(other, 'POST', '/dac/v1/create-wallet', { asset: 'TRX' })
  const first = (
    await call<{ address: string }>(other, 'POST', '/dac/v1/address', { asset: 'TRX' })
  ).body.address
  const second = (
    await call<{ address: string }>(other, 'POST', '/dac/v1/address', { asset: 'TRX' })
  ).body.address
  // Activating the address costs 1.1 TRX, which the sweep itself pays.
  await platform.fund('TRX', second, '5')
  await waitFor('the sweep', async () => (await balance(other, 'TRX')).balance === '3.9')
  assert.equal(await trx(first), 3_900_000)
  await audited()
})

test('pays a customer of the same platform from several wallets concurrently', async () => {
  const customer = await platform.user('tron', { subAccount: 'customer' })
  await call(customer, 'POST', '/dac/v1/create-wallet', { asset: 'TRX' })
  const { address } = (
    await call<{ address: string }>(customer, 'POST', '/dac/v1/address', { asset: 'TRX' })
  ).body
  const other = await platform.user('tron', { subAccount: 'other' })
  await fundedWallet(platform, other, 'TRX', '10')
  const ids = await Promise.all([
    sent('TRX', '1', address),
    sent('TRX', '1', address),
    sent('TRX', '1', address),
    sent('TRX', '1', address, {}, other),
  ])
  for (const [turn, { id }] of ids.entries()) await assertConfirmed(turn === 3 ? other : user, id)
  await waitFor('all four', async () => (await balance(customer, 'TRX')).balance === '4')
  const { body } = await call<{ data: { source_id: string; type: string }[] }>(
    customer,
    'GET',
    '/dac/v1/transactions?asset=TRX',
  )
  assert.equal(new Set(body.data.map(({ source_id }) => source_id)).size, 2)
  await audited()
})

test('with a drained tank transfers fail with tank and amount, until a top-up', async () => {
  const poor = await platform.user('tron-empty')
  await fundedWallet(platform, poor, 'TRX', '30')
  await fundedWallet(platform, poor, 'USDC_TRX', '5')
  const { address } = await tankOf(poor)
  const target = 'TEkxiTehnzSmSe2XqrBj4w32RUN966rdz8'
  const drained = await platform.cli(
    'gas-tank',
    'drain',
    '--workspace',
    'tron-empty',
    '--network',
    'TRX',
    '--to',
    target,
  )
  assert.equal(drained.status, 0, drained.stderr)
  assert.equal(await trx(target), 998_900_000)
  assert.equal(await tankSun(poor), 0)
  for (const asset of ['TRX', 'USDC_TRX']) {
    const { id } = await sent(asset, '1', TO, {}, poor)
    const done = await terminal(poor, id)
    assert.equal(done.status, 'failed')
    assert.match(
      done.failure_reason ?? '',
      new RegExp(`gas tank of TRX \\(${address}\\) has 0 TRX.*[\\d.]+ TRX are missing`),
    )
  }
  assert.deepEqual(
    [(await balance(poor, 'TRX')).balance, (await balance(poor, 'USDC_TRX')).balance],
    ['30', '5'],
  )
  await platform.fund('TRX', address, '20')
  await waitFor('the top-up', async () => (await tankSun(poor)) === 20_000_000)
  await confirmed('USDC_TRX', '1', TO, {}, poor)
  // The tank is drained to an existing account: free bandwidth is sufficient, and no amount
  // remains.
  const again = await platform.cli(
    'gas-tank',
    'drain',
    '--workspace',
    'tron-empty',
    '--network',
    'TRX',
    '--to',
    target,
  )
  assert.equal(again.status, 0, again.stderr)
  assert.equal(await tankSun(poor), 0)
  await audited()
})

test('a transfer that the chain never accepted fails at its expiry, and its money is released', async () => {
  const other = await platform.user('tron', { subAccount: 'expiry' })
  await fundedWallet(platform, other, 'TRX', '10')
  await fundedWallet(platform, other, 'USDT_TRX', '10')
  await confirmed('TRX', '1', NEW, {}, other)
  const further = (
    await call<{ address: string }>(other, 'POST', '/dac/v1/address', { asset: 'TRX' })
  ).body.address
  const held = async () => [
    (await balance(other, 'TRX')).balance,
    (await balance(other, 'USDT_TRX')).balance,
  ]
  const before = [await trx(NEW), await tokens(USDT, TO)]
  await devnet({ command: 'fault', network: 'TRX', mode: 'reject' })
  // The TRX transfer uses the bandwidth that the first one left at the address; the USDT transfer
  // needs fuel.
  const plain = await sent('TRX', '0.75', NEW, {}, other)
  await waitFor('it is signed', async () => WAITING.includes(await stateOf(plain.id, other)))
  const fuelled = await sent('USDT_TRX', '3', TO, {}, other)
  await platform.fund('TRX', further, '4')
  await waitFor('fuel of the transfer, and the sweep, which needs none, are signed', async () => {
    const waiting = async (type: string) =>
      (
        await call<{ data: Transfer[] }>(other, 'GET', `/dac/v1/transactions?type=${type}`)
      ).body.data.filter((each) => WAITING.includes(each.sub_status)).length
    return (await waiting('FUEL')) === 1 && (await waiting('SWEEP')) === 1
  })
  assert.equal(await stateOf(fuelled.id, other), 'FUELING')
  const moved = await platform.cli('devnet', 'clock', '+15m')
  assert.equal(moved.status, 0, moved.stderr)
  for (const { id } of [plain, fuelled]) {
    const done = await terminal(other, id)
    assert.equal(done.status, 'failed')
    assert.match(done.failure_reason ?? '', /expired/)
  }
  await devnet({ command: 'fault', network: 'TRX', mode: 'heal' })
  await devnet({ command: 'mine', network: 'TRX', blocks: 5 })
  assert.deepEqual(await held(), ['9', '10'])
  assert.deepEqual([await trx(NEW), await tokens(USDT, TO)], before)
  await audited()
  await confirmed('USDT_TRX', '3', TO, {}, other)
  // A sweep has no caller who could repeat it, so the platform queues it again.
  await waitFor('the sweep', async () => (await balance(other, 'TRX')).balance === '13')
  await audited()
})

test("transfers succeed if the chain's clock is permanently ahead", async () => {
  const now = async () =>
    (await node<{ block_header: { raw_data: { timestamp: number } } }>('wallet/getnowblock', {}))
      .block_header.raw_data.timestamp
  const DAY_MS = 86_400_000
  const beforeMs = Date.now()
  const moved = await platform.cli('devnet', 'clock', '+14d', '--json')
  assert.equal(moved.status, 0, moved.stderr)
  assert.ok((await now()) > beforeMs + 14 * DAY_MS)
  assert.notEqual((await platform.cli('devnet', 'clock', '14')).status, 0)
  await platform.stop()
  await platform.start()
  user.base = platform.base
  assert.ok((await now()) > beforeMs + 14 * DAY_MS)
  assert.ok(
    Date.parse((await sent('TRX', '0.1', NEW)).created_at as string) < beforeMs + DAY_MS,
    'the platform’s clock stays',
  )
  await confirmed('USDT_TRX', '1', TO)
  await audited()
  await assertExportIsTied(user)
})
