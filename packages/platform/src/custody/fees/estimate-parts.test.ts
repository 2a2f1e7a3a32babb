import assert from 'node:assert/strict'
import { test } from 'node:test'
import { solana } from '@custody/chains'
import { estimateFeeEndpoint } from './estimate-fee.ts'
import type { Caller } from '../../core/http/endpoint.ts'
import { systemEnvironment } from '../../core/environment.ts'
import { fixtureServices } from '../../../testing/chains/chain-fixture.ts'
import { plain } from '../../../testing/harness.ts'

/**
 * Tests that `fee` is the total cost of a transfer, so that a caller that reads only `fee` knows
 * the cost. The parts are listed in separate fields.
 */
const SOL_TO = '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin'
const TRX_TO = 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8'

async function estimate(o: {
  asset: string
  rate: string
  to?: string
  exists?: boolean
}): Promise<Record<string, string>> {
  const client = {
    account: async () => (o.exists ? {} : null),
    isActivated: async () => o.exists === true,
    parameters: async () => ({
      createAccountSun: 100_000n,
      createAccountFeeSun: 1_000_000n,
      bandwidthSun: 1000n,
      energySun: 100n,
    }),
    resources: async () => ({ energyLeft: 0n, stakedBandwidthLeft: 0n, freeBandwidthLeft: 0n }),
  }
  const services = fixtureServices(
    {
      keys: {
        get: async () => {
          throw new Error('not asked')
        },
      },
      environment: systemEnvironment(),
    },
    { SOL: client, TRX: client, XRP: client },
  )
  const body = {
    asset: o.asset,
    fee_rate: o.rate,
    ...(o.to === undefined ? {} : { destination_address: o.to }),
  }
  const answer = await estimateFeeEndpoint.handler(
    {
      askedAt: 0,
      caller: {} as Caller,
      body,
      query: undefined,
      params: undefined,
      signed: { token: '', method: 'POST', uri: '', body: '' },
    },
    services,
  )
  return plain(answer.body) as Record<string, string>
}

test('Solana token: the fee includes and itemises the rent of the receiver’s account', async () => {
  const rent = solana.TOKEN_ACCOUNT_RENT
  const sol = (lamports: bigint) =>
    `${lamports / 10n ** 9n}.${(lamports % 10n ** 9n).toString().padStart(9, '0')}`.replace(
      /0+$/,
      '',
    )
  for (const to of [undefined, SOL_TO]) {
    const { fee, rent: part } = await estimate({
      asset: 'USDT_SOL',
      rate: '10000',
      ...(to ? { to } : {}),
    })
    assert.deepEqual([fee, part], [sol(rent + 10_000n), sol(rent)], `${to}`)
  }
  const { fee, rent: none } = await estimate({
    asset: 'USDT_SOL',
    rate: '10000',
    to: SOL_TO,
    exists: true,
  })
  assert.deepEqual([fee, none], ['0.00001', '0'])
})

test('TRX: the fee of a payment to a new account is the activation cost instead of bandwidth', async () => {
  for (const to of [undefined, TRX_TO]) {
    const { fee, activation } = await estimate({
      asset: 'TRX',
      rate: '1000',
      ...(to ? { to } : {}),
    })
    assert.deepEqual([fee, activation], ['1.1', '1.1'], `${to}`)
  }
})

test('an estimate without additional costs has no itemised parts', async () => {
  const { fee, rent, activation } = await estimate({ asset: 'XRP', rate: '12' })
  assert.deepEqual([fee, rent, activation], ['0.000012', undefined, undefined])
})
