import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  call,
  fundedWallet,
  rpc,
  terminal,
  TestPlatform,
  transferBody,
  type User,
} from '../testing/harness.ts'

/** Compares the estimate at a transfer's actual rate with the fee that the transfer paid. */
const platform = new TestPlatform()

before(() => platform.start())
after(() => platform.remove())

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
      const user = await platform.user('estimates', { subAccount: asset })
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
  const other: User = await platform.user('estimates', { subAccount: 'other' })
  await call(other, 'POST', '/dac/v1/create-wallet', { asset })
  return (await call<{ address: string }>(other, 'POST', '/dac/v1/address', { asset })).body.address
}
