import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { useApi } from '../../../testing/api-support.ts'
import { call, transferBody } from '../../../testing/harness.ts'

/**
 * Tests of transfers that the API refuses by the rules of their network, without a request to the
 * chain.
 */
const api = useApi()
let user: Awaited<ReturnType<typeof api.user>>
const own: Record<string, string> = {}
const HELD: Record<string, bigint> = {
  ADA: 100_000_000n,
  SOL: 3_000_000_000n,
  TRX: 300_000_000n,
  USDC_TRX: 20_000_000n,
}

before(async () => {
  await api.started
  user = await api.user('refusals')
  for (const [asset, held] of Object.entries(HELD)) {
    const made = await call(user, 'POST', '/dac/v1/create-wallet', { asset })
    assert.equal(made.status, 200, made.text)
    const { body } = await call<{ address: string }>(user, 'POST', '/dac/v1/address', { asset })
    own[asset] = body.address
    await api.fund(user, asset, held)
  }
})

type Case = [asset: string, amount: string, to: string, more: Record<string, unknown>, why: RegExp]

async function assertRefused(cases: readonly Case[]): Promise<void> {
  for (const [asset, amount, to, more, reason] of cases) {
    const answer = await call(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody(asset, amount, to, more),
    )
    assert.equal(answer.status, 400, `${asset} ${amount} ${to}: ${answer.text}`)
    assert.match(answer.text, reason)
  }
  const { body } = await call<{ total: string }>(user, 'GET', '/dac/v1/transactions')
  assert.equal(body.total, '0', 'nothing was created')
}

test('ADA: refuses invalid amounts, addresses, tags and fee rates with the reason', async () => {
  // An enterprise address of CIP-19's test vectors.
  const to = 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz'
  const stake = 'stake_test1uqehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gssrtvn'
  const mainnet = 'addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8'
  await assertRefused([
    ['ADA', '0.9', to, {}, /must be at least 1 ADA/],
    ['ADA', '5', stake, {}, /stake address/],
    ['ADA', '5', mainnet, {}, /another network/],
    ['ADA', '5', to, { address_tag: '7' }, /no address tags/],
    ['ADA', '5', to, { fee_rate: 43 }, /at least 44 Lovelace, the minimum/],
    ['ADA', '5', to, { fee_rate: 44.5 }, /decimals/],
    ['ADA', '500', to, {}, /spendable balance/],
  ])
})

test('SOL: refuses invalid receivers, tags, low fees and the reserve of the account', async () => {
  const to = 'vines1vzrYbzLMRdu58ou5XTby4qAqVRLmqo36NKPTg'
  const mint = 'wg5iSXxsT4Bq3MtZ4FfAxarKDCc9vWGqvgSF9DG2ab7'
  await assertRefused([
    ['SOL', '0.1', own['SOL'] as string, {}, /would be sent/],
    ['SOL', '0.1', mint, {}, /is the contract of USDT_SOL/],
    ['SOL', '0.1', to, { address_tag: '7' }, /no address tags/],
    ['SOL', '0.1', to, { fee_rate: 4999 }, /at least 5000 Lamport, the minimum/],
    ['SOL', '2.9995', to, {}, /must stay on the account/],
  ])
})

test('SOL: a token transfer of a sub-account without SOL is refused, and names the wallet', async () => {
  const poor = await api.user('refusals', { subAccount: 'poor' })
  assert.equal(
    (await call(poor, 'POST', '/dac/v1/create-wallet', { asset: 'USDT_SOL' })).status,
    200,
  )
  await api.fund(poor, 'USDT_SOL', 5_000_000n)
  const refused = await call(
    poor,
    'POST',
    '/dac/v1/transaction',
    transferBody('USDT_SOL', '1', '9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM'),
  )
  assert.equal(refused.status, 400, refused.text)
  assert.match(refused.text, /sub-account's SOL wallet/)
})

test('TRX: refuses contracts, the own address, tags, other formats and fractional rates', async () => {
  const to = 'TD3AWYqUF6hcGN5N9Ggg9yGpemnZ6vUYfH'
  const usdt = 'TRsXgj6qYP5yWudH6UcYujx9yx2BWn3SKf'
  const usdc = 'TCLTqardMxkfW9kneJgkLaj3pUpEYuToEs'
  const hex = '41cdea5b0c6d5d6e7a0e26c9a2a2ac1d2c4a02e5f3'
  await assertRefused([
    ['TRX', '1', usdt, {}, /is the contract of USDT_TRX/],
    ['USDC_TRX', '1', usdc, {}, /own contract/],
    ['TRX', '1', own['TRX'] as string, {}, /would be sent/],
    ['USDC_TRX', '1', own['TRX'] as string, {}, /would be sent/],
    ['TRX', '1', to, { address_tag: '7' }, /no address tags/],
    ['TRX', '1', hex, {}, /starts with T/],
    ['TRX', '1', to, { fee_rate: 1000.5 }, /at most 0 decimals/],
  ])
})
