import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sendConcurrently } from '../testing/concurrent-transfers.ts'
import {
  assertConfirmed,
  balance,
  call,
  fundedWallet,
  terminal,
  TestPlatform,
  transferBody,
  waitFor,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { testEmittedEvents } from '../testing/event-assertions.ts'

const platform = new TestPlatform()
const ETH_TO = '0x00000000000000000000000000000000000000d1'

before(() => platform.start())
after(() => platform.remove())

interface Tank {
  network: string
  address: string
  balance: string
  float: string
  status: string
  threshold: string
  fee_cap: string | null
  max_gas_price: string | null
}
const tankOf = async (user: User, network: string) =>
  (await call<Tank[]>(user, 'GET', '/dac/v1/gas-tanks')).body.find(
    (each) => each.network === network,
  ) as Tank
const post = (user: User, body: string) => call<Transfer>(user, 'POST', '/dac/v1/transaction', body)
const assertEmitted = (type: string) =>
  waitFor(
    `${type} is told`,
    async () =>
      (
        await platform.database.query(
          `select 1 from events e join workspaces w on w.id = e.workspace_id where w.name = 'thin'
            and e.type = $1`,
          [type],
        )
      ).length > 0,
  )
const audit = async () => {
  const report = (await platform.operator('audit')) as { ok: boolean; differences: unknown }
  assert.equal(report.ok, true, JSON.stringify(report.differences))
}

test(
  'no nonce is skipped or reused by 60 transfers on one tank if the process is killed',
  { timeout: 600_000 },
  () => sendConcurrently(platform, 3),
)

test('a low or empty tank is reported once, and transfers fail with the missing amount', async () => {
  const user = await platform.user('thin')
  await fundedWallet(platform, user, 'USDT_AVAX', '100')
  const tank = await waitFor('the tank is filled', async () => {
    const tank = await tankOf(user, 'AVAX')
    return tank.address && tank.balance === '10' ? tank : null
  })
  assert.equal(
    (
      await platform.cli(
        'gas-tank',
        'drain',
        '--workspace',
        'thin',
        '--network',
        'AVAX',
        '--to',
        ETH_TO,
        '--json',
      )
    ).status,
    0,
  )
  await waitFor('the tank is empty', async () => (await tankOf(user, 'AVAX')).status === 'empty')
  // Waits for the event, because a state that is shorter than the monitoring interval is not
  // reported.
  await assertEmitted('gas_tank.empty')
  const before = await balance(user, 'USDT_AVAX')
  const failed = await terminal(
    user,
    (await post(user, transferBody('USDT_AVAX', '5', ETH_TO))).body.id,
  )
  assert.equal(failed.status, 'failed')
  assert.match(
    String(failed.failure_reason),
    new RegExp(
      `gas tank of AVAX \\(${tank.address}\\) has .* AVAX; this transfer requires .*, so .* are missing`,
    ),
  )
  assert.deepEqual(await balance(user, 'USDT_AVAX'), before)
  await platform.fund('AVAX', tank.address, '0.005')
  await waitFor('the tank is low', async () => (await tankOf(user, 'AVAX')).status === 'low')
  await assertEmitted('gas_tank.low')
  await assertConfirmed(user, (await post(user, transferBody('USDT_AVAX', '5', ETH_TO))).body.id)
  // The entries contain every movement: their sum equals the tank's balance plus the remainder at
  // the address.
  const now = await waitFor('the books of the tank rest', async () => {
    const shown = await tankOf(user, 'AVAX')
    return shown.status === 'low' ? shown : null
  })
  const { data, total } = (
    await call<{ data: Record<string, string>[]; total: string }>(
      user,
      'GET',
      '/dac/v1/gas-tanks/AVAX/entries?limit=500',
    )
  ).body
  assert.equal(Number(total), data.length)
  const sum = (name: string) =>
    data.reduce((all, each) => all + BigInt(Math.round(Number(each[name]) * 1e18)), 0n)
  const near = (a: bigint, b: string) =>
    assert.ok(Math.abs(Number(a) - Number(b) * 1e18) < 1e6, `${a} ${b}`)
  near(sum('balance_change'), now.balance)
  near(sum('float_change'), now.float)
  assert.equal(sum('reserved_change'), 0n)
  for (const type of ['deposit', 'fuel_reservation', 'fuel', 'use'])
    assert.ok(
      data.some((each) => each['type'] === type),
      type,
    )
  assert.equal((await call(user, 'GET', '/dac/v1/gas-tanks/BTC/entries')).status, 404)
  await audit()
})

test('the operator can limit a tank’s fee, gas price and threshold; invalid values are named', async () => {
  const user = await platform.user('limited')
  await fundedWallet(platform, user, 'USDT_POL', '100')
  const set = (...options: string[]) =>
    platform.cli('gas-tank', 'set', '--workspace', 'limited', '--network', 'POL', ...options)
  for (const [options, message] of [
    [['--fee-cap', 'x'], /--fee-cap/],
    [[], /at least one/],
    [['--max-gas-price', '0'], /--max-gas-price/],
    [['--threshold', 'none'], /--threshold/],
  ] as const) {
    const answer = await set(...options)
    assert.equal(answer.status, 1)
    assert.match(answer.stderr, message)
  }
  assert.equal((await set('--fee-cap', '0.000001', '--threshold', '20')).status, 0)
  assert.deepEqual(
    [(await tankOf(user, 'POL')).fee_cap, (await tankOf(user, 'POL')).threshold],
    ['0.000001', '20'],
  )
  const capped = await terminal(
    user,
    (await post(user, transferBody('USDT_POL', '5', ETH_TO))).body.id,
  )
  assert.match(String(capped.failure_reason), /exceeds the gas tank's cap of 0.000001 POL/)
  assert.equal((await balance(user, 'USDT_POL')).balance, '100')
  // The maximum gas price is far below the chain's price, so the transfer waits. It continues once
  // the limit is removed.
  assert.equal((await set('--fee-cap', 'none', '--max-gas-price', '0.000000001')).status, 0)
  const { id } = (await post(user, transferBody('USDT_POL', '5', ETH_TO))).body
  await platform.tried(id, 1)
  const waiting = (
    await call<Transfer & { sub_status: string }>(user, 'GET', `/dac/v1/transaction/${id}`)
  ).body
  assert.deepEqual([waiting.status, waiting.sub_status], ['pending', 'QUEUED'])
  assert.equal((await set('--max-gas-price', 'none')).status, 0)
  await assertConfirmed(user, id)
})

testEmittedEvents(() => platform.database, ['gas_tank.low', 'gas_tank.empty'])
