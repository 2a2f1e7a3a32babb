// Tests of the energy of a gas tank's own stake on Tron, which is lent for one transfer and
// returned after it.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
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
let from = ''
let tank = ''
const TO = 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'

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
const staked = async (address: string) =>
  (
    await node<{ frozenV2?: { type?: string; amount?: number }[] }>('wallet/getaccount', {
      address,
    })
  ).frozenV2?.find(({ type }) => type === 'ENERGY')?.amount ?? 0
async function lent(to: string): Promise<number> {
  const { delegatedResource } = await node<{ delegatedResource: Record<string, number>[] }>(
    'wallet/getdelegatedresourcev2',
    { fromAddress: tank, toAddress: to },
  )
  return delegatedResource[0]?.['frozen_balance_for_energy'] ?? 0
}
const tankSun = async () =>
  Math.round(
    Number(
      (
        await call<{ network: string; balance: string }[]>(user, 'GET', '/dac/v1/gas-tanks')
      ).body.find(({ network }) => network === 'TRX')?.balance,
    ) * 1e6,
  )
const send = (amount = '1') =>
  call<Transfer>(user, 'POST', '/dac/v1/transaction', transferBody('USDT_TRX', amount, TO))
async function sent(): Promise<Transfer> {
  const answer = await send()
  assert.equal(answer.status, 200, answer.text)
  const done = await terminal(user, answer.body.id)
  assert.equal(done.status, 'confirmed', `${done.failure_reason ?? ''}\n${platform.output}`)
  return done
}
const of = async (type: string) =>
  (await call<{ data: Transfer[] }>(user, 'GET', `/dac/v1/transactions?type=${type}&limit=500`))
    .body.data
const returned = async () =>
  (await of('EnergyLoan')).filter(({ status }) => status === 'confirmed').length ===
  (await of('EnergyReturn')).filter(({ status }) => status === 'confirmed').length
const idle = () =>
  waitFor(
    'all energy is back',
    async () =>
      (await of('EnergyLoan')).every(({ status }) => status !== 'pending') && (await returned()),
  )
const audited = async () => {
  const { ok, differences, dust } = await platform.operator('audit')
  assert.deepEqual([ok, dust], [true, []], JSON.stringify(differences))
}
const order = (...words: string[]) =>
  platform.cli('gas-tank', ...words, '--workspace', 'energy', '--network', 'TRX')

before(async () => {
  await platform.start()
  user = await platform.user('energy')
  from = await fundedWallet(platform, user, 'TRX', '5')
  await fundedWallet(platform, user, 'USDT_TRX', '500')
  tank = String(
    (await platform.operator('gas-tank address', { workspace: 'energy', network: 'TRX' }))[
      'address'
    ],
  )
})
after(async () => platform.remove())

test('without a stake, the tank burns TRX for each transfer', async () => {
  await sent()
  const held = await tankSun()
  const done = await sent()
  assert.ok(Number(done.fee) > 6, done.fee)
  console.log(`burnt: fee ${done.fee} TRX, the tank gave ${(held - (await tankSun())) / 1e6} TRX`)
  await audited()
})

test('the operator stakes for the tank with a command at each node', async () => {
  await platform.fund('TRX', tank, '40000')
  await waitFor('the top-up', async () => (await tankSun()) > 40_000_000_000)
  const bad = await order('stake', '--amount', '0.5')
  assert.match(bad.stderr, /at least 1 TRX/)
  assert.match((await order('stake', '--amount', '900000')).stderr, /the tank has/)
  assert.match((await order('unstake', '--amount', '5')).stderr, /0 TRX of the tank's stake/)
  assert.match((await order('release')).stderr, /no unstaked TRX/)
  const made = await order('stake', '--amount', '30000', '--resource', 'ENERGY')
  assert.equal(made.status, 0, made.stderr)
  assert.equal(await staked(tank), 30_000_000_000)
  await audited()
})

test('a token transfer borrows energy and returns it, and the tank pays only bandwidth', async () => {
  const before = await tankSun()
  const done = await sent()
  assert.ok(Number(done.fee) <= 0.345, done.fee)
  await idle()
  assert.deepEqual(
    [await lent(from), await staked(tank), (await of('EnergyLoan')).length],
    [0, 30_000_000_000, 1],
  )
  const paid = before - (await tankSun())
  assert.ok(paid < 1_000_000, `${paid} sun`)
  console.log(
    `lent: fee ${done.fee} TRX, the tank gave ${paid / 1e6} TRX for lending, taking back and bandwidth`,
  )
  assert.equal((await balance(user, 'TRX')).balance, '5')
  await audited()
})

test('concurrent transfers borrow the staked energy, and those beyond the stake burn TRX', async () => {
  const answers = await Promise.all(Array.from({ length: 5 }, () => send()))
  for (const { body } of answers) await assertConfirmed(user, body.id)
  await idle()
  const loans = (await of('EnergyLoan')).length - 1
  assert.ok(loans >= 1 && loans < 5, `${loans} loans`)
  assert.deepEqual([await lent(from), await staked(tank)], [0, 30_000_000_000])
  await audited()
})

test('a transfer that expires also returns its energy', async () => {
  // Used energy regenerates within a day.
  assert.equal((await platform.cli('devnet', 'clock', '+1d')).status, 0)
  const { body } = await send('3')
  await waitFor(
    'the loan is final',
    async () =>
      (await of('EnergyLoan')).some(
        ({ status, confirmations }) => status === 'confirmed' && Number(confirmations) > 0,
      ) && (await lent(from)) > 0,
  )
  await platform.operator('devnet', { command: 'fault', network: 'TRX', mode: 'reject' })
  const state = await waitFor('it is sent, or was in time', async () => {
    const { sub_status } = (await call<Transfer>(user, 'GET', `/dac/v1/transaction/${body.id}`))
      .body
    return ['BROADCASTING', 'CONFIRMING', 'CONFIRMED'].includes(sub_status) && sub_status
  })
  assert.equal((await platform.cli('devnet', 'clock', '+15m')).status, 0)
  const done = await terminal(user, body.id)
  if (state === 'BROADCASTING') assert.match(done.failure_reason ?? '', /expired/)
  await platform.operator('devnet', { command: 'fault', network: 'TRX', mode: 'heal' })
  await idle()
  assert.deepEqual([await lent(from), await staked(tank)], [0, 30_000_000_000])
  await audited()
})

test('energy is returned once if a process is killed while it is lent', async () => {
  for (const point of ['transaction.fuel-reserved', 'transaction.signed', 'transaction.settled']) {
    assert.equal((await platform.cli('devnet', 'clock', '+1d')).status, 0)
    const send = () =>
      call<Transfer>(
        user,
        'POST',
        '/dac/v1/transaction',
        transferBody('USDT_TRX', '1', TO, { sequence_id: point }),
      )
    await platform.dieAt(point, send)
    user.base = platform.base
    const { body } = await send()
    const done = await terminal(user, body.id)
    assert.equal(done.status, 'confirmed', done.failure_reason ?? '')
    assert.ok(Number(done.fee) <= 0.345, done.fee)
  }
  await idle()
  assert.deepEqual([await lent(from), await staked(tank)], [0, 30_000_000_000])
  await audited()
})

test('the operator unstakes, and releases the TRX after the cooldown', async () => {
  const held = await tankSun()
  const made = await order('unstake', '--amount', '10000')
  assert.equal(made.status, 0, made.stderr)
  assert.equal(await staked(tank), 20_000_000_000)
  assert.match((await order('release')).stderr, /no unstaked TRX/)
  await audited()
  assert.equal((await platform.cli('devnet', 'clock', '+15d')).status, 0)
  assert.match((await order('unstake', '--amount', '1')).stderr, /gas-tank release/)
  const released = await order('release')
  assert.equal(released.status, 0, released.stderr)
  assert.ok((await tankSun()) > held + 9_999_000_000)
  await audited()
})
